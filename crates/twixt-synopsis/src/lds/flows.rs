//! Delay and loss of single flows, by the paper's estimator or all at once.

use std::borrow::Cow;

use twixt_model::DelayEstimate;

use super::deviation::{Remainders, alone};
use super::paper::emptiest;
use super::{Lds, printed};
use crate::joint::{Options, Solution};
use crate::question::{KnownFlow, Listing};
use crate::sketch::{
    Answer, Caution, Estimated, Layout, NO_INTERVAL, Place, Size, Sketch, Solved, Sum, Table, lost,
    sizes_of, solve, strays_of,
};

/// Flows of fewer packets are answered as by the paper if their sizes are guessed: those are too
/// far off for equations to help ...
const JOINT_PACKETS_MIN: f64 = 10.0;
/// ... unless the error of the guess is at most this part of it.
const JOINT_ERROR_MAX: f64 = 0.05;

/// Where sizes are guessed, a flow is answered as by the paper if the equations leave more than
/// this part of it unknown, or its size is off by more than that part.
const GUESSED_UNKNOWN_MAX: f64 = 0.5;
/// The same if a cell holds more than this part of the flow's packets of unlisted flows:
/// a flow's guessed size then includes some of theirs.
const UNLISTED_MAX: f64 = 0.1;

/// Packets of unlisted flows in a cell that do not matter.
const UNLISTED_FEW: f64 = 0.5;

/// A flow that has at least this share of the packets in its cells has their losses.
const DOMINANCE: f64 = 0.5;

/// What all cells together tell of flows.
struct Together {
    sizes: Vec<Size>,
    solved: Solved,
    caution: Option<Caution>,
}

impl Together {
    fn of(table: &Table<'_, Lds>, flows: &[KnownFlow], listing: Listing) -> Self {
        let Estimated { sizes, implants, clumping } =
            sizes_of(table.config(), &table.upstream.counts(), flows, listing);
        let options = Options { sharpens: true, ..Options::default() };
        let solved = solve(table, flows, &sizes, clumping, &options);
        let caution = Caution::of(table, flows, &solved, &implants, &options);
        Self { sizes, solved, caution }
    }

    /// Half the interval of the flow with this index; `None` if there is no telling.
    fn half_width_ns(&self, index: usize, solution: &Solution) -> Option<f64> {
        let size = &self.sizes[index];
        match self.caution.as_ref().filter(|_| !size.known) {
            Some(caution) => caution.half_width_ns(size.load, solution.half_width_ns),
            None => Some(solution.half_width_ns),
        }
    }

    /// The paper's answer, which says nothing of how far off it is: its interval contains that of all cells.
    fn paper_answer(&self, table: &Table<'_, Lds>, flow: &KnownFlow, index: usize) -> Answer {
        let answer = paper_answer(table, flow);
        let Some(solution) = &self.solved.solutions[index] else { return answer };
        let Some(half_width_ns) = self.half_width_ns(index, solution) else {
            return Answer::not_separated();
        };
        let relative_ns = self.solved.common_ns + solution.mean_offset_ns;
        answer.around(table.reference_ns as f64 + relative_ns, half_width_ns)
    }

    /// Whether nothing shows that a flow sent anything, although its cells counted packets.
    fn is_unseen(&self, table: &Table<'_, Lds>, flow: &KnownFlow, index: usize) -> bool {
        !self.sizes[index].seen && table.upstream.flow_packets_at_most(flow.hash) > 0
    }
}

/// Every flow by its emptiest cells.
pub(super) fn one_by_one(
    table: &Table<'_, Lds>,
    flows: &[KnownFlow],
    listing: Listing,
) -> Vec<Answer> {
    let together = Together::of(table, flows, listing);
    let answers = flows.iter().enumerate().map(|(index, flow)| {
        match together.is_unseen(table, flow, index) {
            true => Answer::not_seen(),
            false => together.paper_answer(table, flow, index),
        }
    });
    answers.collect()
}

fn paper_answer(table: &Table<'_, Lds>, flow: &KnownFlow) -> Answer {
    let mut answer = bounded(table, flow);
    if let Some(sum) = emptiest(table, Place::of(flow)).filter(|_| answer.packets > 0) {
        answer.rest_on(sum, table, flow);
    }
    let deviation = alone_size(table, flow).and_then(|size| alone(table, flow, size));
    answer.finish(table, deviation)
}

/// Every flow as the paper's Fig. 6 has it, to the letter.
pub(super) fn as_printed(table: &Table<'_, Lds>, flows: &[KnownFlow]) -> Vec<Answer> {
    let answers = flows.iter().map(|flow| {
        let mut answer = bounded(table, flow);
        match printed::sum(table, flow.hash) {
            Ok(sum) => {
                answer.rest_on(sum, table, flow);
                answer.finish(table, None)
            }
            Err(reason) => {
                answer.reasons.push(reason);
                answer
            }
        }
    });
    answers.collect()
}

/// All flows at once: every usable cell is one equation in their means.
pub(super) fn all_at_once(
    table: &Table<'_, Lds>,
    flows: &[KnownFlow],
    listing: Listing,
) -> Vec<Answer> {
    let together = Together::of(table, flows, listing);
    let Together { sizes, solved: Solved { common_ns, solutions, .. }, caution } = &together;
    let unlisted = table.unlisted(flows);
    let remainders = Remainders::new(table, flows, sizes, solutions, *common_ns);
    let answers = flows.iter().zip(sizes).zip(solutions).enumerate();
    let answers = answers.map(|(index, ((flow, size), solution))| {
        if together.is_unseen(table, flow, index) {
            return Answer::not_seen();
        }
        // With unlisted flows in its cells, the emptiest of them are nearer than all together.
        let is_crowded = caution.is_some() && !size.known && unlisted > UNLISTED_FEW;
        let is_joint = |found: &Solution| !is_crowded && size.is_joint(found, unlisted);
        let Some(solution) = solution.filter(is_joint) else {
            return together.paper_answer(table, flow, index);
        };
        if !solution.fits() {
            let mut answer = together.paper_answer(table, flow, index);
            answer
                .reasons
                .push("answered by paper: its cells do not fit the solution of all flows".into());
            return answer;
        }
        let Some(half_width_ns) = together.half_width_ns(index, &solution) else {
            return Answer::not_separated();
        };
        let solution = Solution { half_width_ns, ..solution };
        joint_answer(table, flow, size, solution, *common_ns, &remainders)
    });
    answers.collect()
}

