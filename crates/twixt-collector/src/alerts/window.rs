//! The epochs of a window summed up, and whether they are enough to judge.
//!
//! Windows follow each other without overlap, and are aligned to 1970. One is over when an epoch
//! of a later one comes, or a gap that reaches into it: time is that of the data.

use twixt_history::Row;
use twixt_model::{
    Delay, Estimate, Evidence, Histogram, LossRange, RoundTripEstimate, Scope, ShareAbove, Span,
    Timestamp, needed_for, total,
};

use super::machine::Thresholds;
use super::measure::Measure;

/// Buckets of delays: 2.2 % wide over 10 doublings, wider over more.
const BUCKETS_MAX: usize = 320;

/// The window of a series that is not over.
#[derive(Debug)]
pub(super) struct Window {
    length_ns: i64, // positive
    measure: Measure,
    thresholds: Thresholds,
    /// Round trips that take longer are slow.
    longer_than_ns: i64,
    open: Option<OpenWindow>,
    /// What starts up to here was taken from what is stored, and may be reported once more.
    stored_ns: Option<i64>,
}

/// A window, and the estimates in it.
#[derive(Debug)]
struct OpenWindow {
    number: i64,
    epochs: u64,
    gaps: u64,
    /// Sums and counts, without samples and reasons.
    sum: Option<Estimate>,
    /// The first reason why something is not known.
    reason: Option<String>,
    /// Where percentiles or jitter are asked for.
    sampled: Sampled,
    /// Where round trips are asked for.
    slow: MeasuredTrips,
}

/// Round trips of a window.
#[derive(Debug, Default)]
struct MeasuredTrips {
    times: Option<Histogram>,
    /// Some were measured by an algorithm that does not know what it missed.
    is_biased: bool,
}

/// The contribution of an epoch, as estimated or as stored.
#[derive(Debug)]
struct Seen {
    /// Without sample and reason.
    sums: Estimate,
    reason: Option<String>,
    /// Delays, and the sum and number of their differences, where a measure asks for them.
    sample: Option<(Histogram, (f64, u64))>,
}

/// What samples tell.
#[derive(Debug, Default)]
struct Sampled {
    delays: Option<Histogram>,
    jitter_ns: f64,
    steps: u64,
    /// Some epoch has packets and no sample.
    has_hole: bool,
}

/// A window that is over.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    pub(super) span: Span,
    pub(super) epochs: u64,
    pub(super) gaps: u64,
    pub(super) packets: u64,
    /// Nanoseconds or a share; or why it is not known.
    pub(super) value: Result<f64, String>,
}

impl Reading {
    /// The end of the window, inclusive.
    pub(super) const fn end_ns(&self) -> i64 {
        self.span.end.as_nanos()
    }
}

impl Window {
    pub(super) const fn new(length_ns: i64, measure: Measure, thresholds: Thresholds) -> Self {
        let length_ns = if length_ns > 0 { length_ns } else { 1 };
        let longer_than_ns = 0;
        Self { length_ns, measure, thresholds, longer_than_ns, open: None, stored_ns: None }
    }

    /// The same, with a limit for round trips.
    pub(super) const fn longer_than(mut self, longer_than_ns: i64) -> Self {
        self.longer_than_ns = longer_than_ns;
        self
    }

    /// Adds round trips of an epoch, or that there were none. Returns the previous window, if it is
    /// over.
    pub(super) fn add_round_trips(
        &mut self,
        span: Span,
        found: Option<&RoundTripEstimate>,
        minimum: u64,
    ) -> Option<Reading> {
        let number = self.number_of(span.start);
        let ended = self.turn_to(number, minimum);
        let open = self.open.as_mut();
        if let Some(window) = open.filter(|window| window.number == number) {
            window.epochs += 1;
            window.slow.add(found);
        }
        ended
    }

    /// Adds what is stored of an epoch, or that nothing is known of it, from before a
    /// restart. Returns windows that are over.
    pub(super) fn add_stored(&mut self, row: &Row, minimum_packets: u64) -> Vec<Reading> {
        let ended = match row.is_gap() {
            true => self.add_gap(row.span(), row.gaps, minimum_packets),
            false => {
                let seen = Seen::of_row(row, self.measure);
                self.add_seen(row.span(), &seen, minimum_packets).into_iter().collect()
            }
        };
        let end_ns = if row.is_gap() { row.end_ns } else { row.start_ns };
        self.stored_ns = self.stored_ns.max(Some(end_ns));
        ended
    }

    /// Adds an epoch. Returns the previous window, if it is over.
    pub(super) fn add(
        &mut self,
        span: Span,
        estimate: &Estimate,
        minimum_packets: u64,
    ) -> Option<Reading> {
        if Some(span.start.as_nanos()) <= self.stored_ns {
            return None;
        }
        self.add_seen(span, &Seen::of(estimate, self.measure), minimum_packets)
    }

