//! The sums that difference aggregators keep in a cell, and what two of them tell together.
//!
//! Three words that are only ever added to, modulo 2^64. Synopses keep fewer bits of them: see
//! [`cells`](crate::cells).

use twixt_model::Observation;

use crate::codec::{DecodeError, Reader};

/// What a cell knows of its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Sum of times. Only differences of two sums mean anything: those are exact while the sum
    /// of delays stays below 2^63 ns. (The 40 bits of the LDA paper overflow in its own setting,
    /// which is harmless only because addition wraps.)
    pub(crate) times: u64,
    pub(crate) packets: u64,
    /// Sum of digests. A count alone takes one lost and one stray packet for none; an exclusive
    /// or lets two identical packets cancel; a sum does neither.
    pub(crate) digests: u64,
}

impl Sums {
    pub(crate) const BYTES: usize = 24;

    /// Those of a single packet.
    #[inline]
    pub(crate) fn of(observation: &Observation) -> Self {
        Self {
            times: observation.time.as_nanos() as u64,
            packets: 1,
            digests: observation.digest.0,
        }
    }

    #[inline]
    pub(crate) fn add(&mut self, other: &Self) {
        self.times = self.times.wrapping_add(other.times);
        self.packets = self.packets.wrapping_add(other.packets);
        self.digests = self.digests.wrapping_add(other.digests);
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        self.times = self.times.wrapping_sub(other.times);
        self.packets = self.packets.wrapping_sub(other.packets);
        self.digests = self.digests.wrapping_sub(other.digests);
    }

    /// Whether the same packets were counted, as far as one can tell.
    pub(crate) const fn agrees_with(&self, other: &Self) -> bool {
        self.packets == other.packets && self.digests == other.digests
    }

    pub(crate) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            times: input.u64("time sum")?,
            packets: input.u64("packets")?,
            digests: input.u64("digest sum")?,
        })
    }
}

const _: () = assert!(size_of::<Sums>() == Sums::BYTES);

/// A cell without loss: how many packets, and the sum of their delays minus `packets` times a
/// reference delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usable {
    pub(crate) packets: u64,
    pub(crate) delay_sum_ns: i64,
}

impl Usable {
    /// `None` where packets were lost or added. Empty cells agree as well, but tell nothing.
    pub(crate) fn of(upstream: &Sums, downstream: &Sums, reference_ns: i64) -> Option<Self> {
        let packets = upstream.packets;
        let reference = (reference_ns as u64).wrapping_mul(packets);
        let difference = downstream.times.wrapping_sub(upstream.times).wrapping_sub(reference);
        (packets > 0 && upstream.agrees_with(downstream))
            .then_some(Self { packets, delay_sum_ns: difference as i64 })
    }
}
