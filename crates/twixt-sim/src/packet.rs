//! A packet, and what the points see of it.

use twixt_model::{Delay, Side, Timestamp};

use crate::frame::HEADERS_BYTES;

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From upstream to downstream.
    Forward,
    /// Back.
    Return,
}

impl Direction {
    /// The point that a packet passes first.
    #[must_use]
    pub const fn entry(self) -> Side {
        match self {
            Self::Forward => Side::Upstream,
            Self::Return => Side::Downstream,
        }
    }
}

/// A packet and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedPacket {
    entered_ns: i64,  // since the start of the trace, in true time
    crossing_ns: i64, // true delay, or LOST
    /// Index of its flow, see [`crate::Simulation::flow_key`].
    pub flow: u32,
    /// How many packets of its flow entered before it.
    pub sequence: u32,
    /// How many bytes of payload of its flow entered before it, modulo 2^32. For return traffic:
    /// how many bytes of the forward flow it acknowledges.
    pub payload_offset: u32,
    /// Length of the IP packet in bytes.
    pub length: u32,
}

/// The longest IP packet whose length field can say so: that of IPv6 leaves out its 40 bytes.
pub(crate) const LENGTH_MAX: u32 = 65_535 + 40;

const LOST: i64 = i64::MIN;

impl SimulatedPacket {
    /// One that is lost until it is delivered.
    pub(crate) const fn new(
        entered_ns: i64,
        flow: u32,
        sequence: u32,
        payload_offset: u32,
        length: u32,
    ) -> Self {
        Self { entered_ns, crossing_ns: LOST, flow, sequence, payload_offset, length }
    }

    /// How long it really took; `None` if it was lost.
    #[must_use]
    pub fn true_delay(&self) -> Option<Delay> {
        self.crossing_ns().map(Delay::from_nanos)
    }

    /// Bytes after the headers that every packet is taken to have.
    #[must_use]
    pub const fn payload_bytes(&self) -> u32 {
        self.length.saturating_sub(HEADERS_BYTES)
    }

    pub(crate) fn deliver(&mut self, crossing_ns: i64) {
        self.crossing_ns = crossing_ns;
    }

    pub(crate) fn crossing_ns(&self) -> Option<i64> {
        (self.crossing_ns != LOST).then_some(self.crossing_ns)
    }

    pub(crate) const fn entered_ns(&self) -> i64 {
        self.entered_ns
    }

    pub(crate) fn exit_ns(&self) -> Option<i64> {
        Some(self.entered_ns + self.crossing_ns()?)
    }
}

/// A packet at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointPacket {
    /// When, on the point's own clock.
    pub time: Timestamp,
    /// Which: an index into [`crate::Simulation::packets`].
    pub packet: u32,
}
