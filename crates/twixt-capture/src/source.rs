//! What every source of frames can do, and what it counts.

use crate::{CaptureError, Frame};

/// Where frames come from: a file, a socket, a ring.
pub trait PacketSource {
    /// Waits for frames and hands each one to `sink`. A frame borrows the source's memory and
    /// cannot outlive the call, which is why this pushes rather than returns. A batch may be
    /// empty though more will come.
    ///
    /// # Errors
    ///
    /// When the source can give no more frames for a reason that is not part of its normal life.
    fn next_batch(&mut self, sink: &mut dyn FnMut(Frame<'_>)) -> Result<BatchEnd, CaptureError>;

    /// What was handed over, and what was not, up to now.
    fn counts(&self) -> SourceCounts;
}

/// Whether to ask for another batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchEnd {
    /// There may be more frames.
    More,
    /// There will be no more frames.
    End,
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
    /// or a moment beyond what [`twixt_model::Timestamp`] can say (the nearest one it can).
    pub odd_times: u64,
    /// Frames with more bytes than they are said to have had on the wire.
    pub longer_than_wire: u64,
    /// Frames with more bytes than the snap length allows.
    pub longer_than_snap: u64,
    /// Descriptions of interfaces beyond [`crate::MAX_INTERFACES`], not kept.
    pub interfaces_refused: u64,
}

impl SourceCounts {
    /// Frames that were there but not handed over.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped_without_time + self.skipped_without_interface
    }

    /// Counts a frame that is about to be handed over.
    #[inline]
    pub(crate) fn count_frame(&mut self, captured_bytes: u32, wire_length: u32, snap_length: u32) {
        self.frames += 1;
        self.bytes += u64::from(captured_bytes);
        self.longer_than_wire += u64::from(captured_bytes > wire_length);
        self.longer_than_snap += u64::from(captured_bytes > snap_length);
    }
}
