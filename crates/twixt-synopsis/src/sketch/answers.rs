//! Answers about all traffic, about flows, about pairs of prefixes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use twixt_model::{DelayEstimate, Estimate, Evidence, LossRange, Scope};

use super::loss::strays;
use super::{Layout, Sketch, Table};
use crate::cells::COUNTS_LOST;
use crate::heartbeats::Excluded;
use crate::question::{By, KnownFlow, Question};
use crate::strays::{Bounds, stray_reason};
use crate::sums::Usable;
use crate::synopsis::Pair;

/// Why a mean has no interval.
pub(crate) const NO_INTERVAL: &str = "no interval: the share of other flows is unknown";

/// What is known of a flow, or of several together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) packets: u64,
    pub(crate) used: u64,
    pub(crate) lost: Option<u64>,
    /// Bounds on that number, where only these are known.
    pub(crate) lost_between: Option<LossRange>,
    /// Bounds on how many packets only downstream saw.
    pub(crate) strays: Option<LossRange>,
    pub(crate) bytes: Option<u64>,
    pub(crate) delay: Option<DelayEstimate>,
    pub(crate) reasons: Vec<Cow<'static, str>>,
}

/// Counts and delays of some cells, added up as they are: sampled rows are not scaled up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) packets: u64,
    /// Relative to the reference.
    pub(crate) delay_sum_ns: i128,
}

impl Sum {
    /// Saturates: the counts may be hostile.
    pub(crate) fn add(&mut self, cell: Usable) {
        self.packets = self.packets.saturating_add(cell.packets);
        self.delay_sum_ns += i128::from(cell.delay_sum_ns);
    }

    /// The mean of these cells, as that of `used` packets.
    pub(crate) fn delay(self, used: u64, reference_ns: i64) -> DelayEstimate {
        let relative = match self.packets == used {
            true => self.delay_sum_ns,
            false => {
                let mean_ns = self.delay_sum_ns as f64 / self.packets as f64;
                (mean_ns * used as f64).round() as i128
            }
        };
        let reference = i128::from(reference_ns) * i128::from(used);
        let sum_ns = relative.saturating_add(reference);
        DelayEstimate {
            count: used,
            sum_ns,
            deviation_ns: None,
            half_width_ns: None,
            order: None,
            order_range: None,
        }
    }
}

/// Answers a question about `flows`; `answer` does so for distinct ones, in their order.
pub(crate) fn estimate<'a, S: Sketch>(
    pair: Pair<'a, S>,
    question: &Question<'_>,
    flows: &[KnownFlow],
    answer: impl FnOnce(&Table<'a, S>, &[KnownFlow]) -> Vec<Answer>,
) -> Vec<Estimate> {
    if pair.upstream.counts_lost() > 0 || pair.downstream.counts_lost() > 0 {
        return overflown(pair, question, &distinct(flows));
    }
    let mut table = Table::new(pair, question.reference.as_nanos());
    table.leave_out_heartbeats(question, flows);
    if question.by == By::All {
        return vec![all(&table, question).estimate(Scope::All, question)];
    }
    let flows = distinct(flows);
    let answers = answer(&table, &flows).into_iter().zip(&flows);
    let answers = answers.map(|(answer, flow)| answer.without(&question.incomplete_of(flow.hash)));
    answered(&flows, answers.collect(), question)
}

/// Answers where cells mean nothing: totals are known, and no more.
fn overflown<S: Sketch>(
    pair: Pair<'_, S>,
    question: &Question<'_>,
    flows: &[KnownFlow],
) -> Vec<Estimate> {
    let nothing = || Answer { reasons: vec![COUNTS_LOST.into()], ..Answer::default() };
    if question.by != By::All {
        let answers = flows.iter().map(|_| nothing()).collect();
        return answered(flows, answers, question);
    }
    let (sent, received) = (pair.upstream.totals(), pair.downstream.totals());
    let [lost, strays] = Bounds::counted(sent.packets, received.packets);
    let all = Answer { packets: sent.packets, bytes: Some(sent.bytes), ..nothing() };
    vec![all.with(lost, strays).estimate(Scope::All, question)]
}

impl Answer {
    /// About a flow of which nothing shows that it sent anything.
    pub(crate) fn not_seen() -> Self {
        let reason = "not seen: its packets cannot be distinguished from those of other flows";
        Self { reasons: vec![reason.into()], ..Self::default() }
    }

    /// About a flow of which only that is known, that it sent something.
    pub(crate) fn not_separated() -> Self {
        let reason = "no delay: its packets cannot be distinguished from those of other flows";
        Self { reasons: vec![reason.into()], ..Self::default() }
    }

    /// The same, with an interval that contains another one, which is around `mean_ns`.
    pub(crate) fn around(mut self, mean_ns: f64, half_width_ns: f64) -> Self {
        if let Some(delay) = &mut self.delay {
            delay.half_width_ns = Some(half_width_ns + (delay.mean_ns() - mean_ns).abs());
            self.reasons.retain(|reason| reason != NO_INTERVAL);
        }
        self
    }

    /// The same without packets that are left out.
    pub(crate) fn without(mut self, excluded: &Excluded) -> Self {
        let reason = excluded.doubt(&mut self.delay, self.packets);
        self.reasons.extend(reason.map(Cow::from));
        self
    }

