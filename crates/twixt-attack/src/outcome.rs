//! What one answer is worth: the claims in it, counted by whether they hold.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::product::{Answer, Document, Estimated};
use crate::question::DelayQuestion;
use crate::truth::{ALL, Fates, Truth};

/// A mean without an interval is far off beyond this relative error.
const FAR_OFF: f64 = 0.5;
/// Rounding to nanoseconds.
const ROUNDING_NS: f64 = 1.0;
/// Reasons that are kept, the most frequent ones.
const REASONS_MAX: usize = 3;
/// Wrong claims that are kept, to be shown.
const EXAMPLES_MAX: usize = 5;

/// Claims of one answer, and how many of them hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswerOutcome {
    /// Scopes of which something arrived: all traffic is one, a flow is one.
    pub asked: u64,
    /// Means with an interval.
    pub intervals: HeldClaims,
    /// Those of them whose interval has no width: they claim to be exact.
    pub certain: HeldClaims,
    /// Means without an interval; those hold that are not far off, by half or more.
    pub bare: HeldClaims,
    /// Intervals of percentiles.
    pub percentiles: HeldClaims,
    /// Scopes without a mean.
    pub unknown: u64,
    /// Values that are missing without a reason.
    pub silent: u64,
    /// Reasons for what is missing, with numbers left out, most frequent first.
    pub reasons: Vec<(String, u64)>,
    /// Median of the relative errors of means.
    pub error: Option<f64>,
    /// Median of half the widths of intervals, relative to the mean.
    pub width: Option<f64>,
    /// For a default estimator: the median error, and that of the best other estimator, for scopes that both answer.
    pub rival: Option<RivalErrors>,
    /// Packets of scopes whose loss was claimed.
    pub loss_packets: u64,
    /// How far these claims are from the truth, in packets. No cell has strays: those claimed count too.
    pub loss_error: u64,
    /// Packets that the answer is about.
    pub packets: u64,
    /// Packets that were sent at other times.
    pub outside: u64,
    /// The program failed like this.
    pub failure: Option<String>,
    /// Some claims that do not hold.
    #[serde(skip)]
    pub examples: Vec<String>,
}

/// How many claims there are, and how many of them hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldClaims {
    /// All of them.
    pub all: u64,
    /// Those that hold.
    pub held: u64,
}

/// Median errors of two estimators on the same scopes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RivalErrors {
    /// Of the default.
    pub own: f64,
    /// Of the best other.
    pub other: f64,
}

/// Relative errors of means, by scope.
pub(crate) type Errors = BTreeMap<String, f64>;

impl HeldClaims {
    fn count(&mut self, holds: bool) {
        self.all += 1;
        self.held += u64::from(holds);
    }
}

/// Judges an answer. `truth` is that of the time which the answer is about.
pub(crate) fn judge(
    question: &DelayQuestion,
    answer: &Answer,
    truth: &Truth,
) -> (AnswerOutcome, Errors) {
    let mut judge = Judge::default();
    judge.outcome.packets = truth.all.packets;
    judge.outcome.outside = truth.outside;
    let asked = asked(question, truth);
    match answer {
        Answer::Document(document) => judge.document(document, &asked),
        Answer::Unknown(reason) => judge.missing(&asked, reason),
        Answer::Failed(problem) => judge.outcome.failure = Some(problem.clone()),
    }
    judge.conclude()
}

fn asked<'a>(question: &DelayQuestion, truth: &'a Truth) -> BTreeMap<&'a str, &'a Fates> {
    match question.by_flow {
        true => truth.flows.iter().map(|(scope, fates)| (scope.as_str(), fates)).collect(),
        false => BTreeMap::from([(ALL, &truth.all)]),
    }
}

/// The median of some numbers.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

#[derive(Default)]
struct Judge {
    outcome: AnswerOutcome,
    reasons: BTreeMap<String, u64>,
    errors: Errors,
    widths: Vec<f64>,
}

impl Judge {
    fn document(&mut self, document: &Document, asked: &BTreeMap<&str, &Fates>) {
        let mut left = asked.clone();
        for estimate in &document.estimates {
            match left.remove(estimate.scope.as_str()) {
                Some(fates) => self.estimate(estimate, fates),
                None => self.invented(estimate),
            }
        }
        self.missing(&left, "not listed");
    }

    /// An estimate of something that does not exist, or that was answered before.
    fn invented(&mut self, estimate: &Estimated) {
        if estimate.mean_ns.is_some() {
            self.outcome.bare.count(false);
            self.example(estimate, "has no packets");
        }
    }

