//! One point, one pass, into a synopsis that learns from that point alone.
//!
//! Frames may come from a capture or from anywhere else: [`OnePoint::take`] does not ask.

use std::collections::BTreeMap;
use std::path::Path;

use twixt_capture::{BatchEnd, Frame};
use twixt_model::{BatchBuffer, DigestHash, DigestProfile, Prefix, Span};
use twixt_synopsis::{AnySynopsis, Needs};
use twixt_wire::{Digester, HashKey, LinkType, Observer, Skip, SkipCounts, Wanted};

use super::{PointCounts, is_timeless};
use crate::args::{Chosen, TrafficArgs};
use crate::exit::{no_answer, usage};
use crate::input::Capture;
use crate::progress::Progress;

/// A synopsis, and the frames on their way into it.
pub(crate) struct OnePoint {
    observer: Observer,
    toward: Option<Prefix>,
    synopsis: Box<dyn AnySynopsis>,
    /// Packets that the synopsis was not yet given.
    waiting: BatchBuffer,
    /// Packets still wanted.
    most: u64,
    skipped: SkipCounts,
    span: Option<Span>,
}

/// What was seen, and what the synopsis kept of it.
pub(crate) struct Seen {
    pub(crate) synopsis: Box<dyn AnySynopsis>,
    pub(crate) counts: PointCounts,
    /// From the first packet to the last.
    pub(crate) span: Span,
    /// Whether a part of the input was unusable.
    pub(crate) partial: bool,
}

impl OnePoint {
    /// Takes at most `most` packets of this traffic.
    pub(crate) fn new(traffic: &TrafficArgs, chosen: &Chosen, most: u64) -> anyhow::Result<Self> {
        if traffic.has_classes() {
            return Err(usage("this command does not tell classes apart: use a filter"));
        }
        let Needs { digest, flow, .. } = chosen.prototype.needs();
        // Hashes never leave this command: a fixed key will do.
        let key = HashKey::from_seed(0);
        let digester = Digester::new(DigestProfile::Headers, DigestHash::Xxh3, 0, key);
        let wanted = Wanted { digest, flow, detail: true, group: false };
        Ok(Self {
            observer: traffic.observer(wanted, digester)?,
            toward: traffic.toward,
            synopsis: chosen.prototype.fresh(),
            waiting: BatchBuffer::new(),
            most,
            skipped: SkipCounts::default(),
            span: None,
        })
    }

    /// Whether all packets that were wanted have been seen.
    pub(crate) const fn is_done(&self) -> bool {
        self.most == 0
    }

    /// Takes a frame.
    #[inline]
    pub(crate) fn take(&mut self, frame: &Frame<'_>) {
        if self.most == 0 {
            return;
        }
        match self.measure(frame) {
            Ok(()) => self.most -= 1,
            Err(skip) => self.skipped.count(skip),
        }
    }

    #[inline]
    fn measure(&mut self, frame: &Frame<'_>) -> Result<(), Skip> {
        if is_timeless(frame.time) {
            return Err(Skip::NoTime);
        }
        let link = LinkType(frame.link_type);
        let (observation, detail) =
            self.observer.observe_detailed(link, frame.bytes, frame.wire_length, frame.time)?;
        if self.toward.is_some_and(|prefix| !prefix.contains(detail.key.destination)) {
            return Err(Skip::WrongDirection);
        }
        self.span = Some(self.span.map_or(Span::at(frame.time), |span| span.including(frame.time)));
        self.waiting.push_detailed(observation, detail);
        if self.waiting.is_full() {
            self.hand_over();
        }
        Ok(())
    }

    fn hand_over(&mut self) {
        self.synopsis.update_batch(self.waiting.as_batch());
        self.waiting.clear();
    }

    /// What was seen; `None` if nothing was.
    pub(crate) fn finish(mut self) -> Option<Seen> {
        self.hand_over();
        let skipped: BTreeMap<String, u64> =
            self.skipped.iter().map(|(skip, count)| (skip.name().to_owned(), count)).collect();
        let packets = self.synopsis.totals().packets;
        let counts = PointCounts { packets, skipped, dropped: None };
        Some(Seen { synopsis: self.synopsis, counts, span: self.span?, partial: false })
    }
}

/// Reads a capture once; `-` is standard input.
pub(crate) fn read(path: &Path, mut point: OnePoint) -> anyhow::Result<Seen> {
    let mut capture = Capture::open(path)?;
    let progress = Progress::new(capture.size_bytes());
    while capture.read_batch(&progress, |frame| point.take(&frame)) == BatchEnd::More
        && !point.is_done()
    {}
    drop(progress);
    let partial = capture.note_ending(path);
    let file_counts = capture.file().counts();
    point.skipped.add(Skip::NoTime, file_counts.skipped());
    let seen = point.finish();
    let mut seen = seen.ok_or_else(|| no_answer(format!("{}: no packets", path.display())))?;
    seen.counts.dropped = file_counts.dropped;
    Ok(Seen { partial, ..seen })
}