    /// The same, with bounds on loss and strays.
    pub(crate) fn with(self, lost: LossRange, strays: LossRange) -> Self {
        let lost_between = Some(lost).filter(|range| range.exact().is_none());
        Self { lost: lost.exact(), lost_between, strays: Some(strays), ..self }
    }

    pub(crate) fn estimate(self, scope: Scope, question: &Question<'_>) -> Estimate {
        let Self { packets, used, lost, lost_between, strays, bytes, delay, reasons } = self;
        let mut evidence =
            Evidence { packets, used, lost, lost_between, bytes, ..Evidence::default() };
        evidence.set_strays(strays);
        let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
        let (span, sample, crossings) = (question.span, None, None);
        Estimate { scope, span, evidence, delay, reason, sample, crossings }
    }
}

/// Estimates of flows, split up as asked.
pub(crate) fn answered(
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

/// Of the packets that a row counted, at least this part must be in usable cells for a mean of all traffic. Loss
/// often comes with delay, as in a queue that is full: flows without any loss are those that saw
/// little of it. With fewer, their mean may be anything.
const USED_MIN: f64 = 0.1;
/// Of rows whose usable cells hold nearly as large a part of the packets, by this factor, the one that counted
/// most is taken.
const NEARLY: f64 = 0.9;

/// What one row tells of all traffic.
struct RowSum {
    usable: Sum,
    /// Packets that it counted downstream.
    counted: u64,
}

impl RowSum {
    fn share(&self) -> f64 {
        self.usable.packets as f64 / self.counted.max(1) as f64
    }
}

/// The row whose usable cells hold the largest part of what it counted. Other rows count the same
/// packets again.
fn best_row<S: Sketch>(table: &Table<'_, S>) -> RowSum {
    let row_cells = table.cells.len() / table.config().rows();
    let rows = (0..table.config().rows()).map(|row| {
        let (mut usable, mut counted) = (Sum::default(), 0_u64);
        for cell in row * row_cells..(row + 1) * row_cells {
            table.cells[cell].into_iter().for_each(|cell| usable.add(cell));
            counted = counted.saturating_add(table.downstream.sums(cell).packets);
        }
        RowSum { usable, counted }
    });
    let rows: Vec<RowSum> = rows.collect();
    let most = rows.iter().map(RowSum::share).fold(0.0, f64::max);
    let near = rows.into_iter().filter(|row| row.share() >= NEARLY * most);
    near.max_by_key(|row| row.usable.packets).expect("there is a row")
}

/// All traffic, by its best row.
fn all<S: Sketch>(table: &Table<'_, S>, question: &Question<'_>) -> Answer {
    let best = best_row(table);
    let (sent, received) = (table.upstream.totals(), table.downstream.totals());
    let counted = sent.lost_until(received);
    let is_whole = best.usable.packets == received.packets && counted == Some(0);
    let is_weighted = table.config().is_weighted();
    let is_sliver = best.usable.packets > 0 && best.share() < USED_MIN;
    let is_known = best.usable.packets > 0 && !is_weighted && !is_sliver;
    let mut delay = is_known.then(|| DelayEstimate {
        half_width_ns: is_whole.then_some(0.0),
        ..best.usable.delay(best.usable.packets, table.reference_ns)
    });
    let mut reasons: Vec<Cow<'static, str>> = Vec::new();
    reasons.push(match delay {
        None if is_weighted => "no mean of all traffic: packets are weighted".into(),
        None if is_sliver => format!(
            "no mean: only {} of {} packets are in cells without loss, fewer than {:.0} %; flows that lost \
             packets may be delayed more than others",
            best.usable.packets,
            best.counted,
            100.0 * USED_MIN
        )
        .into(),
        None => "no usable cell: every cell lost a packet, or there were none".into(),
        // A cell's total varies with which flows fell into it, far more than packets do.
        Some(_) => "no deviation: cells hold whole flows".into(),
    });
    if delay.is_some() && !is_whole {
        reasons.push("no interval: cells with loss, and thus large flows, are left out".into());
    }
    reasons.extend(
        Excluded::of(question.incomplete()).doubt(&mut delay, received.packets).map(Cow::from),
    );
    let [lost, strays] = strays(table).ranges(sent.packets, received.packets);
    reasons.extend(stray_reason(question, lost, strays, None).map(Cow::from));
    let used = if delay.is_some() { best.usable.packets } else { 0 };
    let (packets, bytes) = (sent.packets, Some(sent.bytes));
    Answer { packets, used, bytes, delay, reasons, ..Answer::default() }.with(lost, strays)
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
    let strays = answers.iter().try_fold(LossRange::default(), |sum, answer| {
        Some(LossRange { min: sum.min.max(answer.strays?.min), ..sum.added(answer.strays?) })
    });
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
        reasons.push(format!("loss is unknown for {without} flows").into());
    }
    let (packets, used) = (total(|answer| answer.packets), total(|answer| answer.used));
    Answer { packets, used, lost, strays, bytes, delay, reasons, ..Answer::default() }
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
        order_range: None,
    })
}

/// `sum` of `count` packets, as the sum of `packets` with the same mean.
fn scaled(sum: i128, count: u64, packets: u64) -> i128 {
    let (count, packets) = (i128::from(count), i128::from(packets));
    let rest = sum.rem_euclid(count) as f64 / count as f64 * packets as f64;
    sum.div_euclid(count).saturating_mul(packets).saturating_add(rest.round() as i128)
}
