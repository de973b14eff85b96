//! One frame as a source hands it over, and what a source counts.

use crate::{TimeSource, Timestamp};

/// A frame and what the source knows about it. Borrows the source's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// When it was seen.
    pub time: Timestamp,
    /// The bytes that were captured, from the outermost header on.
    pub bytes: &'a [u8],
    /// The same bytes and what lies behind them in the source's memory, for readers that would
    /// rather read too much and mask it than ask before every field whether it is there. What lies
    /// behind means nothing; there may be nothing.
    pub memory: &'a [u8],
    /// Its length on the wire; never less than `bytes.len()`.
    pub wire_length: u32,
    /// What the outermost header is: a LINKTYPE number of the pcap registry.
    pub link_type: u16,
    /// Index into the source's list of interfaces.
    pub interface: u32,
    /// Which way it crossed the interface, if the source says.
    pub direction: Option<FrameDirection>,
    /// Who took the time.
    pub time_source: TimeSource,
}

/// Which way a frame crossed the interface that captured it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameDirection {
    /// Received by the capturing machine.
    Inbound,
    /// Sent by the capturing machine.
    Outbound,
}

/// What a source handed over and what it met on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCounts {
    /// Frames handed over.
    pub frames: u64,
    /// Captured bytes handed over.
    pub bytes: u64,
    /// Frames that were lost before they could be captured. `None` when the source does not say.
    pub dropped: Option<u64>,
    /// Frames without a time (pcapng Simple Packet Blocks), not handed over.
    pub skipped_without_time: u64,
    /// Frames of an interface that was not described, not handed over.
    pub skipped_without_interface: u64,
    /// Frames whose time is odd: a fraction of a second or more (carried into the seconds),
    /// or a moment beyond what [`Timestamp`] can say (the nearest one it can).
    pub odd_times: u64,
    /// Frames with more bytes than their stated length on the wire.
    pub longer_than_wire: u64,
    /// Frames with more bytes than the snap length allows.
    pub longer_than_snap: u64,
    /// Descriptions of interfaces beyond the bound of the source, not kept.
    pub interfaces_refused: u64,
}

impl SourceCounts {
    /// Of two sources together. What is dropped is known if one of them says.
    #[must_use]
    pub fn added(self, other: Self) -> Self {
        let dropped = match (self.dropped, other.dropped) {
            (Some(one), Some(another)) => Some(one.saturating_add(another)),
            (one, another) => one.or(another),
        };
        Self {
            frames: self.frames + other.frames,
            bytes: self.bytes + other.bytes,
            dropped,
            skipped_without_time: self.skipped_without_time + other.skipped_without_time,
            skipped_without_interface: self.skipped_without_interface
                + other.skipped_without_interface,
            odd_times: self.odd_times + other.odd_times,
            longer_than_wire: self.longer_than_wire + other.longer_than_wire,
            longer_than_snap: self.longer_than_snap + other.longer_than_snap,
            interfaces_refused: self.interfaces_refused + other.interfaces_refused,
        }
    }

    /// Frames that were there but not handed over.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped_without_time + self.skipped_without_interface
    }

    /// Counts a frame that is about to be handed over.
    #[inline]
    pub fn count_frame(&mut self, captured_bytes: u32, wire_length: u32, snap_length: u32) {
        self.frames += 1;
        self.bytes += u64::from(captured_bytes);
        self.longer_than_wire += u64::from(captured_bytes > wire_length);
        self.longer_than_snap += u64::from(captured_bytes > snap_length);
    }
}
