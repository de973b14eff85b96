//! Which frames of one point are measured, in one pass. Does not know what is measured about them.

use twixt_capture::{Frame, SourceCounts};
use twixt_model::{Observation, Prefix, Span};
use twixt_wire::{FrameBytes, LinkType, Observer, Packet, Skip, SkipCounts};

use super::{PointCounts, is_timeless};

/// Frames in, packets out, counts of both.
pub(crate) struct Intake {
    observer: Observer,
    toward: Option<Prefix>,
    /// Packets still wanted.
    wanted: u64,
    packets: u64,
    skipped: SkipCounts,
    span: Option<Span>,
}

impl Intake {
    /// Takes at most `most` packets, of those for `toward` if that is given.
    pub(crate) fn new(observer: Observer, toward: Option<Prefix>, most: Option<u64>) -> Self {
        let wanted = most.unwrap_or(u64::MAX);
        Self { observer, toward, wanted, packets: 0, skipped: SkipCounts::default(), span: None }
    }

    /// The packet in a frame, as it was parsed, if it is to be measured.
    #[inline(always)]
    pub(crate) fn packet(&mut self, frame: &Frame<'_>) -> Option<(Observation, Packet)> {
        if self.wanted == 0 {
            return None;
        }
        match self.judge(frame) {
            Ok(packet) => {
                let here = Span::at(frame.time);
                self.span = Some(self.span.map_or(here, |span| span.union(here)));
                self.wanted -= 1;
                self.packets += 1;
                Some(packet)
            }
            Err(skip) => {
                self.skipped.count(skip);
                None
            }
        }
    }

    /// Whether all packets that were wanted have been seen.
    pub(crate) const fn is_done(&self) -> bool {
        self.wanted == 0
    }

    pub(crate) const fn observer(&self) -> &Observer {
        &self.observer
    }

    /// From the first packet to the last; `None` if there was none.
    pub(crate) const fn span(&self) -> Option<Span> {
        self.span
    }

    /// What became of the frames, together with those that the source did not hand over.
    pub(crate) fn counts(&self, source: SourceCounts) -> PointCounts {
        let mut skipped = self.skipped;
        skipped.add(Skip::NoTime, source.skipped());
        PointCounts {
            packets: self.packets,
            skipped: skipped.iter().map(|(skip, count)| (skip.name().to_owned(), count)).collect(),
            dropped: source.dropped,
        }
    }

    #[inline(always)]
    fn judge(&self, frame: &Frame<'_>) -> Result<(Observation, Packet), Skip> {
        if is_timeless(frame.time) {
            return Err(Skip::NoTime);
        }
        let link = LinkType(frame.link_type);
        let bytes = FrameBytes::within(frame.memory, frame.bytes.len());
        let (observation, packet) =
            self.observer.observe_packet(link, bytes, frame.wire_length, frame.time)?;
        match self.toward.is_some_and(|prefix| !prefix.contains(packet.destination())) {
            true => Err(Skip::WrongDirection),
            false => Ok((observation, packet)),
        }
    }
}
