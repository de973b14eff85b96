//! One series of a point: the results of a one-point algorithm, epoch by epoch and minute by
//! minute.

use std::collections::{BTreeMap, BTreeSet};

use twixt_measure::Sealed;
use twixt_model::{Delay, Epoch, EpochRule, Span, Timestamp};
use twixt_synopsis::{Algorithm, AnySynopsis};

use crate::aligned::rule_of;
use crate::config::{EngineConfig, SeriesProgress};
use crate::engine::Output;
use crate::event::{EngineEvent, PointCounts, PointEstimate, Series};

/// Most epochs that are remembered as reported. Older ones than these that come late are counted.
const REPORTED_MAX: usize = 256;
/// Minutes that are merged at a time; the oldest is reported early for a new one.
const OPEN_MINUTES_MAX: usize = 4;

/// The epochs of one point, class and one-point algorithm.
#[derive(Debug)]
pub(crate) struct PointSeries {
    series: Series,
    algorithm: &'static Algorithm,
    rule: EpochRule,
    minute_ns: i64, // positive
    patience: Delay,
    /// Everything up to this epoch was reported.
    through: Epoch,
    /// Epochs and runs beyond that were reported, here or before a restart.
    reported: BTreeSet<(Epoch, u64)>, // at most REPORTED_MAX
    /// Those of them that a replay has not brought back yet.
    to_replay: BTreeSet<(Epoch, u64)>,
    minutes: BTreeMap<i64, Merged>, // at most OPEN_MINUTES_MAX
    /// Minutes that began before this were reported.
    summarised: Timestamp,
    newest: Option<Epoch>,
}

/// A part of a minute, summed up from its epochs.
#[derive(Debug)]
struct Merged {
    synopsis: Box<dyn AnySynopsis>,
    counts: PointCounts,
    epochs: u64,
    run: u64,
    /// When something was added last, as the time was reported next.
    touched: Option<Timestamp>,
}

impl PointSeries {
    pub(crate) fn new(
        config: &EngineConfig,
        algorithm: &'static Algorithm,
        series: Series,
    ) -> Self {
        let rule = rule_of(&series);
        let epoch_ns = rule.length_ns().unwrap_or(i64::MAX);
        Self {
            series,
            algorithm,
            rule,
            minute_ns: config.minute.as_nanos().max(epoch_ns).max(1),
            patience: config.patience,
            through: Epoch(i64::MIN),
            reported: BTreeSet::new(),
            to_replay: BTreeSet::new(),
            minutes: BTreeMap::new(),
            summarised: Timestamp::MIN,
            newest: None,
        }
    }

    pub(crate) fn resume(&mut self, progress: &SeriesProgress) {
        self.through = progress.through;
        self.reported = progress.reported.iter().copied().collect();
        self.to_replay = self.reported.clone();
        self.summarised = progress.summarised;
    }

    pub(crate) fn progress(&self) -> Option<SeriesProgress> {
        let &(first, _) = self.reported.first()?;
        let minute = self.minutes.keys().next().map(|&minute| self.span_of(minute).start);
        let needed = minute.map_or(first, |start| first.min(self.rule.epoch_of(start)));
        Some(SeriesProgress {
            series: self.series.clone(),
            through: self.through,
            last: None,
            reported: self.reported.iter().copied().collect(),
            late: Vec::new(),
            summarised: self.summarised,
            realigned_epochs: None,
            short_delays: 0,
            replay_from: needed,
        })
    }

    /// Reports an epoch, once, and keeps it for its minute.
    pub(crate) fn receive(&mut self, sealed: &Sealed, output: &mut Output) {
        let key = (sealed.epoch, sealed.run);
        let is_replayed = self.to_replay.remove(&key);
        if is_replayed {
            output.counts.replayed += 1;
        } else if sealed.epoch <= self.through {
            output.counts.late += 1;
            return;
        } else if !self.note(key) {
            output.counts.duplicates += 1;
            return;
        } else {
            self.report(sealed, output);
        }
        self.newest = self.newest.max(Some(sealed.epoch));
        self.merge(sealed);
        if self.minutes.len() > OPEN_MINUTES_MAX {
            self.summarise_first(output);
        }
    }

