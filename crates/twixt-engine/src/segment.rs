//! All series of one segment and class: which epochs belong together is the same for all of them.

use std::collections::{BTreeMap, VecDeque};

use twixt_measure::Sealed;
use twixt_model::{Delay, Epoch, EpochRule, Segment, Timestamp};

use crate::aligned::{Judgement, rule_of};
use crate::alignment::{Alignment, AlignmentState, Offset, SEARCHED_EPOCHS};
use crate::config::{EngineConfig, LateEpochs, SeriesProgress};
use crate::engine::Output;
use crate::event::{GapReason, Series, WarningKind};
use crate::late::EpochRanges;
use crate::same_stream::SameStream;
use crate::sample::{PointSample, has_boundary_packets};
use crate::series::PairSeries;

/// Epochs of a series that wait at most until it is known which belong together.
const HELD_MAX: usize = 32;
/// Arrivals that are remembered to know how late epochs come.
const ARRIVALS_MAX: usize = 256;

/// The series of one segment, class and length of epoch.
#[derive(Debug)]
pub(crate) struct SegmentPairs {
    segment: Segment,
    rule: EpochRule,
    alignment: Alignment,
    /// Boxed, since most have one: a map has room for many.
    series: BTreeMap<u16, Box<PairSeries>>,
    same_stream: SameStream,
    /// The first advance since when epochs are held.
    held_since: Option<Timestamp>,
    is_holding: bool,
    /// Nothing near boundaries tells which epochs belong together.
    is_trusted: bool,
    arrivals: Arrivals,
}

/// How late epochs come, by the collector's clock.
#[derive(Debug, Default)]
struct Arrivals {
    /// The earliest end of those that came since the time was last reported.
    pending: Option<Timestamp>,
    /// When, and how long after their end.
    recent: VecDeque<(Timestamp, Delay)>, // at most ARRIVALS_MAX
}

/// What is known of the two points' packets near boundaries.
#[derive(Clone, Copy)]
pub(crate) struct Samples<'a> {
    pub(crate) upstream: Option<&'a PointSample>,
    pub(crate) downstream: Option<&'a PointSample>,
}

impl Samples<'_> {
    /// How many packets can be compared.
    fn digests(&self) -> usize {
        let points = [self.upstream, self.downstream].into_iter().flatten();
        points.map(|point| point.recent(SEARCHED_EPOCHS).count()).sum()
    }
}

impl SegmentPairs {
    pub(crate) fn new(series: &Series) -> Self {
        let rule = rule_of(series);
        Self {
            segment: series.segment.clone(),
            rule,
            alignment: Alignment::new(rule),
            series: BTreeMap::new(),
            same_stream: SameStream::default(),
            held_since: None,
            is_holding: false,
            is_trusted: false,
            arrivals: Arrivals::default(),
        }
    }

    /// Takes up a series where it was.
    pub(crate) fn resume(&mut self, config: &EngineConfig, progress: &SeriesProgress) {
        if let Some(realigned_epochs) = progress.realigned_epochs {
            self.alignment = Alignment::resumed(self.rule, realigned_epochs);
        }
        let resumed = Box::new(PairSeries::resumed(config, progress));
        self.series.insert(progress.series.tag, resumed);
    }

    pub(crate) fn progress(&self) -> impl Iterator<Item = SeriesProgress> {
        let shown = self.alignment.shown();
        self.series.values().filter_map(move |series| series.progress(shown))
    }

    /// Epochs of an algorithm whose half came after they were concluded.
    pub(crate) fn late(&mut self, tag: u16) -> Option<&mut EpochRanges> {
        self.series.get_mut(&tag).map(|series| series.late())
    }

    /// A gap of a series was reported before a restart.
    pub(crate) fn note_gap(
        &mut self,
        config: &EngineConfig,
        series: &Series,
        (first, last): (Epoch, Epoch),
    ) {
        self.add(config, series);
        if let Some(series) = self.series.get_mut(&series.tag) {
            series.note_gap(first, last);
        }
    }

    /// A half is stored, and handed over later unless it comes too late for that.
    pub(crate) fn note_stored(&mut self, tag: u16, sealed: &Sealed) {
        let is_downstream = sealed.point == self.segment.downstream;
        let later = self.alignment.shown().filter(|_| is_downstream).unwrap_or(0);
        if let Some(series) = self.series.get_mut(&tag) {
            series.note_stored(Epoch(sealed.epoch.0.saturating_sub(later)));
        }
    }

    /// Those of all algorithms.
    pub(crate) fn all_late(&self) -> impl Iterator<Item = LateEpochs> {
        let realigned_epochs = self.alignment.shown().unwrap_or(0);
        self.series.values().filter_map(move |series| series.late_epochs(realigned_epochs))
    }

