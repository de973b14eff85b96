//! What two sketches tell together: about all traffic, about flows, about pairs of prefixes.

use std::borrow::Cow;

use twixt_model::{DelayEstimate, Estimate, Scope};

use super::Lds;
use super::answer::{Answer, distinct, told};
use super::flows::{all_at_once, as_printed, one_by_one};
use super::paper::Sum;
use super::table::Table;
use crate::question::{By, Question};
use crate::synopsis::Pair;

pub(super) fn estimate(pair: Pair<'_, Lds>, question: &Question<'_>) -> Vec<Estimate> {
    let table = Table::new(pair, question.reference.as_nanos());
    if question.by == By::All {
        return vec![all(&table).estimate(Scope::All, question)];
    }
    let named = pair.upstream.large_flows();
    let flows = distinct(if question.flows.is_empty() { &named } else { question.flows });
    let answers = match question.estimator {
        Some("paper") => one_by_one(&table, &flows),
        Some("printed") => as_printed(&table, &flows),
        _ => all_at_once(&table, &flows),
    };
    told(&flows, answers, question)
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
    let is_weighted = !table.config().weights().is_empty();
    let delay = (best.packets > 0 && !is_weighted).then(|| DelayEstimate {
        half_width_ns: is_whole.then_some(0.0),
        ..best.delay(best.packets, table.reference_ns)
    });
    let mut reasons: Vec<Cow<'static, str>> = Vec::new();
    reasons.push(match delay {
        None if is_weighted => "no mean of all traffic: flows count by their weights".into(),
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
    let used = if delay.is_some() { best.packets } else { 0 };
    Answer { packets: sent.packets, used, lost, bytes: Some(sent.bytes), delay, reasons }
}

#[cfg(test)]
mod tests;