    /// Adds an epoch that was a gap before, if its window is not over. Whether it is not.
    pub(super) fn add_late(&mut self, span: Span, estimate: &Estimate) -> bool {
        let number = self.number_of(span.start);
        let open = self.open.as_mut().filter(|window| window.number == number);
        let Some(window) = open else { return false };
        window.gaps = window.gaps.saturating_sub(1);
        window.add(&Seen::of(estimate, self.measure));
        true
    }

    /// What it comes to so far.
    pub(super) fn close(self, minimum_packets: u64) -> Option<Reading> {
        self.open.as_ref().map(|open| open.reading(&self, minimum_packets))
    }

    fn add_seen(&mut self, span: Span, seen: &Seen, minimum_packets: u64) -> Option<Reading> {
        let number = self.number_of(span.start);
        let ended = self.turn_to(number, minimum_packets);
        let open = self.open.as_mut();
        if let Some(window) = open.filter(|window| window.number == number) {
            window.add(seen);
        }
        ended
    }

    /// Adds epochs of which nothing is known. Returns the windows that are over: of those that
    /// lie in the gap with all of their time, one speaks for all.
    pub(super) fn add_gap(
        &mut self,
        span: Span,
        epochs: u64,
        minimum_packets: u64,
    ) -> Vec<Reading> {
        if Some(span.end.as_nanos()) <= self.stored_ns {
            return Vec::new();
        }
        let (first, last) = (self.number_of(span.start), self.number_of(span.end));
        let inner = (last - first > 1).then_some(last - 1);
        let parts = (last - first).clamp(0, 2) as u64 + 1;
        let mut ended = Vec::new();
        for number in [Some(first), inner, (last > first).then_some(last)].into_iter().flatten() {
            ended.extend(self.turn_to(number, minimum_packets));
            if let Some(window) = self.open.as_mut().filter(|window| window.number == number) {
                window.gaps = window.gaps.saturating_add((epochs / parts).max(1));
            }
        }
        ended
    }

    /// The number of the window that a moment is in.
    pub(super) const fn number_of(&self, moment: Timestamp) -> i64 {
        moment.as_nanos().div_euclid(self.length_ns)
    }

    /// The time of a window.
    pub(super) const fn span_of(&self, number: i64) -> Span {
        let start_ns = number.saturating_mul(self.length_ns);
        let end_ns = start_ns.saturating_add(self.length_ns - 1);
        Span { start: Timestamp::from_nanos(start_ns), end: Timestamp::from_nanos(end_ns) }
    }

    /// Opens a window, unless it is an earlier one: those were reported.
    fn turn_to(&mut self, number: i64, minimum_packets: u64) -> Option<Reading> {
        if self.open.as_ref().is_some_and(|window| number <= window.number) {
            return None;
        }
        let ended = self.open.replace(OpenWindow::new(number))?;
        Some(ended.reading(self, minimum_packets))
    }
}

impl OpenWindow {
    fn new(number: i64) -> Self {
        Self {
            number,
            epochs: 0,
            gaps: 0,
            sum: None,
            reason: None,
            sampled: Sampled::default(),
            slow: MeasuredTrips::default(),
        }
    }

    fn add(&mut self, seen: &Seen) {
        self.epochs += 1;
        self.sampled.add(seen);
        self.reason = self.reason.take().or_else(|| seen.reason.clone());
        self.sum = total(self.sum.iter().chain([&seen.sums]));
    }

    fn reading(&self, window: &Window, minimum_packets: u64) -> Reading {
        Reading {
            span: window.span_of(self.number),
            epochs: self.epochs,
            gaps: self.gaps,
            packets: match window.measure {
                Measure::Share => self.slow.count(),
                _ => self.sum.as_ref().map_or(0, |sum| sum.evidence.packets),
            },
            value: self.value(window, minimum_packets),
        }
    }

    fn value(&self, window: &Window, minimum_packets: u64) -> Result<f64, String> {
        let measure = window.measure;
        if measure == Measure::Gaps {
            return Ok(self.gaps as f64 / self.gaps.saturating_add(self.epochs).max(1) as f64);
        }
        if measure == Measure::Share {
            return self.slow.share(window, minimum_packets);
        }
        let sum = self.sum.as_ref().ok_or("no epoch has an estimate")?;
        let evidence = &sum.evidence;
        let packets = if measure == Measure::Loss { evidence.packets } else { evidence.used };
        if packets < minimum_packets.max(1) {
            return Err(format!(
                "{packets} packets are too few: minimum_packets = {minimum_packets}"
            ));
        }
        let unknown = || self.reason.clone().unwrap_or_else(|| format!("{measure} is unknown"));
        let value = match measure {
            Measure::Mean => sum.delay.map(|delay| delay.mean_ns()),
            Measure::Deviation => sum.delay.and_then(|delay| delay.deviation_ns),
            Measure::Loss => loss(evidence, &window.thresholds),
            Measure::Jitter => self.sampled.jitter(),
            _ => return self.percentile(sum, measure),
        };
        value.ok_or_else(unknown)
    }