    /// Whether it has a series of this algorithm.
    pub(crate) fn has(&self, tag: u16) -> bool {
        self.series.contains_key(&tag)
    }

    /// Takes an epoch of one of the points.
    pub(crate) fn receive(
        &mut self,
        config: &EngineConfig,
        series: &Series,
        sealed: Sealed,
        samples: Samples<'_>,
        output: &mut Output,
    ) {
        self.add(config, series);
        if !is_judged(&sealed, samples) {
            self.is_trusted = true;
            if *self.alignment.state() == AlignmentState::Unknown {
                self.alignment.trust();
                self.take_up(output);
            }
        }
        self.note_arrival(&sealed);
        self.hand_over(series.tag, sealed, output);
        self.search(samples, output);
        self.drain(samples, output);
    }

    /// Advances the time.
    pub(crate) fn advance(
        &mut self,
        now: Timestamp,
        patience: Delay,
        samples: Samples<'_>,
        output: &mut Output,
    ) {
        if self.is_holding {
            let length = Delay::from_nanos(self.rule.length_ns().unwrap_or(0));
            let since = *self.held_since.get_or_insert(now);
            if now - since > patience + length {
                self.decide(samples, output);
            }
        }
        let length_ns = self.rule.length_ns().unwrap_or(0);
        let window = patience + Delay::from_nanos(length_ns.saturating_mul(2));
        let lag = self.arrivals.lag(now, window);
        self.series.values_mut().for_each(|series| series.advance(now - lag));
        self.drain(samples, output);
    }

