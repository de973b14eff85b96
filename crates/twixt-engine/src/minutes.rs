//! Sums the epochs of a series up, minute by minute: from sums and counts, never from means.

use std::collections::BTreeMap;

use twixt_model::{Delay, Epoch, EpochRule, Estimate, Span, Timestamp, by_scope};

/// Minutes that are summed up at a time; the oldest is told early for a new one.
const OPEN_MINUTES_MAX: usize = 4;
/// Estimates of a minute that wait to be added up. When there are more, they are added up early.
const ESTIMATES_MAX: usize = 1 << 14;
/// Sampled packets of a minute that wait to be put together, alike.
const SAMPLED_MAX: usize = 1 << 16;

/// The minutes of a series that are not over.
#[derive(Debug)]
pub(super) struct Minutes {
    rule: EpochRule,
    length_ns: i64,              // positive
    open: BTreeMap<i64, Minute>, // at most OPEN_MINUTES_MAX
    /// Minutes that began before this were told.
    told: Timestamp,
}

/// What has been told of a minute.
#[derive(Debug, Default)]
struct Minute {
    estimates: Vec<Estimate>, // at most ESTIMATES_MAX and one epoch's
    epochs: u64,
    gaps: u64,
}

/// A minute that is over.
#[derive(Debug, PartialEq)]
pub(super) struct Summed {
    pub(super) span: Span,
    pub(super) estimates: Vec<Estimate>,
    pub(super) epochs: u64,
    pub(super) gaps: u64,
}

impl Minutes {
    /// Minutes of this length, or of an epoch if that is longer. Those that began before `told`
    /// are left out.
    pub(super) fn new(rule: EpochRule, minute: Delay, told: Timestamp) -> Self {
        let length_ns = minute.as_nanos().max(rule.length_ns().unwrap_or(i64::MAX)).max(1);
        Self { rule, length_ns, open: BTreeMap::new(), told }
    }

    /// Minutes that began before this were told.
    pub(super) const fn told(&self) -> Timestamp {
        self.told
    }

    /// The first epoch of the oldest minute that is not over.
    pub(super) fn first_epoch(&self) -> Option<Epoch> {
        self.first_epochs().next()
    }

    /// The first epochs of all minutes that are not over.
    pub(super) fn first_epochs(&self) -> impl Iterator<Item = Epoch> {
        self.open.keys().map(|&minute| self.rule.epoch_of(self.span_of(minute).start))
    }

    /// Adds an epoch that was estimated.
    pub(super) fn add(&mut self, epoch: Epoch, estimates: &[Estimate]) -> Option<Summed> {
        let number = self.minute_of(epoch);
        if let Some(minute) = self.minute(number) {
            minute.epochs += 1;
            minute.estimates.extend_from_slice(estimates);
            if minute.estimates.len() > ESTIMATES_MAX || minute.sampled() > SAMPLED_MAX {
                minute.estimates = minute.added_up();
            }
        }
        self.surplus()
    }

    /// Adds epochs of which nothing can be told. Minutes of which nothing else is known either
    /// are left out, but the last.
    pub(super) fn add_gap(&mut self, first: Epoch, last: Epoch) -> Option<Summed> {
        let (from, to) = (self.minute_of(first), self.minute_of(last));
        let open: Vec<i64> = self.open.range(from..=to).map(|(&minute, _)| minute).collect();
        for number in open.into_iter().filter(|&number| number != to).chain([to]) {
            let span = self.span_of(number);
            let start = first.max(self.rule.epoch_of(span.start));
            let end = last.min(self.rule.epoch_of(span.end));
            if let Some(minute) = self.minute(number) {
                let epochs = end.0.abs_diff(start.0).saturating_add(1);
                minute.gaps = minute.gaps.saturating_add(epochs);
            }
        }
        self.surplus()
    }

    /// The next minute all of whose epochs are concluded, when all up to `through` are.
    pub(super) fn poll(&mut self, through: Epoch) -> Option<Summed> {
        let (&minute, _) = self.open.first_key_value()?;
        let next = self.rule.span_of(Epoch(through.0.saturating_add(1))).start;
        (self.span_of(minute).end < next).then(|| self.close_first()).flatten()
    }

    fn minute(&mut self, number: i64) -> Option<&mut Minute> {
        let is_told = self.span_of(number).start < self.told;
        (!is_told).then(|| self.open.entry(number).or_default())
    }

    fn surplus(&mut self) -> Option<Summed> {
        (self.open.len() > OPEN_MINUTES_MAX).then(|| self.close_first()).flatten()
    }

    fn close_first(&mut self) -> Option<Summed> {
        let (number, minute) = self.open.pop_first()?;
        let span = self.span_of(number);
        self.told = self.told.max(span.end + Delay::from_nanos(1));
        let estimates = minute.added_up();
        Some(Summed { span, estimates, epochs: minute.epochs, gaps: minute.gaps })
    }

    fn minute_of(&self, epoch: Epoch) -> i64 {
        self.rule.span_of(epoch).start.as_nanos().div_euclid(self.length_ns)
    }

    fn span_of(&self, minute: i64) -> Span {
        let start_ns = minute.saturating_mul(self.length_ns);
        let end_ns = start_ns.saturating_add(self.length_ns - 1);
        Span { start: Timestamp::from_nanos(start_ns), end: Timestamp::from_nanos(end_ns) }
    }
}

impl Minute {
    fn sampled(&self) -> usize {
        let samples = self.estimates.iter().filter_map(|estimate| estimate.sample.as_ref());
        samples.map(|sample| sample.packets().len()).sum()
    }

    fn added_up(&self) -> Vec<Estimate> {
        by_scope(&self.estimates).into_values().collect()
    }
}
