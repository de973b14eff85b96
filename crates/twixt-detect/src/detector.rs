//! Which series changed, and since which epoch.

use std::collections::{BTreeMap, VecDeque};

use twixt_model::{Epoch, Segment};

use crate::baseline::{Baseline, EpochEvidence};

/// What is watched: one class of one segment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchedSeries {
    /// The two points.
    pub segment: Segment,
    /// Name of the class of traffic; empty without classes.
    pub class: String,
}

/// When an alarm is raised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DetectorConfig {
    /// Probability of any alarm without a change, over all tests.
    pub false_alarms: f64,
    /// How many tests that is for: two for each series and epoch.
    pub tests: u64,
    /// Epochs that must be known before one is judged.
    pub warm_up_epochs: usize,
    /// Epochs that one is compared with at most: the newest.
    pub baseline_epochs: usize,
    /// A change that lasts for so many epochs is the new normal.
    pub adopted_after_epochs: u64,
}

/// Series that are watched at a time; epochs of further ones are counted and left.
const SERIES_MAX: usize = 16_384;
/// Changes that are over and remembered; then the oldest is forgotten, and counted.
const ENDED_MAX: usize = 4_096;
/// The newest epochs are not yet part of the past: a change that begins slowly would hide itself.
const HELD_OUT: usize = 2;
/// A change is over with an epoch that is at least as likely without one.
const USUAL: f64 = 0.01;

impl DetectorConfig {
    /// At most one false alarm in a thousand runs of so many series and epochs.
    #[must_use]
    pub const fn for_run(series: u64, epochs: u64) -> Self {
        Self {
            false_alarms: 0.001,
            tests: 2 * series * epochs,
            warm_up_epochs: 12,
            baseline_epochs: 300,
            adopted_after_epochs: 600,
        }
    }

    /// An epoch less likely than this raises an alarm.
    #[must_use]
    pub fn level(&self) -> f64 {
        self.false_alarms / self.tests.max(1) as f64
    }

    /// How sure an alarm is, given the probability of its epoch: one minus the probability that any
    /// of all tests gives one like it without a change.
    fn confidence(&self, probability: f64) -> f64 {
        1.0 - (probability * self.tests as f64).min(1.0)
    }
}

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// Packets take longer.
    Delay,
    /// More packets are lost.
    Loss,
}

/// A change of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Where.
    pub series: WatchedSeries,
    /// What.
    pub kind: ChangeKind,
    /// The first epoch that differs.
    pub since: Epoch,
    /// The last epoch that differs; `None` while the change lasts, or if it became the new normal.
    pub until: Option<Epoch>,
    /// How sure it is that there is a change, after all tests that were made.
    pub confidence: f64,
}

/// Watches series, epoch by epoch.
#[derive(Clone, Debug)]
pub struct Detector {
    config: DetectorConfig,
    series: BTreeMap<WatchedSeries, SeriesWatch>, // at most SERIES_MAX
    ended: VecDeque<Change>,                      // at most ENDED_MAX
    counts: DetectorCounts,
}

/// How often bounds were reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DetectorCounts {
    /// Epochs of series that there was no room for.
    pub epochs_refused: u64,
    /// Changes that are over and were forgotten.
    pub changes_forgotten: u64,
}

/// What is known of one series.
#[derive(Clone, Debug)]
struct SeriesWatch {
    baseline: Baseline,
    held_out: VecDeque<EpochEvidence>, // at most HELD_OUT
    /// The changes that last.
    delay: Option<Change>,
    loss: Option<Change>,
}

impl Detector {
    /// Nothing observed yet.
    #[must_use]
    pub fn new(config: DetectorConfig) -> Self {
        let counts = DetectorCounts::default();
        Self { config, series: BTreeMap::new(), ended: VecDeque::new(), counts }
    }

    /// Takes an epoch of a series. Epochs of one series come in order; some may be missing.
    /// Returns the changes that begin with it.
    pub fn observe(
        &mut self,
        series: &WatchedSeries,
        epoch: Epoch,
        evidence: EpochEvidence,
    ) -> Vec<Change> {
        let Self { config, series: all, ended, counts } = self;
        if !all.contains_key(series) && all.len() >= SERIES_MAX {
            counts.epochs_refused += 1;
            return Vec::new();
        }
        let watch = all.entry(series.clone()).or_insert_with(|| SeriesWatch::new(config));
        if watch.baseline.epochs() < config.warm_up_epochs {
            watch.baseline.add(evidence);
            return Vec::new();
        }
        let begun = watch.judge(config, series, epoch, evidence, ended);
        while ended.len() > ENDED_MAX {
            ended.pop_front();
            counts.changes_forgotten += 1;
        }
        begun
    }

