//! Delay and loss of single flows, by the paper's estimator or all at once.

use twixt_model::DelayEstimate;

use super::Lds;
use super::paper::{deviation, emptiest};
use crate::question::KnownFlow;
use crate::sketch::{Answer, Layout, Place, Size, Solved, Sum, Table, lost, sizes, solve};

/// Flows of fewer packets are answered as by the paper if their sizes are guessed: those are too
/// far off for equations to help ...
const JOINT_PACKETS_MIN: f64 = 10.0;
/// ... unless the error of the guess is at most this part of it.
const JOINT_ERROR_MAX: f64 = 0.05;

/// A flow that has at least this share of the packets in its cells has their losses.
const DOMINANCE: f64 = 0.5;

/// Every flow by its emptiest cells. There is no telling how far off these are: no intervals.
pub(super) fn one_by_one(table: &Table<'_, Lds>, flows: &[KnownFlow]) -> Vec<Answer> {
    flows.iter().map(|flow| paper_answer(table, flow)).collect()
}

fn paper_answer(table: &Table<'_, Lds>, flow: &KnownFlow) -> Answer {
    let packets = flow.packets.unwrap_or_else(|| table.upstream.flow_packets_at_most(flow.hash));
    let mut answer = counted(table, flow, packets, flow.packets);
    if let Some(sum) = emptiest(table, Place::of(flow)).filter(|_| packets > 0) {
        answer.used = sum.packets.min(packets);
        let delay = sum.delay(answer.used, table.reference_ns);
        answer.delay = Some(DelayEstimate { half_width_ns: None, ..delay });
    }
    finish(answer, table, flow)
}

/// All flows at once: every usable cell is one equation in their means.
pub(super) fn all_at_once(table: &Table<'_, Lds>, flows: &[KnownFlow]) -> Vec<Answer> {
    let sizes = sizes(table.upstream, flows);
    let Solved { common_ns, solutions } = solve(table, flows, &sizes);
    let answers = flows.iter().zip(&sizes).zip(solutions).map(|((flow, size), solution)| {
        let Some(solution) = solution.filter(|_| is_joint(size)) else {
            return paper_answer(table, flow);
        };
        let packets = size.packets.round() as u64;
        let mut answer = counted(table, flow, packets, Some(packets));
        answer.used = used(table, flow, packets);
        let offset_ns = (common_ns + solution.mean_offset_ns) * answer.used as f64;
        let sum = Sum { packets: answer.used, delay_sum_ns: offset_ns.round() as i128 };
        let delay = sum.delay(answer.used, table.reference_ns);
        let half_width_ns = Some(solution.half_width_ns);
        answer.delay = Some(DelayEstimate { half_width_ns, ..delay });
        finish(answer, table, flow)
    });
    answers.collect()
}

fn is_joint(size: &Size) -> bool {
    let certain = size.error <= JOINT_ERROR_MAX * size.packets;
    size.packets >= if certain { 1.0 } else { JOINT_PACKETS_MIN }
}

/// Packets of a flow in the usable cells of its best row, by expectation.
fn used(table: &Table<'_, Lds>, flow: &KnownFlow, packets: u64) -> u64 {
    let config = table.config();
    let rows = config.sampling().iter().enumerate().map(|(row, rate)| {
        let share = table.usable_of(Place::of(flow), row).count() as f64 * rate;
        share / f64::from(config.virtual_cells())
    });
    ((rows.fold(0.0, f64::max) * packets as f64).round() as u64).max(1)
}

/// Packets and losses. `trusted` is the flow's size if that is more than an upper bound.
fn counted(table: &Table<'_, Lds>, flow: &KnownFlow, packets: u64, trusted: Option<u64>) -> Answer {
    let trusted = trusted.or_else(|| agreed(table, flow));
    let (lost, reason) = match lost(table, Place::of(flow), trusted, DOMINANCE) {
        Ok(lost) => (Some(lost), None),
        Err(reason) => (None, Some(reason)),
    };
    Answer { packets, lost, reasons: reason.into_iter().collect(), ..Answer::default() }
}

/// The size that two rows agree on, if it is the smallest: flows that share cells in one row
/// hardly do so in the other, so in both it is alone.
fn agreed(table: &Table<'_, Lds>, flow: &KnownFlow) -> Option<u64> {
    let config = table.config();
    let rows = (0..config.rows()).filter(|&row| config.is_whole(row));
    let mut counts: Vec<u64> = rows.map(|row| table.packets_of(Place::of(flow), row)).collect();
    counts.sort_unstable();
    matches!(counts[..], [one, other, ..] if one == other && one > 0).then(|| counts[0])
}

/// Adds the deviation, and says why what is not known is not.
fn finish(mut answer: Answer, table: &Table<'_, Lds>, flow: &KnownFlow) -> Answer {
    let Some(delay) = &mut answer.delay else {
        answer.reasons.push(match answer.packets {
            0 => "no packets".into(),
            _ => "no usable cell: packets were lost in all of its cells".into(),
        });
        return answer;
    };
    let size = flow.packets.or_else(|| agreed(table, flow));
    delay.deviation_ns = size.and_then(|packets| deviation(table, Place::of(flow), packets));
    if delay.deviation_ns.is_none() {
        answer.reasons.push(match table.config().virtual_cells() {
            1 => "no deviation: it has one cell per row".into(),
            _ => "no deviation: other flows share its cells".into(),
        });
    }
    if delay.half_width_ns.is_none() {
        answer.reasons.push("no interval: the share of other flows is not known".into());
    }
    answer
}
