//! Delay and loss of single flows, by the paper's estimator or all at once.

use std::borrow::Cow;

use twixt_model::DelayEstimate;

use super::loss::lost;
use super::paper::{Sum, deviation, emptiest};
use super::sizes::{Size, sizes};
use super::table::Table;
use crate::joint::{self, Cell, Options, System};
use crate::question::KnownFlow;

/// What is known of a flow, or of several together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) packets: u64,
    pub(super) used: u64,
    pub(super) lost: Option<u64>,
    pub(super) delay: Option<DelayEstimate>,
    pub(super) reasons: Vec<Cow<'static, str>>,
}

/// Flows of fewer packets are answered as by the paper if their sizes are guessed: those are too
/// far off for equations to help ...
const JOINT_PACKETS_MIN: f64 = 10.0;
/// ... unless the error of the guess is at most this part of it.
const JOINT_ERROR_MAX: f64 = 0.05;

/// Relative errors of sizes are cut to this: the equations are linear in them.
const ERROR_MAX: f64 = 1.0;
/// The same where rows sample, or spread flows over several cells. There equations are never
/// quite true, and errors of sizes must not be taken for the cause of all of it.
const SPREAD_ERROR_MAX: f64 = 0.1;

/// Every flow by its emptiest cells. There is no telling how far off these are: no intervals.
pub(super) fn one_by_one(table: &Table<'_>, flows: &[KnownFlow]) -> Vec<Answer> {
    flows.iter().map(|flow| paper_answer(table, flow)).collect()
}

fn paper_answer(table: &Table<'_>, flow: &KnownFlow) -> Answer {
    let packets = flow.packets.unwrap_or_else(|| table.upstream.flow_packets_at_most(flow.hash));
    let mut answer = counted(table, flow, packets, flow.packets);
    if let Some(sum) = emptiest(table, flow.hash).filter(|_| packets > 0) {
        answer.used = sum.packets.min(packets);
        let delay = sum.delay(answer.used, table.reference_ns);
        answer.delay = Some(DelayEstimate { half_width_ns: None, ..delay });
    }
    answer.finish(table, flow)
}