    /// All changes that last, and those that are over and not forgotten, in order of their start.
    #[must_use]
    pub fn changes(&self) -> Vec<Change> {
        let lasting = self.series.values().flat_map(|watch| [&watch.delay, &watch.loss]);
        let mut changes: Vec<Change> =
            self.ended.iter().chain(lasting.flatten()).cloned().collect();
        changes.sort_by(|one, other| {
            (one.since, &one.series, one.kind).cmp(&(other.since, &other.series, other.kind))
        });
        changes
    }

    /// The series that are watched.
    pub fn series(&self) -> impl Iterator<Item = &WatchedSeries> {
        self.series.keys()
    }

    /// How often bounds were reached.
    #[must_use]
    pub const fn counts(&self) -> DetectorCounts {
        self.counts
    }
}

impl SeriesWatch {
    const fn new(config: &DetectorConfig) -> Self {
        let baseline = Baseline::new(config.baseline_epochs);
        Self { baseline, held_out: VecDeque::new(), delay: None, loss: None }
    }

    /// Judges an epoch by those before. Returns the changes that begin with it.
    fn judge(
        &mut self,
        config: &DetectorConfig,
        series: &WatchedSeries,
        epoch: Epoch,
        evidence: EpochEvidence,
        ended: &mut VecDeque<Change>,
    ) -> Vec<Change> {
        let delay = self.baseline.delay_probability(&evidence);
        let loss = self.baseline.loss_probability(&evidence);
        let judged = |kind, probability| Judged { config, series, kind, epoch, probability };
        let mut begun = judged(ChangeKind::Delay, delay).follow(&mut self.delay, ended);
        begun.extend(judged(ChangeKind::Loss, loss).follow(&mut self.loss, ended));
        if self.is_adopted(config, epoch) {
            ended.extend([self.delay.take(), self.loss.take()].into_iter().flatten());
            *self = Self::new(config);
        }
        if self.delay.is_none() && self.loss.is_none() {
            self.remember(evidence);
        } else {
            self.held_out.clear();
        }
        begun
    }

    /// What was held out long enough becomes a part of the past.
    fn remember(&mut self, evidence: EpochEvidence) {
        self.held_out.push_back(evidence);
        if self.held_out.len() > HELD_OUT
            && let Some(oldest) = self.held_out.pop_front()
        {
            self.baseline.add(oldest);
        }
    }

    /// Whether a change has lasted so long that it is the new normal.
    fn is_adopted(&self, config: &DetectorConfig, epoch: Epoch) -> bool {
        let lasting = [&self.delay, &self.loss].into_iter().flatten();
        let mut epochs = lasting.map(|change| epoch.0.abs_diff(change.since.0));
        epochs.any(|epochs| epochs >= config.adopted_after_epochs)
    }
}

/// An epoch of a series, and how likely it is without a change.
struct Judged<'a> {
    config: &'a DetectorConfig,
    series: &'a WatchedSeries,
    kind: ChangeKind,
    epoch: Epoch,
    probability: Option<f64>,
}

