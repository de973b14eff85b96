//! Delay and deviation of single flows: by their emptiest cell, or all at once.

use std::borrow::Cow;

use twixt_model::DelayEstimate;

use super::cell::Moments;
use super::estimate::{Table, without_interval};
use crate::joint::{self, Cell, Options, Solution, System};
use crate::question::KnownFlow;
use crate::sketch::{Answer, Layout, NO_INTERVAL, Place, Size, sizes};

/// Flows of fewer packets are answered by their emptiest cell if their sizes are guessed.
const JOINT_PACKETS_MIN: f64 = 10.0;
/// Unless the error of the guess is at most this part of it.
const JOINT_ERROR_MAX: f64 = 0.05;
/// A deviation is reported if its square is off by no more than this part of it, by its interval.
const VARIANCE_OFF_MAX: f64 = 0.5;
/// With a larger share of packets without a send time, a flow has no mean. Of means of 2 to 20 packets of which so many
/// are left out, one in twenty is off by more than half if delays follow a Pareto distribution of 1.5; with
/// half of them, one in six.
const UNSTAMPED_MOST: f64 = 1.0 / 3.0;
/// Of fewer packets a deviation says little.
const DEVIATION_PACKETS_MIN: u64 = 10;

/// Every flow by the row where its cell holds the fewest packets (Fig. 3 of the paper, with empty
/// cells left out). That does not say how far off it is: its interval contains that of all cells together.
pub(super) fn one_by_one(table: &Table<'_>, flows: &[KnownFlow]) -> Vec<Answer> {
    let together = Together::of(table, flows);
    let flows = flows.iter().zip(&together.sizes).zip(&together.means);
    flows.map(|(flow, mean)| together.answer_by_min(table, flow, mean.as_ref())).collect()
}

/// What all cells together tell of the means of flows.
struct Together {
    sizes: Vec<Size>,
    /// Relative to the reference.
    common_ns: f64,
    /// Relative to the common one.
    means: Vec<Option<Solution>>,
}

impl Together {
    fn of(table: &Table<'_>, flows: &[KnownFlow]) -> Self {
        let (sizes, common_ns) = (received(table, flows), common_mean(table));
        let options = Options { sharpens: true, ..Options::default() };
        let means =
            solve(table, flows, &sizes, &options, |cell| cell.sum_ns - common_ns * cell.delays);
        Self { sizes, common_ns, means }
    }

    fn answer_by_min(
        &self,
        table: &Table<'_>,
        (flow, size): (&KnownFlow, &Size),
        mean: Option<&Solution>,
    ) -> Answer {
        let cells = table.cells_of(flow).filter_map(|index| table.cells[index]);
        let emptiest = cells.min_by_key(|cell| cell.exact.0);
        let mut answer = counted(table, flow, None);
        // A flow without a packet of known delay, as its cells show, has no mean: others' delays are not its own.
        let Some((cell, mean)) = emptiest.zip(mean).filter(|_| answer.packets > 0) else {
            answer.reasons.push(nothing_known(&answer));
            return answer;
        };
        answer.rest_on_cell(cell, table, flow);
        let mean_ns = table.reference_ns as f64 + self.common_ns + mean.mean_offset_ns;
        answer.around(mean_ns, mean.half_width_ns).without_stamps(table, (flow, size))
    }
}

/// Fig. 3 to the letter: the first of the smallest counts wins, and an empty cell is the smallest.
pub(super) fn as_printed(table: &Table<'_>, flows: &[KnownFlow]) -> Vec<Answer> {
    let answers = flows.iter().map(|flow| {
        let mut answer = counted(table, flow, None);
        let cells: Vec<_> = table.cells_of(flow).map(|index| table.cells[index]).collect();
        match cells.iter().copied().collect::<Option<Vec<Moments>>>() {
            Some(cells) => {
                let emptiest = cells.into_iter().min_by_key(|cell| cell.exact.0);
                answer.rest_on_cell(emptiest.expect("there is a row"), table, flow);
            }
            None => {
                answer.reasons.push("0/0: as printed, an empty cell has the fewest packets".into());
            }
        }
        answer
    });
    answers.collect()
}

