//! What every synopsis counts, sampled or not, so that loss is exact.

use crate::codec::{DecodeError, Reader, Writer};

/// All packets and bytes that a synopsis was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets.
    pub packets: u64,
    /// Bytes of these packets, by their IP headers.
    pub bytes: u64,
}

impl Totals {
    /// Counts a packet.
    #[inline]
    pub fn add(&mut self, length: u32) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(u64::from(length));
    }

    /// Takes a packet out again.
    #[inline]
    pub fn subtract(&mut self, length: u32) {
        self.packets = self.packets.wrapping_sub(1);
        self.bytes = self.bytes.wrapping_sub(u64::from(length));
    }

    /// Adds what another has counted.
    pub fn merge(&mut self, other: Self) {
        self.packets = self.packets.wrapping_add(other.packets);
        self.bytes = self.bytes.wrapping_add(other.bytes);
    }

    /// Packets of `self` that are missing in `downstream`; `None` if that has more than went in.
    #[must_use]
    pub const fn lost_until(self, downstream: Self) -> Option<u64> {
        self.packets.checked_sub(downstream.packets)
    }

    pub(crate) fn encode(self, out: &mut Writer) {
        out.u64(self.packets);
        out.u64(self.bytes);
    }

    pub(crate) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { packets: input.u64("total packets")?, bytes: input.u64("total bytes")? })
    }
}