    fn missing(&mut self, scopes: &BTreeMap<&str, &Fates>, reason: &str) {
        let arrived = scopes.values().filter(|fates| !fates.delays_ns.is_empty()).count() as u64;
        self.outcome.asked += arrived;
        self.outcome.unknown += arrived;
        *self.reasons.entry(without_numbers(reason)).or_default() += arrived;
    }

    fn estimate(&mut self, estimate: &Estimated, fates: &Fates) {
        let truth_ns = fates.mean_ns();
        self.outcome.asked += u64::from(truth_ns.is_some());
        match (estimate.mean_ns, estimate.interval_ns()) {
            (Some(mean_ns), Some(_)) => self.interval(estimate, mean_ns, truth_ns),
            (Some(mean_ns), None) => self.bare(estimate, mean_ns, truth_ns),
            (None, _) => self.outcome.unknown += u64::from(truth_ns.is_some()),
        }
        let is_known = estimate.interval_ns().is_some() && estimate.lost.is_some();
        match &estimate.reason {
            Some(reason) if estimate.interval_ns().is_none() => {
                *self.reasons.entry(without_numbers(reason)).or_default() += 1;
            }
            None if !is_known => {
                self.outcome.silent += 1;
                self.example(estimate, "lacks a value without a reason");
            }
            _ => {}
        }
        self.percentiles(estimate, fates);
        self.loss(estimate, fates);
    }

    fn interval(&mut self, estimate: &Estimated, mean_ns: i64, truth_ns: Option<f64>) {
        let interval = estimate.interval_ns().expect("the caller saw an interval");
        let (low, high) = (*interval.start() as f64, *interval.end() as f64);
        let within = |truth| (low - ROUNDING_NS..=high + ROUNDING_NS).contains(&truth);
        let holds = truth_ns.is_some_and(within);
        self.outcome.intervals.count(holds);
        self.widths.extend(truth_ns.map(|truth| (high - low) / 2.0 / truth.abs().max(1.0)));
        if interval.start() == interval.end() {
            self.outcome.certain.count(holds);
        }
        if !holds {
            self.example(estimate, &format!("but the mean is {}", shown(truth_ns)));
        }
        self.error(estimate, mean_ns, truth_ns);
    }

    fn bare(&mut self, estimate: &Estimated, mean_ns: i64, truth_ns: Option<f64>) {
        let holds = self.error(estimate, mean_ns, truth_ns).is_some_and(|error| error <= FAR_OFF);
        self.outcome.bare.count(holds);
        if !holds {
            self.example(
                estimate,
                &format!("without an interval, the mean is {}", shown(truth_ns)),
            );
        }
    }

    fn error(&mut self, estimate: &Estimated, mean_ns: i64, truth_ns: Option<f64>) -> Option<f64> {
        let truth_ns = truth_ns?;
        let error = (mean_ns as f64 - truth_ns).abs() / truth_ns.abs().max(1.0);
        self.errors.insert(estimate.scope.clone(), error);
        Some(error)
    }

    fn percentiles(&mut self, estimate: &Estimated, fates: &Fates) {
        for (share, interval) in estimate.percentiles() {
            let truth_ns = fates.percentile_ns(share);
            let holds = truth_ns.is_some_and(|truth_ns| interval.contains(&truth_ns));
            self.outcome.percentiles.count(holds);
            if !holds {
                let what = format!("percentile {share} in {interval:?}, but it is {truth_ns:?}");
                self.example(estimate, &what);
            }
        }
    }

    fn loss(&mut self, estimate: &Estimated, fates: &Fates) {
        self.outcome.loss_error += estimate.strays.unwrap_or_default();
        let Some(claimed) = estimate.lost_range() else { return };
        let lost = fates.lost();
        let error = claimed.start().saturating_sub(lost) + lost.saturating_sub(*claimed.end());
        self.outcome.loss_packets += fates.packets;
        self.outcome.loss_error += error;
        if error * 100 > fates.packets {
            self.example(estimate, &format!("lost {claimed:?} of {}, but {lost}", fates.packets));
        }
    }

