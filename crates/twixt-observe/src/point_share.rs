//! One thread's share of a point, without its interface: frames and moments in, parts of epochs out.

use twixt_measure::{MeterError, Sealed};
use twixt_model::{Frame, SourceCounts, Span, Timestamp};
use twixt_synopsis::AnySynopsis;
use twixt_wire::{Observer, SkipCounts};

use crate::gaps::Gaps;
use crate::merger::SealedPart;
use crate::meters::{Meters, MetersConfig};
use crate::packet_path::{PacketPath, is_timeless};

/// An interval without a clock step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Era {
    /// Counts from 0.
    pub number: u64,
    /// Number of the run, for what is sealed in it; later eras have larger ones.
    pub run: u64,
}

/// What one thread of a point observes.
#[derive(Debug)]
pub struct PointShare {
    thread: usize,
    config: MetersConfig,
    prototypes: Vec<Box<dyn AnySynopsis>>,
    observer: Observer,
    path: PacketPath<Meters>,
    era: Era,
    gaps: Gaps,
    /// What was sealed in this era.
    covered: Option<Span>,
    /// Packets of eras before this one.
    packets_before: u64,
    late_before: u64,
}

impl PointShare {
    /// Observes from `began` on.
    ///
    /// # Errors
    /// When the config is not one that sealed epochs can carry.
    pub fn new(
        thread: usize,
        config: MetersConfig,
        prototypes: Vec<Box<dyn AnySynopsis>>,
        observer: Observer,
        era: Era,
        began: Timestamp,
    ) -> Result<Self, MeterError> {
        let config = MetersConfig { run: era.run, ..config };
        let meters = begun(Meters::new(&config, &borrowed(&prototypes))?, began);
        let path = PacketPath::new(observer.clone(), meters);
        let gaps = Gaps::until(began);
        let (packets_before, late_before) = (0, 0);
        Ok(Self {
            thread,
            config,
            prototypes,
            observer,
            path,
            era,
            gaps,
            covered: None,
            packets_before,
            late_before,
        })
    }

    /// Takes a frame.
    #[inline]
    pub fn take(&mut self, frame: &Frame<'_>) {
        self.path.take(frame);
    }

    /// Frames skipped since the last call of [`report_counts`](Self::report_counts).
    #[must_use]
    pub const fn skipped(&self) -> SkipCounts {
        self.path.skipped()
    }

    /// Reports what the source counted so far, and when that was read; see
    /// [`PacketPath::report_counts`].
    pub fn report_counts(&mut self, counts: SourceCounts, read: Option<Span>) {
        self.path.report_counts(counts, read);
    }

    /// Nothing earlier will come, but for stragglers: silent classes seal their epochs too.
    pub fn advance(&mut self, time: Timestamp) {
        self.path.sink_mut().advance(time);
    }

    /// Does not observe from then on.
    pub fn lose(&mut self, from: Timestamp) {
        self.gaps.open(from);
    }

    /// Observes again.
    pub fn regain(&mut self, at: Timestamp) {
        self.gaps.close(at);
    }

    /// The clock was set, which shows `now`: restarts. What was open is torn, and so are later
    /// epochs of the same numbers as those that were sealed before. Returns what was open.
    ///
    /// # Errors
    /// As [`new`](Self::new); not for a config that was good before.
    pub fn begin_era(
        &mut self,
        era: Era,
        now: Timestamp,
    ) -> Result<Option<SealedPart>, MeterError> {
        self.gaps.open(Timestamp::MIN);
        let last = self.seal_all();
        self.config.run = era.run;
        let meters = begun(Meters::new(&self.config, &borrowed(&self.prototypes))?, now);
        self.packets_before += self.path.sink().packets();
        self.late_before += self.path.sink().late_packets();
        self.path = self.path.begun_anew(self.observer.clone(), meters);
        self.gaps.close(Timestamp::MIN);
        self.gaps.begin_again(now, self.covered.take());
        self.era = era;
        Ok(last)
    }

    /// The present era.
    #[must_use]
    pub const fn era(&self) -> Era {
        self.era
    }

    /// Packets measured so far.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets_before + self.path.sink().packets()
    }

    /// Packets that came after their epoch was sealed.
    #[must_use]
    pub fn late_packets(&self) -> u64 {
        self.late_before + self.path.sink().late_packets()
    }

    /// What was sealed since the last time, if anything was.
    pub fn poll(&mut self) -> Option<SealedPart> {
        let Self { path, gaps, covered, .. } = self;
        let polled = std::iter::from_fn(|| path.sink_mut().poll_unsettled());
        let sealed: Vec<(usize, Sealed)> = polled
            .map(|(index, mut sealed)| {
                sealed.torn |= gaps.tears(&sealed);
                let span = sealed.rule.span_of(sealed.epoch);
                *covered = Some(covered.map_or(span, |covered| covered.union(span)));
                (index, sealed)
            })
            .collect();
        let (thread, era) = (self.thread, self.era.number);
        (!sealed.is_empty()).then_some(SealedPart { thread, era, sealed })
    }

    /// Observes nothing after `ended`: seals everything.
    pub fn finish(&mut self, ended: Timestamp) -> Option<SealedPart> {
        self.gaps.open(ended);
        if !is_timeless(ended) {
            self.advance(ended);
        }
        self.seal_all()
    }

    fn seal_all(&mut self) -> Option<SealedPart> {
        self.path.sink_mut().finish();
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
