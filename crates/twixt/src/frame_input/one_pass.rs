//! The one loop in which all one-pass commands read.

use twixt_capture::{BatchEnd, Frame, SourceCounts};
use twixt_model::{Span, Timestamp};
use twixt_observe::{PacketPath, PacketSink};

use super::FrameSource;

/// What a command does with frames that it sees once, from a capture or an interface.
pub(crate) trait OnePass {
    /// Takes a frame.
    fn take(&mut self, frame: &Frame<'_>);

    /// Whether no more frames are wanted.
    fn has_enough(&self) -> bool;

    /// A batch was handed over: time to tell what was found. Interfaces have a batch every so
    /// often, even if it is empty.
    fn end_batch(&mut self, _so_far: &SoFar) -> anyhow::Result<()> {
        Ok(())
    }
}

impl<S: PacketSink> OnePass for PacketPath<S> {
    #[inline(always)]
    fn take(&mut self, frame: &Frame<'_>) {
        self.take(frame);
    }

    fn has_enough(&self) -> bool {
        self.has_enough()
    }
}

/// How far the source has come.
pub(crate) struct SoFar {
    pub(crate) counts: SourceCounts,
    /// When the counts were read, on the clock of the packets, where that can be read.
    pub(crate) read: Option<Span>,
    /// All frames up to then were handed over, and none came for a while: time to end epochs. Only
    /// of interfaces, and only if the last batch was empty.
    pub(crate) silent_until: Option<Timestamp>,
}

impl FrameSource {
    /// Hands frames over until there are no more, or enough of them.
    pub(crate) fn read(&mut self, pass: &mut impl OnePass) -> anyhow::Result<()> {
        loop {
            let asked = self.now();
            let end = self.read_batch(pass)?;
            let read = asked.zip(self.now()).map(|(start, end)| Span { start, end });
            let silent_until = self.silent_until();
            pass.end_batch(&SoFar { counts: self.counts(), read, silent_until })?;
            if end == BatchEnd::End || pass.has_enough() || self.ends_early() {
                break;
            }
        }
        self.hide_progress();
        Ok(())
    }
}