    /// Bytes of memory that its epochs take while they wait.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.series.values().map(|series| series.waiting_bytes()).sum()
    }

    /// Waits for less: its oldest epochs are concluded with what there is. What comes of them
    /// later comes late. Whether there was any to conclude.
    pub(crate) fn make_room(&mut self, samples: Samples<'_>, output: &mut Output) -> bool {
        if self.is_holding {
            self.decide(samples, output);
            return true;
        }
        let largest = self.series.values_mut().max_by_key(|series| series.waiting_bytes());
        let has_room = largest.is_some_and(|series| series.give_up_oldest());
        self.drain(samples, output);
        has_room
    }

    /// A series of its own for each algorithm.
    fn add(&mut self, config: &EngineConfig, series: &Series) {
        if self.series.contains_key(&series.tag) {
            return;
        }
        let mut added = Box::new(PairSeries::new(config, series));
        if let AlignmentState::Aligned { realigned_epochs } = *self.alignment.state() {
            added.align(realigned_epochs);
        }
        self.series.insert(series.tag, added);
    }

    fn hand_over(&mut self, tag: u16, sealed: Sealed, output: &mut Output) {
        let Some(series) = self.series.get_mut(&tag) else { return };
        match self.alignment.state() {
            AlignmentState::Aligned { .. } => series.receive(sealed),
            AlignmentState::Apart(reason) if sealed.point == self.segment.upstream => {
                series.refuse(sealed.epoch, reason.clone(), output);
            }
            AlignmentState::Apart(_) => series.pass_over(sealed.epoch),
            AlignmentState::Unknown => {
                self.is_holding = true;
                series.hold(sealed);
            }
        }
    }

    /// Looks for packets in common where it is not known, or in doubt, which epochs belong
    /// together.
    fn search(&mut self, samples: Samples<'_>, output: &mut Output) {
        let in_doubt = !matches!(self.alignment.state(), AlignmentState::Aligned { .. })
            || self.same_stream.is_missing();
        let (true, Samples { upstream: Some(up), downstream: Some(down) }) = (in_doubt, samples)
        else {
            return self.decide_if_full(samples, output);
        };
        let mut next = self.alignment.clone();
        let Some(offset) = next.search(up, down) else {
            return self.decide_if_full(samples, output);
        };
        self.settle_old(samples, output);
        self.alignment = next;
        self.warn_of_clocks(offset, output);
        self.take_up(output);
    }

    /// What waits by the old numbers is concluded by the old numbers.
    fn settle_old(&mut self, samples: Samples<'_>, output: &mut Output) {
        if matches!(self.alignment.state(), AlignmentState::Aligned { .. }) {
            self.series.values_mut().for_each(|series| series.finish());
            self.drain(samples, output);
        }
        self.same_stream = SameStream::default();
    }

    /// Goes on with what is known now.
    fn take_up(&mut self, output: &mut Output) {
        (self.is_holding, self.held_since) = (false, None);
        match self.alignment.state().clone() {
            AlignmentState::Aligned { realigned_epochs } => self.align(realigned_epochs),
            AlignmentState::Apart(reason) => {
                for series in self.series.values_mut() {
                    series.refuse_held(&reason, output);
                }
            }
            AlignmentState::Unknown => {}
        }
    }

    fn align(&mut self, realigned_epochs: i64) {
        self.series.values_mut().for_each(|series| series.align(realigned_epochs));
    }

    fn decide_if_full(&mut self, samples: Samples<'_>, output: &mut Output) {
        if self.is_holding && self.series.values().any(|series| series.held() >= HELD_MAX) {
            self.decide(samples, output);
        }
    }

    /// No more is waited for.
    fn decide(&mut self, samples: Samples<'_>, output: &mut Output) {
        self.alignment.decide(samples.upstream, samples.downstream);
        if let AlignmentState::Apart(reason) = self.alignment.state() {
            let text = format!(
                "{}: the two ends of the segment do not see the same packets: 0 of {} digests in \
                 common; {reason}",
                self.segment,
                samples.digests()
            );
            output.warn(WarningKind::NotTheSameStream, Some(&self.segment), text);
        }
        self.take_up(output);
    }

    fn drain(&mut self, samples: Samples<'_>, output: &mut Output) {
        let Self { segment, alignment, series, same_stream, is_trusted, .. } = self;
        let mut judge = |epoch: Epoch| -> Judgement {
            if *is_trusted {
                return Judgement::default();
            }
            let (Some(up), Some(down)) = (samples.upstream, samples.downstream) else {
                let refused = Some(GapReason::Unverified);
                return Judgement { refused, is_edge: true, has_whole_ends: false };
            };
            let verdict = alignment.judge(epoch, up, down);
            same_stream.note(epoch, &verdict);
            Judgement { refused: verdict.refused, is_edge: verdict.is_edge, has_whole_ends: false }
        };
        let mut is_unpaired = false;
        for series in series.values_mut() {
            is_unpaired |= series.drain(&mut judge, output);
        }
        if is_unpaired {
            same_stream.note_unpaired();
        }
        if let Some(text) = same_stream.warning() {
            output.warn(WarningKind::NotTheSameStream, Some(segment), format!("{segment}: {text}"));
        }
    }

    fn warn_of_clocks(&self, found: Offset, output: &mut Output) {
        let Offset { offset, digests } = found;
        let seconds = offset.as_nanos() as f64 / 1e9;
        let Segment { upstream, downstream } = &self.segment;
        let what = format!(
            "{downstream} sees packets {seconds:+.6} s after {upstream} by their clocks, by \
             {digests} digests"
        );
        let text = match self.alignment.state() {
            AlignmentState::Aligned { realigned_epochs: 0 } | AlignmentState::Unknown => return,
            AlignmentState::Aligned { realigned_epochs } => {
                format!(
                    "{what}: its epochs are re-aligned by {realigned_epochs}; synchronise the \
                     clocks"
                )
            }
            AlignmentState::Apart(reason) => format!("{what}: {reason}; no estimates are made"),
        };
        output.warn(WarningKind::ClockOffset, Some(&self.segment), text);
    }

    fn note_arrival(&mut self, sealed: &Sealed) {
        let AlignmentState::Aligned { realigned_epochs } = *self.alignment.state() else { return };
        let is_downstream = sealed.point == self.segment.downstream;
        let later = if is_downstream { realigned_epochs } else { 0 };
        let end = self.rule.span_of(Epoch(sealed.epoch.0.saturating_sub(later))).end;
        self.arrivals.note(end);
    }
}

impl Arrivals {
    fn note(&mut self, end: Timestamp) {
        self.pending = Some(self.pending.map_or(end, |pending| pending.min(end)));
    }

    /// How long after their end epochs come, at most, of late. Epochs that come late, since an
    /// agent or the collector was away or a clock is wrong, are waited for as long as others.
    fn lag(&mut self, now: Timestamp, window: Delay) -> Delay {
        if let Some(end) = self.pending.take() {
            self.recent.push_back((now, now - end));
        }
        while let Some(&(then, _)) = self.recent.front()
            && (now - then > window || self.recent.len() > ARRIVALS_MAX)
        {
            self.recent.pop_front();
        }
        self.recent.iter().map(|&(_, lag)| lag).max().unwrap_or(Delay::ZERO).max(Delay::ZERO)
    }
}

/// Whether packets near its boundaries can tell which epochs belong together.
fn is_judged(sealed: &Sealed, samples: Samples<'_>) -> bool {
    let same = match (samples.upstream, samples.downstream) {
        (Some(up), Some(down)) => up.digest() == down.digest(),
        _ => true,
    };
    has_boundary_packets(sealed) && same
}
