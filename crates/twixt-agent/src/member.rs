//! One thread's share of a point, without its interface: frames and moments in, parts of epochs out.

use twixt_capture::{Frame, SourceCounts};
use twixt_measure::{MeterError, Sealed};
use twixt_model::{Span, Timestamp};
use twixt_synopsis::AnySynopsis;
use twixt_wire::{Observer, SkipCounts};

use crate::gaps::Gaps;
use crate::merger::Part;
use crate::meters::{Meters, Setting};
use crate::steps::Era;
use crate::taking::{Taking, is_timeless};

/// What one thread of a point observes.
#[derive(Debug)]
pub(crate) struct Member {
    thread: usize,
    setting: Setting,
    prototypes: Vec<Box<dyn AnySynopsis>>,
    observer: Observer,
    taking: Taking,
    era: Era,
    gaps: Gaps,
    /// What was sealed in this era.
    covered: Option<Span>,
    /// Packets of eras before this one.
    packets_before: u64,
    late_before: u64,
}

impl Member {
    /// Observes from `began` on.
    ///
    /// # Errors
    /// When the setting is not one that sealed epochs can carry.
    pub(crate) fn new(
        thread: usize,
        setting: Setting,
        prototypes: Vec<Box<dyn AnySynopsis>>,
        observer: Observer,
        era: Era,
        began: Timestamp,
    ) -> Result<Self, MeterError> {
        let setting = Setting { run: era.run, ..setting };
        let meters = begun(Meters::new(&setting, &borrowed(&prototypes))?, began);
        let taking = Taking::new(observer.clone(), meters);
        let gaps = Gaps::until(began);
        let (packets_before, late_before) = (0, 0);
        Ok(Self {
            thread,
            setting,
            prototypes,
            observer,
            taking,
            era,
            gaps,
            covered: None,
            packets_before,
            late_before,
        })
    }

    /// Takes a frame.
    #[inline]
    pub(crate) fn take(&mut self, frame: &Frame<'_>) {
        self.taking.take(frame);
    }

    /// Frames skipped since the last call of [`tell_counts`](Self::tell_counts).
    pub(crate) const fn skipped(&self) -> SkipCounts {
        self.taking.skipped()
    }

    /// Tells what the source counted so far.
    pub(crate) fn tell_counts(&mut self, counts: SourceCounts) {
        self.taking.tell_counts(counts);
    }

    /// Nothing earlier will come, but for stragglers: silent classes seal their epochs too.
    pub(crate) fn advance(&mut self, time: Timestamp) {
        self.taking.meters_mut().advance(time);
    }

    /// Does not observe from then on.
    pub(crate) fn lose(&mut self, from: Timestamp) {
        self.gaps.open(from);
    }

    /// Observes again.
    pub(crate) fn regain(&mut self, at: Timestamp) {
        self.gaps.close(at);
    }

    /// The clock was set, which shows `now`: begins anew. What was open is torn, and so are later
    /// epochs of the same numbers as those that were sealed before. Returns what was open.
    ///
    /// # Errors
    /// As [`new`](Self::new); not for a setting that was good before.
    pub(crate) fn begin_era(
        &mut self,
        era: Era,
        now: Timestamp,
    ) -> Result<Option<Part>, MeterError> {
        self.gaps.open(Timestamp::MIN);
        let last = self.seal_all();
        self.setting.run = era.run;
        let meters = begun(Meters::new(&self.setting, &borrowed(&self.prototypes))?, now);
        self.packets_before += self.taking.meters().packets();
        self.late_before += self.taking.meters().late_packets();
        self.taking = self.taking.begun_anew(self.observer.clone(), meters);
        self.gaps.close(Timestamp::MIN);
        self.gaps.begin_again(now, self.covered.take());
        self.era = era;
        Ok(last)
    }

    /// The present era.
    pub(crate) const fn era(&self) -> Era {
        self.era
    }

    /// Packets measured so far.
    pub(crate) const fn packets(&self) -> u64 {
        self.packets_before + self.taking.meters().packets()
    }

    /// Packets that came after their epoch was sealed.
    pub(crate) fn late_packets(&self) -> u64 {
        self.late_before + self.taking.meters().late_packets()
    }

    /// What was sealed since the last time, if anything was.
    pub(crate) fn poll(&mut self) -> Option<Part> {
        let Self { taking, gaps, covered, .. } = self;
        let polled = std::iter::from_fn(|| taking.meters_mut().poll_unsettled());
        let sealed: Vec<(usize, Sealed)> = polled
            .map(|(index, mut sealed)| {
                sealed.torn |= gaps.tears(&sealed);
                let span = sealed.rule.span_of(sealed.epoch);
                *covered = Some(covered.map_or(span, |covered| covered.union(span)));
                (index, sealed)
            })
            .collect();
        let (thread, era) = (self.thread, self.era.number);
        (!sealed.is_empty()).then_some(Part { thread, era, sealed })
    }

    /// Observes nothing after `ended`: seals everything.
    pub(crate) fn finish(&mut self, ended: Timestamp) -> Option<Part> {
        self.gaps.open(ended);
        if !is_timeless(ended) {
            self.advance(ended);
        }
        self.seal_all()
    }

    fn seal_all(&mut self) -> Option<Part> {
        self.taking.meters_mut().finish();
        self.poll()
    }
}

/// All meters begin with the same epoch, whenever their first packets come; none if the time is not
/// known.
fn begun(mut meters: Meters, began: Timestamp) -> Meters {
    if !is_timeless(began) {
        meters.advance(began);
    }
    meters
}

fn borrowed(prototypes: &[Box<dyn AnySynopsis>]) -> Vec<&dyn AnySynopsis> {
    prototypes.iter().map(AsRef::as_ref).collect()
}

#[cfg(test)]
mod tests;