/// All flows at once: every cell is one equation in their means, and one in their mean squares.
pub(super) fn all_at_once(table: &Table<'_>, flows: &[KnownFlow]) -> Vec<Answer> {
    let together = Together::of(table, flows);
    let Together { sizes, common_ns, means } = &together;
    // Squares around the common mean.
    let squares = solve(table, flows, sizes, &Options::default(), |cell| {
        let square = cell.square_sum - 2.0 * common_ns * cell.sum_ns;
        square + common_ns * common_ns * cell.delays
    });
    let answers = flows.iter().zip(sizes).zip(means.iter().zip(&squares));
    let answers = answers.map(|((flow, size), (mean, square))| match (mean, square) {
        (Some(mean), Some(square)) if mean.sharpened || is_joint(size) => {
            let answer = joint_answer(table, flow, size, *common_ns, (*mean, *square));
            answer.without_stamps(table, (flow, size))
        }
        _ => together.answer_by_min(table, (flow, size), mean.as_ref()),
    });
    answers.collect()
}

fn is_joint(size: &Size) -> bool {
    size.load >= if size.is_certain() { size.weight } else { JOINT_PACKETS_MIN * size.weight }
}

/// What flows left in the downstream cells. Of sizes that are known, upstream, lost packets, and those
/// without a send time, are missing there: as many as the flow's cells tell; else their share of all traffic is taken for
/// that of the flow, and for how far off that may be.
fn received(table: &Table<'_>, flows: &[KnownFlow]) -> Vec<Size> {
    let counts: Vec<f64> =
        table.cells.iter().map(|cell| cell.map_or(0.0, |cell| cell.delays)).collect();
    let mut sizes = sizes(table.upstream.config.sketch(), &counts, flows);
    let (sent, received) = (table.upstream.totals.packets, table.downstream.totals.packets);
    let kept = (received as f64 / (sent as f64).max(1.0)).min(1.0) * table.stamped_share();
    if kept < 1.0 {
        for (size, flow) in sizes.iter_mut().zip(flows).filter(|(size, _)| size.known) {
            let missing = size.load * (1.0 - kept);
            match table.undelayed(flow, flow.packets) {
                Ok(0) => {}
                Ok(lost) => {
                    let lost = lost as f64 * size.weight;
                    (size.load, size.error) = ((size.load - lost).max(0.0), missing.min(lost));
                }
                Err(_) => {
                    let chance = (missing * size.weight).sqrt();
                    (size.load, size.error) = (size.load - missing, missing + chance);
                }
            }
        }
    }
    sizes
}

/// Mean delay of all packets, relative to the reference. Any number would do.
fn common_mean(table: &Table<'_>) -> f64 {
    let (mut delays, mut sum_ns) = (0.0, 0.0);
    for cell in table.cells.iter().flatten() {
        delays += cell.delays;
        sum_ns += cell.sum_ns;
    }
    if delays > 0.0 { sum_ns / delays } else { 0.0 }
}

fn solve(
    table: &Table<'_>,
    flows: &[KnownFlow],
    sizes: &[Size],
    options: &Options,
    sum: impl Fn(&Moments) -> f64,
) -> Vec<Option<Solution>> {
    let sketch = table.upstream.config.sketch();
    let columns = sketch.columns() as usize;
    let cells = table.cells.iter().enumerate().map(|(index, cell)| {
        let row = (index / columns) as u32;
        cell.map(|cell| Cell { row, packets: cell.delays, delay_sum_ns: sum(&cell) })
    });
    let mut system = System::new(cells.collect());
    for (flow, size) in flows.iter().zip(sizes) {
        let error = size.error.min(size.load);
        let size = joint::Size { packets: size.load, error, doubt: error };
        system.add_flow(size, sketch.shares_of(Place::of(flow)));
    }
    system.solve(options)
}

