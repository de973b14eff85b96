//! The combined result of two sketches: about all traffic, about flows, about pairs of prefixes.

use std::borrow::Cow;

use twixt_model::{DelayEstimate, Estimate, LossRange, Scope};

use super::Sds;
use super::cell::{Cell, Moments};
use super::flows::{all_at_once, as_printed, one_by_one};
use crate::heartbeats::Excluded;
use crate::question::{By, KnownFlow, Question};
use crate::sketch::{Answer, answered, distinct};
use crate::strays::{Bounds, stray_reason};
use crate::synopsis::Pair;

pub(super) fn estimate(pair: Pair<'_, Sds>, question: &Question<'_>) -> Vec<Estimate> {
    let table = Table::new(pair, question.reference.as_nanos());
    if question.by == By::All {
        return vec![all(&table, question).estimate(Scope::All, question)];
    }
    let flows = distinct(question.flows);
    let answers = match question.estimator {
        Some("min") => one_by_one(&table, &flows),
        Some("printed") => as_printed(&table, &flows),
        _ => all_at_once(&table, &flows),
    };
    let answers =
        answers.into_iter().zip(&flows).map(|(answer, flow)| match table.unstamped(flow) {
            0 => answer,
            _ => answer.without(&question.incomplete_of(flow.hash)),
        });
    answered(&flows, answers.collect(), question)
}

/// Both ends of a segment, and what the cells say.
pub(super) struct Table<'a> {
    pub(super) upstream: &'a Sds,
    pub(super) downstream: &'a Sds,
    pub(super) reference_ns: i64,
    /// `None` where no delay is known.
    pub(super) cells: Vec<Option<Moments>>,
}

impl<'a> Table<'a> {
    fn new(pair: Pair<'a, Sds>, reference_ns: i64) -> Self {
        let Pair { upstream, downstream } = pair;
        let cells = downstream.cells.iter().map(|cell| cell.moments(reference_ns)).collect();
        Self { upstream, downstream, reference_ns, cells }
    }

    /// A flow's cell in each row.
    pub(super) fn cells_of(&self, flow: &KnownFlow) -> impl Iterator<Item = usize> + '_ {
        let sketch = self.upstream.config.sketch();
        let hash = flow.hash;
        (0..sketch.rows()).flat_map(move |row| sketch.cells_of(hash, row))
    }

    /// How many times each packet of a flow counts.
    pub(super) fn weight_of(&self, flow: &KnownFlow) -> u64 {
        self.upstream.config.sketch().weight_of(flow.class)
    }

    /// Packets of a flow at most, upstream.
    pub(super) fn packets_at_most(&self, flow: &KnownFlow) -> u64 {
        let counts = self.cells_of(flow).map(|index| self.upstream.cells[index].packets);
        counts.min().unwrap_or(0) / self.weight_of(flow)
    }

    /// Bytes of a flow of so many packets, of the size that they have in its emptiest cell.
    pub(super) fn bytes_of(&self, flow: &KnownFlow, packets: u64) -> Option<u64> {
        let cells = self.cells_of(flow).map(|index| &self.upstream.cells[index]);
        let emptiest = cells.min_by_key(|cell| cell.packets).filter(|cell| cell.packets > 0)?;
        let mean = emptiest.bytes as f64 / emptiest.packets as f64;
        Some((mean * packets as f64).round() as u64)
    }

    /// Lost packets of a flow, or why that is not known. Cells tell how many of all of their
    /// packets were lost, so the row that lost least tells most.
    pub(super) fn lost(
        &self,
        flow: &KnownFlow,
        packets: Option<u64>,
    ) -> Result<u64, Cow<'static, str>> {
        self.missing(flow, packets, |cell| cell.packets)
    }

    /// The same for packets whose delay is not known: they were lost, or carried no send time.
    pub(super) fn undelayed(
        &self,
        flow: &KnownFlow,
        packets: Option<u64>,
    ) -> Result<u64, Cow<'static, str>> {
        self.missing(flow, packets, |cell| cell.delays)
    }

    fn missing(
        &self,
        flow: &KnownFlow,
        packets: Option<u64>,
        of: fn(&Cell) -> u64,
    ) -> Result<u64, Cow<'static, str>> {
        let cells = self.cells_of(flow).map(|index| {
            let sent = self.upstream.cells[index].packets;
            (i128::from(sent) - i128::from(of(&self.downstream.cells[index])), sent)
        });
        let (missing, sent) = cells.min().expect("there is a row");
        let weight = self.weight_of(flow);
        match u64::try_from(missing).map(|missing| missing / weight) {
            Err(_) => Err("loss is unknown: its cells counted more packets downstream".into()),
            Ok(0) => Ok(0),
            Ok(lost) => match packets {
                Some(packets) if packets.saturating_mul(2) >= sent / weight => {
                    Ok(lost.min(packets))
                }
                _ => Err(format!("lost at most {lost}: other flows share its cells").into()),
            },
        }
    }

    /// Packets of a flow at most that arrived without a send time.
    pub(super) fn unstamped(&self, flow: &KnownFlow) -> u64 {
        let cells = self.cells_of(flow).map(|index| &self.downstream.cells[index]);
        let least = cells.map(|cell| cell.packets.saturating_sub(cell.delays)).min();
        least.unwrap_or(0) / self.weight_of(flow)
    }

    /// The share of the packets downstream that carried a send time.
    pub(super) fn stamped_share(&self) -> f64 {
        let sum = |of: fn(&Cell) -> u64| -> f64 {
            self.downstream.cells.iter().map(|cell| of(cell) as f64).sum()
        };
        sum(|cell| cell.delays) / sum(|cell| cell.packets).max(1.0)
    }

    /// Bounds on the packets of a flow that only downstream saw: no more than its emptiest cell
    /// counted there.
    pub(super) fn strays_of(&self, flow: &KnownFlow) -> LossRange {
        let counts = self.cells_of(flow).map(|index| self.downstream.cells[index].packets);
        LossRange { min: 0, max: counts.min().unwrap_or(0) / self.weight_of(flow) }
    }

    /// Bounds on all packets that only downstream saw: counts tell no more than a lower one, and those
    /// of weighted packets nothing.
    fn strays(&self) -> Bounds {
        let sketch = self.upstream.config.sketch();
        let columns = sketch.columns() as usize;
        let surplus = |cell: usize| {
            let [sent, received] =
                [self.upstream, self.downstream].map(|end| end.cells[cell].packets);
            received.saturating_sub(sent)
        };
        let rows = (0..sketch.rows()).map(|row| {
            (row * columns..(row + 1) * columns).map(surplus).fold(0, u64::saturating_add)
        });
        let min = if sketch.weights().is_empty() { rows.max().unwrap_or(0) } else { 0 };
        Bounds { min, max: self.downstream.totals.packets }
    }

    /// The deviation of the delays of all packets.
    pub(super) fn deviation_ns(&self) -> f64 {
        let (count, sum_ns, squares) = self.row(0);
        let (count, sum_ns) = (count.max(1) as f64, sum_ns as f64);
        (squares / count - (sum_ns / count).powi(2)).max(0.0).sqrt()
    }

    /// The sum of all cells of a row, with its delays.
    fn row(&self, row: usize) -> (u64, i128, f64) {
        let columns = self.upstream.config.sketch().columns() as usize;
        let cells = self.cells[row * columns..][..columns].iter().flatten();
        cells.fold((0, 0, 0.0), |(count, sum, squares), cell| {
            let (delays, sum_ns) = cell.exact;
            let sum = sum + i128::from(sum_ns);
            (u64::saturating_add(count, delays), sum, squares + cell.square_sum)
        })
    }
}

