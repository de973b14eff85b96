//! From frames to a synopsis, as one-pass commands do it.

use std::path::Path;

use twixt_capture::Frame;
use twixt_model::{BatchBuffer, Needs};
use twixt_synopsis::{Algorithm, AnySynopsis, DetailsOf};
use twixt_wire::{FrameBytes, LinkType, Observer};

use super::stages::{for_each_frame, observer_of};

/// A synopsis, and what fills it.
pub(crate) struct Pipeline {
    synopsis: Box<dyn AnySynopsis>,
    observer: Observer,
    waiting: BatchBuffer,
    details_of: DetailsOf,
    /// Flow hashes are computed of those packets only whose details are read.
    flow_of_few: bool,
}

impl Pipeline {
    pub(crate) fn new(algorithm: &Algorithm) -> Self {
        let synopsis = (algorithm.start)(&toml::Table::new()).unwrap();
        let (needs, details_of) = (synopsis.needs(), synopsis.details_of());
        let flow_of_few = needs.flow && needs.detail && details_of.is_by_digest();
        let observer = observer_of(Needs { flow: needs.flow && !flow_of_few, ..needs });
        Self { synopsis, observer, waiting: BatchBuffer::new(), details_of, flow_of_few }
    }

    /// All packets of a capture, in a loop of its own for each kind of need. Returns how many.
    pub(crate) fn run(mut self, path: &Path) -> u64 {
        match self.observer.needs().detail {
            true => for_each_frame(path, |frame| self.take_detailed(frame)),
            false => for_each_frame(path, |frame| self.take(frame)),
        };
        self.hand_over();
        self.synopsis.totals().packets
    }

    #[inline(always)]
    fn take(&mut self, frame: &Frame<'_>) -> u64 {
        let bytes = FrameBytes::within(frame.memory, frame.bytes.len());
        let link = LinkType(frame.link_type);
        let seen = self.observer.observe(link, bytes, frame.wire_length, frame.time);
        let Ok(seen) = seen else { return 0 };
        self.waiting.push(seen);
        self.hand_over_if_full();
        1
    }

    #[inline(always)]
    fn take_detailed(&mut self, frame: &Frame<'_>) -> u64 {
        let bytes = FrameBytes::within(frame.memory, frame.bytes.len());
        let link = LinkType(frame.link_type);
        let seen = self.observer.observe_packet(link, bytes, frame.wire_length, frame.time);
        let Ok((mut seen, packet)) = seen else { return 0 };
        let is_read = self.details_of.includes(&seen);
        if is_read && self.flow_of_few {
            seen.flow = self.observer.digester().packet_flow_hash(&packet);
        }
        self.waiting.push_with(seen, |detail| {
            if is_read {
                packet.write_detail(frame.bytes, self.observer.needs(), detail);
            }
        });
        self.hand_over_if_full();
        1
    }

    #[inline(always)]
    fn hand_over_if_full(&mut self) {
        if self.waiting.is_full() {
            self.hand_over();
        }
    }

    #[inline(never)]
    fn hand_over(&mut self) {
        self.synopsis.update_batch(self.waiting.as_batch());
        self.waiting.clear();
    }
}