    fn example(&mut self, estimate: &Estimated, problem: &str) {
        if self.outcome.examples.len() < EXAMPLES_MAX {
            let Estimated { scope, mean_ns, ci95_low_ns, ci95_high_ns, reason, .. } = estimate;
            let interval = match ci95_low_ns.zip(*ci95_high_ns) {
                Some((low, high)) => {
                    format!(" [{}, {}]", milliseconds(low as f64), milliseconds(high as f64))
                }
                None => String::new(),
            };
            let mean = shown(mean_ns.map(|mean_ns| mean_ns as f64));
            let reason = reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
            self.outcome.examples.push(format!("{scope}: {mean}{interval} {problem}{reason}"));
        }
    }

    fn conclude(mut self) -> (AnswerOutcome, Errors) {
        let mut reasons: Vec<(String, u64)> =
            self.reasons.into_iter().filter(|(_, count)| *count > 0).collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        reasons.truncate(REASONS_MAX);
        self.outcome.reasons = reasons;
        self.outcome.error = median(self.errors.values().copied().collect());
        self.outcome.width = median(self.widths);
        (self.outcome, self.errors)
    }
}

fn shown(mean_ns: Option<f64>) -> String {
    mean_ns.map_or("unknown".to_owned(), milliseconds)
}

fn milliseconds(time_ns: f64) -> String {
    format!("{:.4} ms", time_ns / 1e6)
}

/// Reasons that differ in their numbers only are one.
fn without_numbers(reason: &str) -> String {
    let mut text = String::with_capacity(reason.len());
    for letter in reason.chars() {
        match letter.is_ascii_digit() {
            true if text.ends_with('…') => {}
            true => text.push('…'),
            false => text.push(letter),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::delay_questions;

    fn fates() -> Fates {
        Fates { packets: 120, delays_ns: vec![1_000; 100] }
    }

    fn estimate() -> Estimated {
        Estimated {
            scope: ALL.to_owned(),
            mean_ns: Some(1_100),
            ci95_low_ns: Some(900),
            ci95_high_ns: Some(1_300),
            lost: Some(20),
            ..Estimated::default()
        }
    }

    fn outcome(estimates: Vec<Estimated>) -> AnswerOutcome {
        let question = &delay_questions(Some("exact"))[0];
        let truth = Truth { all: fates(), flows: BTreeMap::new(), outside: 0 };
        judge(question, &Answer::Document(Document::of(estimates)), &truth).0
    }

    #[test]
    fn an_interval_that_holds_is_no_fault() {
        let outcome = outcome(vec![estimate()]);
        assert_eq!(outcome.intervals, HeldClaims { all: 1, held: 1 });
        assert_eq!((outcome.asked, outcome.unknown, outcome.silent), (1, 0, 0));
        assert_eq!((outcome.loss_packets, outcome.loss_error), (120, 0));
        assert!((outcome.error.unwrap() - 0.1).abs() < 1e-9 && outcome.examples.is_empty());
    }

    #[test]
    fn wrong_claims_are_counted() {
        let wrong = Estimated { ci95_low_ns: Some(1_050), lost: Some(0), ..estimate() };
        let outcome = outcome(vec![wrong]);
        assert_eq!(outcome.intervals, HeldClaims { all: 1, held: 0 });
        assert_eq!(outcome.loss_error, 20);
        assert_eq!(outcome.examples.len(), 2);
    }

    #[test]
    fn bounds_of_loss_are_claims_too() {
        let bounds = |lost_min, lost_max| {
            let bounds = (Some(lost_min), Some(lost_max));
            let bound =
                Estimated { lost: None, lost_min: bounds.0, lost_max: bounds.1, ..estimate() };
            outcome(vec![bound]).loss_error
        };
        assert_eq!((bounds(0, 30), bounds(0, 15), bounds(24, 30)), (0, 5, 4));
    }

    #[test]
    fn what_is_missing_needs_a_reason() {
        let bare = Estimated { ci95_low_ns: None, ..estimate() };
        let reasoned = Estimated { reason: Some("12 of 20 cells".into()), ..bare.clone() };
        let (bare, reasoned) = (outcome(vec![bare]), outcome(vec![reasoned]));
        assert_eq!((bare.silent, reasoned.silent), (1, 0));
        assert_eq!(reasoned.reasons, [("… of … cells".to_owned(), 1)]);
        assert_eq!(reasoned.bare, HeldClaims { all: 1, held: 1 });
        let none = outcome(vec![]);
        assert_eq!((none.asked, none.unknown), (1, 1));
    }

    #[test]
    fn a_flow_without_packets_is_a_wrong_claim() {
        let invented = Estimated { scope: "udp a > b".into(), ..estimate() };
        assert_eq!(outcome(vec![estimate(), invented]).bare, HeldClaims { all: 1, held: 0 });
    }
}