fn joint_answer(
    table: &Table<'_>,
    flow: &KnownFlow,
    size: &Size,
    common_ns: f64,
    (mean, square): (Solution, Solution),
) -> Answer {
    let found = (size.load / size.weight).round().max(1.0) as u64;
    let mut answer = counted(table, flow, Some(found));
    answer.used = found;
    let offset_ns = (common_ns + mean.mean_offset_ns) * found as f64;
    let sum_ns = offset_ns.round() as i128;
    let reference = i128::from(table.reference_ns) * i128::from(found);
    let off = mean.mean_offset_ns;
    let variance = square.mean_offset_ns - off * off;
    let variance_off = square.half_width_ns + 2.0 * off.abs() * mean.half_width_ns;
    let is_reported = variance > 0.0 && variance_off <= VARIANCE_OFF_MAX * variance;
    let known = is_reported && (found >= DEVIATION_PACKETS_MIN || variance_off == 0.0);
    if !known {
        answer.reasons.push("no deviation: other flows dominate its cells".into());
    }
    answer.delay = Some(DelayEstimate {
        count: found,
        sum_ns: sum_ns.saturating_add(reference),
        deviation_ns: known.then(|| variance.sqrt()),
        half_width_ns: Some(mean.half_width_ns),
        order: None,
        order_range: None,
    });
    answer
}

/// Packets and losses. `received` is an estimate of how many arrived, where the size is not known.
fn counted(table: &Table<'_>, flow: &KnownFlow, received: Option<u64>) -> Answer {
    let (lost, reason) = match table.lost(flow, flow.packets.or(received)) {
        Ok(lost) => (Some(lost), None),
        Err(reason) => (None, Some(reason)),
    };
    let sent = received.map(|received| received.saturating_add(lost.unwrap_or(0)));
    let packets = flow.packets.or(sent).unwrap_or_else(|| table.packets_at_most(flow));
    let (bytes, strays) = (table.bytes_of(flow, packets), Some(table.strays_of(flow)));
    let reasons = reason.into_iter().collect();
    Answer { packets, lost, strays, bytes, reasons, ..Answer::default() }
}

fn nothing_known(answer: &Answer) -> Cow<'static, str> {
    match answer.packets {
        0 => "no packets".into(),
        _ => "none of its packets carried its send time".into(),
    }
}

impl Size {
    /// Whether it is known, or a guess that is hardly off.
    fn is_certain(&self) -> bool {
        self.known || self.error <= JOINT_ERROR_MAX * self.load
    }
}

impl Answer {
    /// Of some packets at most, which arrived, nothing is known: they may have taken any time. If they may be a third of
    /// the flow's, or nobody knows how many it has, there is no mean; if fewer, it has no interval.
    fn without_stamps(mut self, table: &Table<'_>, (flow, size): (&KnownFlow, &Size)) -> Self {
        let unstamped = table.unstamped(flow);
        let Some(delay) = self.delay.as_mut().filter(|_| unstamped > 0) else { return self };
        let (missing, known) = (unstamped as f64, (size.load / size.weight).max(1.0));
        let share = missing / (missing + known);
        let what = format!("up to {unstamped} of its packets without a send time");
        if share > UNSTAMPED_MOST {
            (self.delay, self.used) = (None, 0);
            self.reasons = vec![format!("no mean: {what}").into()];
        } else if !size.is_certain() {
            (self.delay, self.used) = (None, 0);
            self.reasons = vec![format!("no mean: {what}, and its size is not known").into()];
        } else if delay.half_width_ns.take().is_some() {
            self.reasons
                .push(without_interval(&format!("up to {unstamped} of its packets")).into());
        }
        self
    }

    /// Takes delay and deviation from one cell.
    fn rest_on_cell(&mut self, cell: Moments, table: &Table<'_>, flow: &KnownFlow) {
        let weight = table.weight_of(flow);
        let delays = (cell.exact.0 / weight).max(1);
        self.used = delays.min(self.packets.max(1));
        let is_alone = flow.packets == Some(delays);
        let relative = match self.used == cell.exact.0 {
            true => i128::from(cell.exact.1),
            false => (cell.mean() * self.used as f64).round() as i128,
        };
        let reference = i128::from(table.reference_ns) * i128::from(self.used);
        self.delay = Some(DelayEstimate {
            count: self.used,
            sum_ns: relative.saturating_add(reference),
            deviation_ns: is_alone.then(|| cell.deviation()),
            half_width_ns: None,
            order: None,
            order_range: None,
        });
        if !is_alone {
            self.reasons.push("no deviation: the share of other flows is unknown".into());
        }
        self.reasons.push(NO_INTERVAL.into());
    }
}
