//! What two sketches tell together: about all traffic, about flows, about pairs of prefixes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use twixt_model::{DelayEstimate, Estimate, Evidence, Scope};

use super::Lds;
use super::flows::{Answer, all_at_once, one_by_one};
use super::paper::Sum;
use super::table::Table;
use crate::question::{By, KnownFlow, Question};
use crate::synopsis::Pair;

pub(super) fn estimate(pair: Pair<'_, Lds>, question: &Question<'_>) -> Vec<Estimate> {
    let table = Table::new(pair, question.reference.as_nanos());
    if question.by == By::All {
        return vec![all(&table).estimate(Scope::All, question)];
    }
    let flows = distinct(question.flows);
    let answers = match question.estimator {
        Some("paper") => one_by_one(&table, &flows),
        _ => all_at_once(&table, &flows),
    };
    let flows = flows.iter().map(|flow| question.by.scope_of(&flow.key)).zip(answers);
    match question.by {
        By::Flow => flows.map(|(scope, answer)| answer.estimate(scope, question)).collect(),
        _ => gathered(flows).map(|(scope, answer)| answer.estimate(scope, question)).collect(),
    }
}

impl Answer {
    fn estimate(self, scope: Scope, question: &Question<'_>) -> Estimate {
        let Self { packets, used, lost, delay, reasons } = self;
        let evidence = Evidence { packets, used, lost, clock_error: None };
        let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
        Estimate { scope, span: question.span, evidence, delay, reason }
    }
}

/// A flow that is listed twice would seem to be two that share all of their cells.
fn distinct(flows: &[KnownFlow]) -> Vec<KnownFlow> {
    let mut seen = BTreeSet::new();
    flows.iter().filter(|flow| seen.insert(flow.hash)).copied().collect()
}

/// All traffic: the row whose usable cells hold the most packets. Other rows count the same
/// packets again.
fn all(table: &Table<'_>) -> Answer {
    let rows = table.cells.chunks_exact(table.config().columns() as usize).map(|row| {
        let mut sum = Sum::default();
        row.iter().flatten().for_each(|&cell| sum.add(cell));
        sum
    });
    let best = rows.max_by_key(|sum| sum.packets).expect("there is a row");
    let (sent, received) = (table.upstream.totals, table.downstream.totals);
    let lost = sent.lost_until(received);
    let is_whole = best.packets == received.packets && lost == Some(0);
    let delay = (best.packets > 0).then(|| DelayEstimate {
        half_width_ns: is_whole.then_some(0.0),
        ..best.delay(best.packets, table.reference_ns)
    });
    let mut reasons: Vec<Cow<'static, str>> = Vec::new();
    reasons.push(match delay {
        None => "no usable cell: every cell lost a packet, or there were none".into(),
        // A cell's total varies with which flows fell into it, far more than packets do.
        Some(_) => "no deviation: cells hold whole flows".into(),
    });
    if delay.is_some() && !is_whole {
        reasons.push("no interval: cells with loss are left out, and large flows with them".into());
    }
    if lost.is_none() {
        reasons.push("more packets downstream than upstream: loss is not known".into());
    }
    Answer { packets: sent.packets, used: best.packets, lost, delay, reasons }
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
    Answer { packets, used, lost, delay, reasons }
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

#[cfg(test)]
mod tests;