/// Why a mean has no interval of which so many packets lack a send time.
pub(super) fn without_interval(who: &str) -> String {
    format!("no interval: {who} without a send time; the mean is that of the others")
}

/// All traffic: every row holds all of it.
fn all(table: &Table<'_>, question: &Question<'_>) -> Answer {
    let (sent, received) = (table.upstream.totals, table.downstream.totals);
    let is_weighted = !table.upstream.config.sketch().weights().is_empty();
    let (count, sum_ns, _) = table.row(0);
    let mut reasons: Vec<Cow<'static, str>> = Vec::new();
    if count == 0 {
        reasons.push("no packet carried its send time".into());
    } else if is_weighted {
        reasons.push("no mean of all traffic: packets are weighted".into());
    }
    let [lost, strays] = table.strays().ranges(sent.packets, received.packets);
    reasons.extend(stray_reason(question, lost, strays, None).map(Cow::from));
    let missing = received.packets.saturating_sub(count);
    let is_few = count > 0 && !is_weighted && missing > count;
    if is_few {
        reasons.push(format!("no mean: {missing} packets without a send time").into());
    }
    let mut delay = (count > 0 && !is_weighted && !is_few).then(|| {
        let deviation_ns = table.deviation_ns();
        DelayEstimate {
            count,
            sum_ns: sum_ns.saturating_add(i128::from(table.reference_ns) * i128::from(count)),
            deviation_ns: Some(deviation_ns),
            half_width_ns: (missing == 0).then_some(0.0),
            order: None,
            order_range: None,
        }
    });
    // What was not stamped may have taken any time: heartbeats may wait in another queue.
    if missing > 0 && delay.is_some() {
        let doubt = Excluded::of(question.incomplete()).doubt(&mut delay, received.packets);
        let is_known = delay.is_some();
        reasons.extend(is_known.then(|| without_interval(&format!("{missing} packets")).into()));
        reasons.extend(doubt.map(Cow::from));
    }
    let used = if delay.is_some() { count } else { 0 };
    let (packets, bytes) = (sent.packets, Some(sent.bytes));
    Answer { packets, used, bytes, delay, reasons, ..Answer::default() }.with(lost, strays)
}