    /// Reports minutes that are over.
    pub(crate) fn advance(&mut self, now: Timestamp, output: &mut Output) {
        let minute = Delay::from_nanos(self.minute_ns);
        for merged in self.minutes.values_mut() {
            merged.touched.get_or_insert(now);
        }
        while let Some((&number, merged)) = self.minutes.first_key_value() {
            let idle = now - merged.touched.unwrap_or(now);
            let end = self.span_of(number).end;
            let is_passed = self.newest.is_some_and(|newest| self.rule.span_of(newest).start > end);
            let wait = if is_passed { self.patience } else { self.patience + minute };
            if idle < wait {
                break;
            }
            self.summarise_first(output);
        }
    }

    /// Whether it is new.
    fn note(&mut self, key: (Epoch, u64)) -> bool {
        let is_new = self.reported.insert(key);
        if self.reported.len() > REPORTED_MAX
            && let Some((oldest, _)) = self.reported.pop_first()
        {
            self.through = self.through.max(oldest);
        }
        is_new
    }

    fn report(&self, sealed: &Sealed, output: &mut Output) {
        let span = match self.rule.length_ns() {
            Some(_) => self.rule.span_of(sealed.epoch),
            None => sealed.seen.unwrap_or(Span::at(Timestamp::from_nanos(0))),
        };
        let counts = PointCounts::of(sealed);
        let synopsis = sealed.synopsis.as_ref();
        match PointEstimate::of(&self.series, self.algorithm, synopsis, span, counts) {
            Ok(estimate) => {
                let estimate = PointEstimate { epoch: sealed.epoch, run: sealed.run, ..estimate };
                output.counts.observed += 1;
                output.events.push_back(EngineEvent::Observed(Box::new(estimate)));
            }
            Err(_) => output.counts.unknown_algorithm += 1,
        }
    }

    fn merge(&mut self, sealed: &Sealed) {
        if self.rule.length_ns().is_none() {
            return;
        }
        let start = self.rule.span_of(sealed.epoch).start;
        let number = start.as_nanos().div_euclid(self.minute_ns);
        if self.span_of(number).start < self.summarised {
            return;
        }
        let merged = self.minutes.entry(number).or_insert_with(|| Merged {
            synopsis: sealed.synopsis.fresh(),
            counts: PointCounts::default(),
            epochs: 0,
            run: sealed.run,
            touched: None,
        });
        // Other settings than those of the minute's first epoch: the rest of it is left out.
        if merged.synopsis.try_merge(sealed.synopsis.as_ref()).is_ok() {
            merged.counts.add(PointCounts::of(sealed));
            merged.epochs += 1;
        }
        merged.touched = None;
    }

    fn summarise_first(&mut self, output: &mut Output) {
        let Some((number, merged)) = self.minutes.pop_first() else { return };
        let span = self.span_of(number);
        self.summarised = self.summarised.max(span.end + Delay::from_nanos(1));
        let Merged { synopsis, counts, epochs, run, .. } = merged;
        let estimate =
            PointEstimate::of(&self.series, self.algorithm, synopsis.as_ref(), span, counts);
        if let Ok(estimate) = estimate {
            let epoch = self.rule.epoch_of(span.start);
            let estimate = PointEstimate { epoch, run, epochs, ..estimate };
            output.counts.summaries += 1;
            output.events.push_back(EngineEvent::ObservedSummary(Box::new(estimate)));
        }
    }

    fn span_of(&self, minute: i64) -> Span {
        let start_ns = minute.saturating_mul(self.minute_ns);
        let end_ns = start_ns.saturating_add(self.minute_ns - 1);
        Span { start: Timestamp::from_nanos(start_ns), end: Timestamp::from_nanos(end_ns) }
    }
}