    /// Exactly, if one epoch is all there is and says so; else from samples.
    fn percentile(&self, sum: &Estimate, measure: Measure) -> Result<f64, String> {
        let share = measure.percentile_share().ok_or("it is not a percentile")?;
        let exact = sum.delay.and_then(|delay| delay.order).and_then(|order| order.at(share));
        if let Some(exact) = exact.filter(|_| self.epochs == 1) {
            return Ok(exact.as_nanos() as f64);
        }
        let delays = self.sampled.delays.as_ref().filter(|_| !self.sampled.has_hole);
        let delays = delays.ok_or("percentiles need the algorithm sample")?;
        let is_everything = delays.weight() <= delays.count() as f64;
        if !is_everything && delays.count() < needed_for(share) {
            let (count, needed) = (delays.count(), needed_for(share));
            return Err(format!("{count} sampled packets are too few: {measure} needs {needed}"));
        }
        let value_ns = delays.percentile(share).ok_or("the sample is empty")?;
        Ok(value_ns as f64)
    }
}

impl MeasuredTrips {
    fn add(&mut self, found: Option<&RoundTripEstimate>) {
        let Some(found) = found.filter(|found| found.matched > 0) else { return };
        let has_interval = found.times.as_ref().is_some_and(|times| times.half_width_ns.is_some());
        self.is_biased |= !has_interval;
        if let Some(times) = found.distribution.as_deref() {
            self.times.get_or_insert_with(|| Histogram::new(BUCKETS_MAX)).merge(times);
        }
    }

    fn count(&self) -> u64 {
        self.times.as_ref().map_or(0, Histogram::count)
    }

    /// The end of the interval of the share that decides: few round trips must not raise an alert.
    fn share(&self, window: &Window, minimum: u64) -> Result<f64, String> {
        let count = self.count();
        let share = self.times.as_ref().and_then(|times| times.share_above(window.longer_than_ns));
        let share = share.filter(|_| count >= minimum).ok_or_else(|| {
            format!("{count} round trips are too few: minimum_packets = {minimum}")
        })?;
        if self.is_biased {
            return Err("the algorithm does not know which round trips it missed".to_owned());
        }
        let ShareAbove { low, high, .. } = share;
        window.thresholds.decided_by(low, high).ok_or_else(|| {
            let percent = |share: f64| 100.0 * share;
            format!("the share is between {:.2} % and {:.2} %", percent(low), percent(high))
        })
    }
}

/// The share that was lost. Where only a range is known, its end that decides: packets that a point
/// did not observe must not raise an alert.
fn loss(evidence: &Evidence, thresholds: &Thresholds) -> Option<f64> {
    let share = |lost: u64| lost as f64 / evidence.packets as f64;
    let LossRange { min, max } = evidence.loss_range()?;
    match min == max {
        true => Some(share(min)),
        false => thresholds.decided_by(share(min), share(max)),
    }
}

impl Seen {
    fn of(estimate: &Estimate, measure: Measure) -> Self {
        let Estimate { scope, span, evidence, delay, reason, sample, .. } = estimate;
        let sample = sample.as_deref().filter(|_| needs_sample(measure));
        Self {
            sums: Estimate {
                scope: scope.clone(),
                span: *span,
                evidence: *evidence,
                delay: *delay,
                reason: None,
                sample: None,
                crossings: None,
            },
            reason: reason.clone(),
            sample: sample.map(|sample| (sample.histogram(BUCKETS_MAX), sample.steps())),
        }
    }

    fn of_row(row: &Row, measure: Measure) -> Self {
        let part = row.delay.as_ref();
        let evidence = Evidence {
            packets: row.packets.unwrap_or(0),
            used: row.used.unwrap_or(0),
            lost: row.lost,
            lost_between: row.loss_range().filter(|_| row.lost.is_none()),
            clock_error: row.clock_error_ns.map(Delay::from_nanos),
            bytes: row.bytes,
            strays: row.strays,
            strays_between: row.stray_range().filter(|_| row.strays.is_none()),
        };
        let sample = part.filter(|_| needs_sample(measure)).and_then(|part| {
            let steps = part.steps.unwrap_or_default();
            Some((part.histogram()?, (steps.sum_ns, steps.count)))
        });
        Self {
            sums: Estimate {
                scope: Scope::All,
                span: row.span(),
                evidence,
                delay: part.map(twixt_history::DelayPart::estimate),
                reason: None,
                sample: None,
                crossings: None,
            },
            reason: row.reason.clone(),
            sample,
        }
    }
}

fn needs_sample(measure: Measure) -> bool {
    measure.percentile_share().is_some() || measure == Measure::Jitter
}

impl Sampled {
    fn add(&mut self, seen: &Seen) {
        let Some((sampled, (sum_ns, steps))) = &seen.sample else {
            self.has_hole |= seen.sums.evidence.packets > 0;
            return;
        };
        let delays = self.delays.get_or_insert_with(|| Histogram::new(BUCKETS_MAX));
        delays.merge(sampled);
        self.jitter_ns += sum_ns;
        self.steps = self.steps.saturating_add(*steps);
    }

    fn jitter(&self) -> Option<f64> {
        (self.steps > 0 && !self.has_hole).then(|| self.jitter_ns / self.steps as f64)
    }
}

#[cfg(test)]
mod tests;