fn joint_answer(
    table: &Table<'_, Lds>,
    flow: &KnownFlow,
    size: &Size,
    solution: Solution,
    common_ns: f64,
    remainders: &Remainders<'_>,
) -> Answer {
    let packets = (size.load / table.weight_of(flow) as f64).round() as u64;
    let mut answer = counted(table, flow, packets, Some(packets));
    answer.used = used(table, flow, packets);
    let offset_ns = (common_ns + solution.mean_offset_ns) * answer.used as f64;
    let sum = Sum { packets: answer.used, delay_sum_ns: offset_ns.round() as i128 };
    let delay = sum.delay(answer.used, table.reference_ns);
    let deviation = alone_size(table, flow).and_then(|size| alone(table, flow, size));
    let deviation = deviation.or_else(|| remainders.deviation(flow, size, solution));
    let half_width_ns = Some(solution.half_width_ns);
    answer.delay = Some(DelayEstimate { half_width_ns, ..delay });
    answer.finish(table, deviation)
}

impl Size {
    /// Whether a flow of this size is better answered with all others at once.
    /// `unlisted` is what a cell holds of unlisted flows.
    fn is_joint(&self, solution: &Solution, unlisted: f64) -> bool {
        let error = self.error / self.load.max(self.weight);
        let is_drowned = unlisted > UNLISTED_MAX * self.load && unlisted > self.weight;
        if is_drowned && !self.known {
            return false;
        }
        if self.known || solution.sharpened || error <= JOINT_ERROR_MAX {
            return self.load >= self.weight;
        }
        let is_reported = solution.unknown <= GUESSED_UNKNOWN_MAX && error <= GUESSED_UNKNOWN_MAX;
        is_reported && self.load >= JOINT_PACKETS_MIN * self.weight
    }
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

/// Packets and losses, where at best an upper bound of the flow's size is known.
fn bounded(table: &Table<'_, Lds>, flow: &KnownFlow) -> Answer {
    let at_most = || table.upstream.flow_packets_at_most(flow.hash) / table.weight_of(flow);
    counted(table, flow, flow.packets.unwrap_or_else(at_most), flow.packets)
}

/// Packets and losses. `trusted` is the flow's size if that is more than an upper bound.
fn counted(table: &Table<'_, Lds>, flow: &KnownFlow, packets: u64, trusted: Option<u64>) -> Answer {
    let trusted = trusted.or_else(|| agreed(table, flow));
    let (lost, reason) = match lost(table, flow, trusted, DOMINANCE) {
        Ok(lost) => (Some(lost), None),
        Err(reason) => (None, Some(reason)),
    };
    let (bytes, strays) = (table.bytes_of(flow, packets), strays_of(table, flow));
    let reasons = reason.into_iter().collect();
    Answer { packets, lost, strays, bytes, reasons, ..Answer::default() }
}

/// The flow's size, if that is known to the packet.
fn alone_size(table: &Table<'_, Lds>, flow: &KnownFlow) -> Option<u64> {
    flow.packets.or_else(|| agreed(table, flow))
}

/// The size that two rows agree on, if it is the smallest: flows that share cells in one row
/// hardly do so in the other, so in both it is alone.
fn agreed(table: &Table<'_, Lds>, flow: &KnownFlow) -> Option<u64> {
    let config = table.config();
    let rows = (0..config.rows()).filter(|&row| config.is_whole(row));
    let mut counts: Vec<u64> = rows.map(|row| table.packets_of(Place::of(flow), row)).collect();
    counts.sort_unstable();
    let agree = matches!(counts[..], [one, other, ..] if one == other && one > 0);
    agree.then(|| counts[0] / table.weight_of(flow))
}

impl Answer {
    /// Takes the delay from some cells.
    fn rest_on(&mut self, sum: Sum, table: &Table<'_, Lds>, flow: &KnownFlow) {
        let packets = (sum.packets / table.weight_of(flow)).max(1);
        self.used = packets.min(self.packets.max(1));
        let delay = sum.delay(self.used, table.reference_ns);
        self.delay = Some(DelayEstimate { half_width_ns: None, ..delay });
    }

    /// Adds the deviation, and says why what is not known is not.
    fn finish(mut self, table: &Table<'_, Lds>, deviation_ns: Option<f64>) -> Self {
        let Some(delay) = &mut self.delay else {
            self.reasons.push(match self.packets {
                0 => "no packets".into(),
                _ => "no usable cell: packets were lost in all of its cells".into(),
            });
            return self;
        };
        delay.deviation_ns = deviation_ns;
        let reason: Option<Cow<'static, str>> = match table.config().is_spread() {
            _ if deviation_ns.is_some() => None,
            false => Some("no deviation: it has one cell per row".into()),
            true => Some("no deviation: other flows dominate its cells".into()),
        };
        self.reasons.extend(reason);
        if delay.half_width_ns.is_none() {
            self.reasons.push(NO_INTERVAL.into());
        }
        self
    }
}
