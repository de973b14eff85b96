//! Packets into one synopsis, which learns from one point alone.

use twixt_model::{BatchBuffer, Span};
use twixt_synopsis::AnySynopsis;
use twixt_wire::{Observer, Skip};

use crate::packet_path::{PacketSink, SeenPacket};

/// A synopsis, and the packets on their way into it.
#[derive(Debug)]
pub struct SynopsisFeed {
    synopsis: Box<dyn AnySynopsis>,
    /// Packets that the synopsis was not yet given.
    waiting: BatchBuffer,
    span: Option<Span>,
}

impl SynopsisFeed {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(synopsis: Box<dyn AnySynopsis>) -> Self {
        Self { synopsis, waiting: BatchBuffer::new(), span: None }
    }

    /// Takes a packet with its details.
    #[inline(always)]
    pub fn push(&mut self, observer: &Observer, seen: SeenPacket<'_>) {
        let here = Span::at(seen.frame.time);
        self.span = Some(self.span.map_or(here, |span| span.union(here)));
        let SeenPacket { observation, packet, frame } = seen;
        self.waiting.push_with(observation, |detail| {
            packet.write_detail(frame.bytes.bytes(), observer.needs(), detail);
        });
        if self.waiting.is_full() {
            self.hand_over();
        }
    }

    /// The synopsis, with all packets so far.
    pub fn synopsis(&mut self) -> &mut dyn AnySynopsis {
        self.hand_over();
        self.synopsis.as_mut()
    }

    /// From the first packet to the last since the last call; `None` if there was none.
    pub const fn take_span(&mut self) -> Option<Span> {
        self.span.take()
    }

    /// No more packets come: the synopsis, with all of them.
    #[must_use]
    pub fn finish(mut self) -> Box<dyn AnySynopsis> {
        self.hand_over();
        self.synopsis
    }

    #[inline(never)]
    fn hand_over(&mut self) {
        self.synopsis.update_batch(self.waiting.as_batch());
        self.waiting.clear();
    }
}

impl PacketSink for SynopsisFeed {
    #[inline(always)]
    fn take(&mut self, observer: &Observer, seen: SeenPacket<'_>) -> Result<(), Skip> {
        self.push(observer, seen);
        Ok(())
    }
}