impl Judged<'_> {
    /// Begins or ends the change that lasts. Returns one that begins.
    fn follow(self, lasting: &mut Option<Change>, ended: &mut VecDeque<Change>) -> Vec<Change> {
        // An epoch of which nothing is known neither begins nor ends a change.
        let Some(probability) = self.probability else { return Vec::new() };
        if lasting.is_none() && probability < self.config.level() {
            *lasting = Some(Change {
                series: self.series.clone(),
                kind: self.kind,
                since: self.epoch,
                until: None,
                confidence: self.config.confidence(probability),
            });
            return lasting.iter().cloned().collect();
        }
        if probability >= USUAL
            && let Some(change) = lasting.take()
        {
            ended
                .push_back(Change { until: Some(Epoch(self.epoch.0.saturating_sub(1))), ..change });
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twixt_model::PointId;

    fn series(class: &str) -> WatchedSeries {
        let point = |name: &str| PointId(name.to_owned());
        let segment = Segment { upstream: point("a"), downstream: point("b") };
        WatchedSeries { segment, class: class.to_owned() }
    }

    /// Epochs that vary a little, without chance: between 5.0 and 5.9 ms, 1 of 1000 lost now and then.
    fn calm(number: i64) -> EpochEvidence {
        EpochEvidence {
            mean_ns: Some(5e6 + 1e5 * (number * 7 % 10) as f64),
            error_ns: Some(1e3),
            packets: 1_000,
            lost: Some(u64::from(number % 4 == 0)),
        }
    }

    /// Observes 60 epochs and returns the changes: kind, since, until.
    fn changes_of(
        config: DetectorConfig,
        epoch: impl Fn(i64) -> EpochEvidence,
    ) -> Vec<(ChangeKind, i64, Option<i64>)> {
        let mut detector = Detector::new(config);
        for number in 0..60 {
            detector.observe(&series("voice"), Epoch(number), epoch(number));
        }
        let shown = |change: &Change| (change.kind, change.since.0, change.until.map(|of| of.0));
        detector.changes().iter().map(shown).collect()
    }

    #[track_caller]
    fn check(epoch: impl Fn(i64) -> EpochEvidence, expected: &[(ChangeKind, i64, Option<i64>)]) {
        assert_eq!(changes_of(DetectorConfig::for_run(1, 60), epoch), expected);
    }

    #[test]
    fn nothing_changes_without_a_change() {
        check(calm, &[]);
    }

    #[test]
    fn a_queue_and_lost_packets_are_found_with_their_first_and_last_epoch() {
        let slow = |number: i64| match number {
            30..=44 => EpochEvidence { mean_ns: Some(45e6), ..calm(number) },
            _ => calm(number),
        };
        check(slow, &[(ChangeKind::Delay, 30, Some(44))]);
        let losing = |number: i64| match number {
            30..=44 => EpochEvidence { lost: Some(50), ..calm(number) },
            _ => calm(number),
        };
        check(losing, &[(ChangeKind::Loss, 30, Some(44))]);
        let both = |number: i64| if number < 50 { calm(number) } else { losing(30) };
        check(both, &[(ChangeKind::Loss, 50, None)]);
    }

    /// A rise that starts too small to be seen must not become a part of what is normal.
    #[test]
    fn a_slow_beginning_does_not_hide_the_rest() {
        let growing = |number: i64| {
            let rise = (number - 30).max(0) as f64 * 8e6;
            EpochEvidence { mean_ns: calm(number).mean_ns.map(|mean| mean + rise), ..calm(number) }
        };
        let found = changes_of(DetectorConfig::for_run(1, 60), growing);
        assert!(matches!(found[..], [(ChangeKind::Delay, 31..=33, None)]), "{found:?}");
    }

    #[test]
    fn unknown_epochs_neither_begin_nor_end_a_change() {
        let with_gaps = |number: i64| match number {
            20..=25 | 35..=37 => EpochEvidence::default(),
            30..=40 => EpochEvidence { mean_ns: Some(45e6), ..calm(number) },
            _ => calm(number),
        };
        check(with_gaps, &[(ChangeKind::Delay, 30, Some(40))]);
    }

    #[test]
    fn what_lasts_becomes_normal() {
        let config = DetectorConfig { adopted_after_epochs: 10, ..DetectorConfig::for_run(1, 60) };
        let slow = |number: i64| match number {
            20.. => {
                EpochEvidence { mean_ns: calm(number).mean_ns.map(|of| of + 4e7), ..calm(number) }
            }
            _ => calm(number),
        };
        assert_eq!(changes_of(config, slow), [(ChangeKind::Delay, 20, None)]);
        // And what comes after that is compared with it.
        let worse = |number: i64| match number {
            50.. => EpochEvidence { mean_ns: Some(5e8), ..calm(number) },
            _ => slow(number),
        };
        let found = changes_of(config, worse);
        assert_eq!(found, [(ChangeKind::Delay, 20, None), (ChangeKind::Delay, 50, None)]);
    }

    #[test]
    fn confidence_counts_all_tests() {
        let config = DetectorConfig { tests: 1_000, ..DetectorConfig::for_run(1, 1) };
        assert_eq!(config.level(), 1e-6);
        assert!((config.confidence(1e-7) - 0.9999).abs() < 1e-12);
        assert_eq!(config.confidence(0.5), 0.0);
    }
}
