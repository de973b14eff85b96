//! What a packet thread needs of an interface, so that a script can stand in for one.

use std::time::Duration;

use twixt_capture::{
    BatchEnd, CaptureError, Frame, LiveCounts, LiveEnding, LiveError, LiveSource, SourceCounts,
};
use twixt_model::TimeSource;

/// Frames as they pass; see [`LiveSource`], whose words these are.
pub(crate) trait LiveFrames {
    /// Hands over the frames of a block, or nothing after a while.
    fn read_batch(&mut self, sink: impl FnMut(Frame<'_>)) -> Result<BatchEnd, CaptureError>;
    /// Why there are no more.
    fn ending(&self) -> Option<LiveEnding>;
    /// Who takes their times.
    fn time_source(&self) -> TimeSource;
    /// What was handed over, and what was not.
    fn counts(&self) -> SourceCounts;
    /// What else was met.
    fn live_counts(&self) -> LiveCounts;
    /// How long a frame may wait before it is handed over.
    fn longest_wait(&self) -> Duration;
    /// Begins again after the interface went away.
    fn reopen(&mut self) -> Result<(), LiveError>;
}

impl LiveFrames for LiveSource {
    #[inline]
    fn read_batch(&mut self, sink: impl FnMut(Frame<'_>)) -> Result<BatchEnd, CaptureError> {
        self.read_batch(sink)
    }

    fn ending(&self) -> Option<LiveEnding> {
        self.ending()
    }

    fn time_source(&self) -> TimeSource {
        self.time_source()
    }

    fn counts(&self) -> SourceCounts {
        self.counts()
    }

    fn live_counts(&self) -> LiveCounts {
        self.live_counts()
    }

    fn longest_wait(&self) -> Duration {
        self.longest_wait()
    }

    fn reopen(&mut self) -> Result<(), LiveError> {
        self.reopen()
    }
}
