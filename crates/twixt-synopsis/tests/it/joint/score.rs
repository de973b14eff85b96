//! What an algorithm answers, beside the truth.

use twixt_model::{Estimate, Span, Timestamp};
use twixt_synopsis::{By, KnownFlow, Pair, Question, TwoPoint};

use super::traffic::{CONSTANT_NS, Traffic, Truth};

/// What an algorithm answers about flows, in their order.
pub(crate) fn answers<S: TwoPoint>(
    ends: &(S, S),
    estimator: &str,
    flows: &[KnownFlow],
) -> Vec<Estimate> {
    let question = Question {
        by: By::Flow,
        estimator: Some(estimator),
        flows,
        ..Question::about(Span::at(Timestamp::from_nanos(0)))
    };
    S::estimate(Pair { upstream: &ends.0, downstream: &ends.1 }, &question)
}

/// Asks about these flows; scores by size: below 10 packets, 100, 1000, and beyond.
pub(crate) fn ask<S: TwoPoint>(
    traffic: &Traffic,
    ends: &(S, S),
    estimator: &str,
    flows: &[usize],
    sizes_known: bool,
) -> [Score; 4] {
    let listed: Vec<KnownFlow> =
        flows.iter().map(|&flow| traffic.listed(flow, sizes_known)).collect();
    let mut scores: [Score; 4] = Default::default();
    for (&flow, estimate) in flows.iter().zip(answers(ends, estimator, &listed)) {
        let truth = &traffic.truth[flow];
        scores[(truth.sent.max(1).ilog10() as usize).min(3)].add(&estimate, truth);
    }
    scores
}

/// How good the answers about some flows are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Score {
    /// Flows of which some packet arrived.
    pub(crate) flows: u64,
    /// Errors of mean delays, relative to the part of the delay that varies.
    pub(crate) errors: Vec<f64>,
    pub(crate) intervals: u64,
    pub(crate) held: u64,
    /// Half of each interval's length, relative to the part of the delay that varies.
    pub(crate) half_widths: Vec<f64>,
    /// Answers without a mean, or without an interval, and without a reason for it.
    pub(crate) silent: u64,
}

impl Score {
    fn add(&mut self, estimate: &Estimate, truth: &Truth) {
        let Some(mean_ns) = truth.mean_ns() else { return };
        self.flows += 1;
        let is_whole = estimate.delay.is_some_and(|delay| delay.half_width_ns.is_some());
        self.silent += u64::from(!is_whole && estimate.reason.is_none());
        let Some(delay) = estimate.delay else { return };
        let off_ns = (delay.mean_ns() - mean_ns).abs();
        let varying_ns = (mean_ns - CONSTANT_NS).max(1.0);
        self.errors.push(off_ns / varying_ns);
        if let Some(half_width_ns) = delay.half_width_ns {
            self.intervals += 1;
            self.half_widths.push(half_width_ns / varying_ns);
            // A nanosecond for rounding.
            self.held += u64::from(off_ns <= half_width_ns + 1.0);
        }
    }

    /// Half of the answers are off by more.
    pub(crate) fn median_error(&self) -> f64 {
        median(&self.errors)
    }

    pub(crate) fn median_half_width(&self) -> f64 {
        median(&self.half_widths)
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
