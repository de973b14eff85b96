//! What every source of frames can do, and what it counts.

use twixt_model::{Frame, SourceCounts};

use crate::CaptureError;

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
