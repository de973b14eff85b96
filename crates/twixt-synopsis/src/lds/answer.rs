//! What is known of a flow, or of several together, and how it is told.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use twixt_model::{DelayEstimate, Estimate, Evidence, Scope};

use crate::question::{By, KnownFlow, Question};

/// What is known of a flow, or of several together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) packets: u64,
    pub(crate) used: u64,
    pub(crate) lost: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) delay: Option<DelayEstimate>,
    pub(crate) reasons: Vec<Cow<'static, str>>,
}

impl Answer {
    pub(crate) fn estimate(self, scope: Scope, question: &Question<'_>) -> Estimate {
        let Self { packets, used, lost, bytes, delay, reasons } = self;
        let evidence = Evidence { packets, used, lost, clock_error: None, bytes };
        let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
        Estimate { scope, span: question.span, evidence, delay, reason }
    }
}

/// Estimates of flows, split up as asked.
pub(crate) fn told(
    flows: &[KnownFlow],
    answers: Vec<Answer>,
    question: &Question<'_>,
) -> Vec<Estimate> {
    let flows = flows.iter().map(|flow| question.by.scope_of(&flow.key)).zip(answers);
    match question.by {
        By::Flow => flows.map(|(scope, answer)| answer.estimate(scope, question)).collect(),
        _ => gathered(flows).map(|(scope, answer)| answer.estimate(scope, question)).collect(),
    }
}

/// A flow that is listed twice would seem to be two that share all of their cells.
pub(crate) fn distinct(flows: &[KnownFlow]) -> Vec<KnownFlow> {
    let mut seen = BTreeSet::new();
    flows.iter().filter(|flow| seen.insert(flow.hash)).copied().collect()
}

/// Flows brought together by scope.
fn gathered(flows: impl Iterator<Item = (Scope, Answer)>) -> impl Iterator<Item = (Scope, Answer)> {
    let mut groups: BTreeMap<Scope, Vec<Answer>> = BTreeMap::new();
    for (scope, answer) in flows {
        groups.entry(scope).or_default().push(answer);
    }
    groups.into_iter().map(|(scope, answers)| (scope, together(&answers)))
}

/// Several flows as one: each counts for as much as it sent.
fn together(answers: &[Answer]) -> Answer {
    let total = |of: fn(&Answer) -> u64| answers.iter().map(of).fold(0, u64::saturating_add);
    let lost = answers.iter().try_fold(0_u64, |sum, answer| Some(sum.saturating_add(answer.lost?)));
    let bytes =
        answers.iter().try_fold(0_u64, |sum, answer| Some(sum.saturating_add(answer.bytes?)));
    let known: Vec<(u64, DelayEstimate)> =
        answers.iter().filter_map(|answer| Some((answer.packets.max(1), answer.delay?))).collect();
    let delay = weighted(&known);
    let mut reasons: Vec<Cow<'static, str>> = Vec::new();
    if known.len() < answers.len() {
        let without = answers.len() - known.len();
        reasons.push(format!("{without} of {} flows without a delay", answers.len()).into());
    }
    if delay.is_some() {
        reasons.push("no deviation: only the flows' means are known".into());
    }
    if delay.is_some_and(|delay| delay.half_width_ns.is_none()) {
        reasons.push("no interval: not every flow has one".into());
    }
    if lost.is_none() {
        let without = answers.iter().filter(|answer| answer.lost.is_none()).count();
        reasons.push(format!("loss is not known for {without} flows").into());
    }
    let (packets, used) = (total(|answer| answer.packets), total(|answer| answer.used));
    Answer { packets, used, lost, bytes, delay, reasons }
}

/// Errors of flows are taken to agree: those that share cells with one large flow, or that are
/// drawn towards the common mean, are wrong in the same direction.
fn weighted(flows: &[(u64, DelayEstimate)]) -> Option<DelayEstimate> {
    let count = flows.iter().fold(0_u64, |sum, &(packets, _)| sum.saturating_add(packets));
    let sum_ns = flows.iter().fold(0_i128, |sum, &(packets, delay)| {
        sum.saturating_add(scaled(delay.sum_ns, delay.count, packets))
    });
    let widths = flows
        .iter()
        .try_fold(0.0, |sum, &(packets, delay)| Some(sum + packets as f64 * delay.half_width_ns?));
    let half_width_ns = widths.map(|sum| sum / count as f64);
    (count > 0).then_some(DelayEstimate {
        count,
        sum_ns,
        deviation_ns: None,
        half_width_ns,
        order: None,
    })
}

/// `sum` of `count` packets, as the sum of `packets` with the same mean.
fn scaled(sum: i128, count: u64, packets: u64) -> i128 {
    let (count, packets) = (i128::from(count), i128::from(packets));
    let rest = sum.rem_euclid(count) as f64 / count as f64 * packets as f64;
    sum.div_euclid(count).saturating_mul(packets).saturating_add(rest.round() as i128)
}
