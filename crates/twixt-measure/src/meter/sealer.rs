//! Open epochs, how they are sealed, and the queue of sealed ones. Does not know when.

use std::collections::VecDeque;

use twixt_model::{Batch, Delay, Epoch, Span};
use twixt_synopsis::{AnySynopsis, CutOnePoint, Estimator};

use super::config::{Cutting, MeterConfig};
use crate::cut::TimedCut;
use crate::sealed::{CutKind, Sealed};
use crate::stash::Stash;
use crate::tally::Tally;

/// Most silent epochs sealed in a row. An epoch without packets says something; a clock that
/// jumps by years says nothing, a million times. The rest is skipped and counted.
pub const EMPTY_EPOCHS_MAX: u64 = 256;

/// What happened to a meter beside counting packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterCounts {
    /// Packets seen after their epoch was sealed.
    pub late_packets: u64,
    /// Silent epochs that were not sealed because there were too many in a row.
    pub epochs_skipped: u64,
    /// Markers that were expected and did not come.
    pub lost_markers: u64,
    /// Markers seen before, or older than one seen.
    pub old_markers: u64,
    /// Markers discarded because too many waited to be fetched.
    pub unsent_markers: u64,
    /// Markers of another domain, point or class, or of no use to this meter.
    pub foreign_markers: u64,
}

/// What a point sees in an epoch that is not over.
#[derive(Debug)]
pub(super) struct OpenEpoch {
    synopsis: Box<dyn AnySynopsis>,
    seen: Option<Span>,
    packets: u64,
    pub(super) tally: Tally,
    pub(super) head: Stash,
    pub(super) tail: Stash,
    /// What goes on across its end has been taken out of it.
    is_cut: bool,
}

impl OpenEpoch {
    /// Counts packets, whose first and last times are `span`.
    pub(super) fn add(&mut self, batch: Batch<'_>, span: Span) {
        self.synopsis.update_batch(batch);
        self.seen = Some(self.seen.map_or(span, |seen| seen.union(span)));
        self.packets = self.packets.saturating_add(batch.len() as u64);
    }

    pub(super) const fn is_silent(&self) -> bool {
        self.packets == 0
    }

    /// Takes out, once, what goes on across the end of the epoch.
    fn cut(&mut self, cut: CutOnePoint) -> Option<Box<dyn AnySynopsis>> {
        if self.is_cut {
            return None;
        }
        let seen = cut(self.synopsis.as_mut()).ok()?;
        self.is_cut = true;
        Some(std::mem::replace(&mut self.synopsis, seen))
    }
}

#[derive(Debug)]
pub(super) struct Sealer {
    config: MeterConfig,
    prototype: Box<dyn AnySynopsis>,
    /// How epochs of the algorithm end, if it learns from one point.
    cut: Option<CutOnePoint>,
    /// What goes on across the end of the newest epoch that was sealed.
    carried: Option<Box<dyn AnySynopsis>>,
    /// Holds at most one entry per packet and two per `advance` since the last `poll`.
    ready: VecDeque<Ready>,
    pub(super) counts: MeterCounts,
}

#[derive(Debug)]
enum Ready {
    Sealed(Box<Sealed>),
    /// Made only when asked for, so that a jump in time costs no memory.
    Silent {
        next: Epoch,
        left: u64,
    },
}

impl Sealer {
    pub(super) fn new(config: MeterConfig, prototype: Box<dyn AnySynopsis>) -> Self {
        let cut = cut_of(prototype.as_ref());
        let (carried, counts) = (None, MeterCounts::default());
        Self { config, prototype, cut, carried, ready: VecDeque::new(), counts }
    }

    /// An epoch that follows another, or what was sealed. Requests that wait for their response go on
    /// in it.
    pub(super) fn open_after(&mut self, before: Option<&mut OpenEpoch>) -> OpenEpoch {
        let mut open = self.open();
        if let Some(cut) = self.cut {
            let carried = before.map_or_else(|| self.carried.take(), |before| before.cut(cut));
            open.synopsis = carried.unwrap_or(open.synopsis);
        }
        open
    }

    /// An epoch in which nothing has been seen.
    pub(super) fn open(&self) -> OpenEpoch {
        OpenEpoch {
            synopsis: self.prototype.fresh(),
            seen: None,
            packets: 0,
            tally: Tally::default(),
            head: Stash::head(self.config.stash_max),
            tail: Stash::tail(self.config.stash_max),
            is_cut: false,
        }
    }

    /// Seals an epoch.
    pub(super) fn seal(&mut self, epoch: Epoch, mut open: OpenEpoch) {
        if let Some(cut) = self.cut {
            self.carried = open.cut(cut).or(self.carried.take());
        }
        let sealed = self.sealed(epoch, open, false);
        self.ready.push_back(Ready::Sealed(Box::new(sealed)));
    }

    /// Seals what cannot be compared.
    pub(super) fn seal_torn(&mut self, epoch: Epoch, open: OpenEpoch) {
        let sealed = self.sealed(epoch, open, true);
        self.ready.push_back(Ready::Sealed(Box::new(sealed)));
    }

    /// Seals the silent epochs from `first` to before `end`.
    pub(super) fn seal_silent(&mut self, first: Epoch, end: Epoch) {
        if end <= first {
            return;
        }
        let silent = end.0.abs_diff(first.0);
        let left = silent.min(EMPTY_EPOCHS_MAX);
        self.counts.epochs_skipped = self.counts.epochs_skipped.saturating_add(silent - left);
        self.ready.push_back(Ready::Silent { next: first, left });
    }

    pub(super) fn poll(&mut self) -> Option<Sealed> {
        match self.ready.pop_front()? {
            Ready::Sealed(sealed) => Some(*sealed),
            Ready::Silent { next: epoch, left } => {
                if left > 1 {
                    let next = Epoch(epoch.0.saturating_add(1));
                    self.ready.push_front(Ready::Silent { next, left: left - 1 });
                }
                Some(self.sealed(epoch, self.open(), false))
            }
        }
    }

    fn sealed(&self, epoch: Epoch, open: OpenEpoch, torn: bool) -> Sealed {
        let config = &self.config;
        let (cut, shift, guard) = match config.cutting {
            Cutting::Timed => {
                let cut = TimedCut::new(config.rule, config.shift, config.guard);
                (CutKind::Timed, config.shift, cut.guard())
            }
            Cutting::SendMarkers => (CutKind::Marked, config.shift, Delay::ZERO),
            // The place among the packets decides; no time is looked at.
            Cutting::FollowMarkers { .. } => (CutKind::Marked, Delay::ZERO, Delay::ZERO),
        };
        Sealed {
            domain: config.domain.clone(),
            point: config.point.clone(),
            class: config.class.clone(),
            run: config.run,
            epoch,
            rule: config.rule,
            cut,
            shift,
            guard,
            torn,
            time_source: config.time_source,
            clock_bound: config.clock_bound,
            digest: config.digest,
            seen: open.seen,
            packets: open.packets,
            tally: open.tally,
            head: open.head,
            tail: open.tail,
            synopsis: open.synopsis,
        }
    }
}

fn cut_of(prototype: &dyn AnySynopsis) -> Option<CutOnePoint> {
    match &prototype.algorithm()?.estimator {
        Estimator::TwoPoint { .. } => None,
        Estimator::RoundTrip { conclude, .. } => Some(conclude.cut),
        Estimator::Reorder(conclude) => Some(conclude.cut),
        Estimator::Heavy(conclude) => Some(conclude.cut),
    }
}