/// All flows at once: every usable cell is one equation in their means.
pub(super) fn all_at_once(table: &Table<'_>, flows: &[KnownFlow]) -> Vec<Answer> {
    let sizes = sizes(table.upstream, flows);
    let common_ns = common_mean(table, flows);
    let solutions = system(table, flows, &sizes, common_ns).solve(&Options::default());
    let answers = flows.iter().zip(&sizes).zip(solutions).map(|((flow, size), solution)| {
        let Some(solution) = solution.filter(|_| size.is_joint()) else {
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
        answer.finish(table, flow)
    });
    answers.collect()
}

/// Mean delay in the flows' usable cells, relative to the reference. Any number would do: near
/// the mean the equations lose nothing to rounding.
fn common_mean(table: &Table<'_>, flows: &[KnownFlow]) -> f64 {
    let (mut packets, mut delay_sum_ns) = (0.0, 0.0);
    for flow in flows {
        for cell in (0..table.config().rows()).flat_map(|row| table.usable_of(flow.hash, row)) {
            packets += cell.packets as f64;
            delay_sum_ns += cell.delay_sum_ns as f64;
        }
    }
    if packets > 0.0 { delay_sum_ns / packets } else { 0.0 }
}

/// The equations, in what delays exceed `common_ns`.
fn system(table: &Table<'_>, flows: &[KnownFlow], sizes: &[Size], common_ns: f64) -> System {
    let config = table.config();
    let columns = config.columns() as usize;
    let cells = table.cells.iter().enumerate().map(|(index, cell)| {
        cell.map(|cell| {
            let packets = cell.packets as f64;
            let delay_sum_ns = cell.delay_sum_ns as f64 - common_ns * packets;
            Cell { row: (index / columns) as u32, packets, delay_sum_ns }
        })
    });
    let mut system = System::new(cells.collect());
    let spread = 1.0 / f64::from(config.virtual_cells());
    let is_spread = config.virtual_cells() > 1 || config.sampling().iter().any(|&rate| rate < 1.0);
    let error_max = if is_spread { SPREAD_ERROR_MAX } else { ERROR_MAX };
    for (flow, size) in flows.iter().zip(sizes) {
        let rows = config.sampling().iter().enumerate();
        let cells = rows.flat_map(|(row, rate)| {
            config.cells_of(flow.hash, row).map(move |cell| (cell, rate * spread))
        });
        let error = size.error.min(error_max * size.packets);
        system.add_flow(joint::Size { packets: size.packets, error }, cells);
    }
    system
}

impl Size {
    fn is_joint(&self) -> bool {
        let certain = self.error <= JOINT_ERROR_MAX * self.packets;
        self.packets >= if certain { 1.0 } else { JOINT_PACKETS_MIN }
    }
}

/// Packets of a flow in the usable cells of its best row, by expectation.
fn used(table: &Table<'_>, flow: &KnownFlow, packets: u64) -> u64 {
    let config = table.config();
    let rows = config.sampling().iter().enumerate().map(|(row, rate)| {
        let share = table.usable_of(flow.hash, row).count() as f64 * rate;
        share / f64::from(config.virtual_cells())
    });
    ((rows.fold(0.0, f64::max) * packets as f64).round() as u64).max(1)
}

/// Packets and losses. `trusted` is the flow's size if that is more than an upper bound.
fn counted(table: &Table<'_>, flow: &KnownFlow, packets: u64, trusted: Option<u64>) -> Answer {
    let trusted = trusted.or_else(|| agreed(table, flow));
    let (lost, reason) = match lost(table, flow.hash, trusted) {
        Ok(lost) => (Some(lost), None),
        Err(reason) => (None, Some(reason)),
    };
    Answer { packets, lost, reasons: reason.into_iter().collect(), ..Answer::default() }
}

/// The size that two rows agree on, if it is the smallest: flows that share cells in one row
/// hardly do so in the other, so in both it is alone.
fn agreed(table: &Table<'_>, flow: &KnownFlow) -> Option<u64> {
    let config = table.config();
    let rows = (0..config.rows()).filter(|&row| config.is_whole(row));
    let mut counts: Vec<u64> = rows.map(|row| table.packets_of(flow.hash, row)).collect();
    counts.sort_unstable();
    matches!(counts[..], [one, other, ..] if one == other && one > 0).then(|| counts[0])
}

impl Answer {
    /// Adds the deviation, and says why what is not known is not.
    fn finish(mut self, table: &Table<'_>, flow: &KnownFlow) -> Self {
        let Some(delay) = &mut self.delay else {
            self.reasons.push(match self.packets {
                0 => "no packets".into(),
                _ => "no usable cell: packets were lost in all of its cells".into(),
            });
            return self;
        };
        let size = flow.packets.or_else(|| agreed(table, flow));
        delay.deviation_ns = size.and_then(|packets| deviation(table, flow.hash, packets));
        if delay.deviation_ns.is_none() {
            self.reasons.push(match table.config().virtual_cells() {
                1 => "no deviation: it has one cell per row".into(),
                _ => "no deviation: other flows share its cells".into(),
            });
        }
        if delay.half_width_ns.is_none() {
            self.reasons.push("no interval: the share of other flows is not known".into());
        }
        self
    }
}

impl Sum {
    /// The mean of these cells, as that of `used` packets.
    pub(super) fn delay(self, used: u64, reference_ns: i64) -> DelayEstimate {
        let relative = match self.packets == used {
            true => self.delay_sum_ns,
            false => {
                let mean_ns = self.delay_sum_ns as f64 / self.packets as f64;
                (mean_ns * used as f64).round() as i128
            }
        };
        let reference = i128::from(reference_ns) * i128::from(used);
        let sum_ns = relative.saturating_add(reference);
        DelayEstimate { count: used, sum_ns, deviation_ns: None, half_width_ns: None, order: None }
    }
}
