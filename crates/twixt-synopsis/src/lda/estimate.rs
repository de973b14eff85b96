//! The combined result of two LDAs.

use std::borrow::Cow;

use twixt_model::{DelayEstimate, Estimate, Evidence, LossRange, PacketDigest, Scope};

use super::Lda;
use super::repeats::Cells;
use crate::cells::COUNTS_LOST;
use crate::heartbeats::Excluded;
use crate::interval::student95;
use crate::question::Question;
use crate::strays::{Bounds, CellDifference, Scattered, stray_reason};
use crate::sums::{Sums, Usable};
use crate::synopsis::Pair;
use crate::tail;

/// With a larger share of identical packets whose delay is unknown there is no mean.
const LEFT_OUT_MOST: f64 = 0.5;
/// Identical packets are a part of the deviation from this share on.
const HEAVY_SHARE_MIN: f64 = 0.01;

pub(super) fn estimate(pair: Pair<'_, Lda>, question: &Question<'_>) -> Estimate {
    let (sent, received) = (pair.upstream.totals.packets, pair.downstream.totals.packets);
    if pair.upstream.cells.counts_lost() > 0 || pair.downstream.cells.counts_lost() > 0 {
        // Totals are known all the same.
        let outcome = Outcome { delay: None, reasons: vec![COUNTS_LOST.into()] };
        return outcome.stated(Bounds::counted(sent, received), pair, question);
    }
    let sums = [pair.upstream.sums(), pair.downstream.sums()];
    let cells = Cells::of(pair, &sums, question);
    let [lost, strays] = strays(pair, &sums).bounds().ranges(sent, received);
    // With strays in a cell it is not known how many packets it lost.
    let bounded = cells.with_bounds().filter(|_| strays.min == 0);
    let bounded = bounded.map(|cells| conclude(&cells, question, received));
    let mut outcome = bounded
        .filter(Outcome::is_useful)
        .unwrap_or_else(|| conclude(&cells.without_bounds(), question, received));
    outcome.reasons.extend(stray_reason(question, lost, strays, None).map(Cow::from));
    outcome.stated([lost, strays], pair, question)
}

fn conclude(cells: &Cells, question: &Question<'_>, received: u64) -> Outcome {
    let printed = question.estimator == Some("printed");
    let reference_ns = question.reference.as_nanos();
    let others = received.saturating_sub(cells.heavy_packets());
    let mut outcome = delay(&cells.ordinary, reference_ns, others, printed);
    outcome.add_heavy(cells, reference_ns, received);
    outcome.allow_for_doubt(cells.doubt_ns, received);
    let reason = Excluded::of(question.incomplete()).doubt(&mut outcome.delay, received);
    outcome.reasons.extend(reason.map(Cow::from));
    outcome.allow_for(cells.left_out, received);
    outcome
}

/// What cells tell of packets that only downstream saw. Which cell a packet falls into depends on its
/// digest, so lost packets and strays are scattered over them independently. A stray is alone in its
/// cell where neither hit it before: as often as cells agree.
fn strays(pair: Pair<'_, Lda>, sums: &[Vec<Sums>; 2]) -> Scattered {
    let config = &pair.upstream.config;
    let rows = config.rows() as usize;
    let mut scattered = Scattered::default();
    let mut counted = 0_u64;
    for (bank, share) in config.shares().enumerate() {
        let mut agreeing = 0_u64;
        let cells = sums[0].iter().zip(&sums[1]).enumerate().skip(bank * rows).take(rows);
        for (index, (sent, received)) in cells {
            let belongs = |digest| config.cell_for(PacketDigest(digest)) == Some(index);
            let cell = CellDifference::of(sent, received, belongs);
            let differs = cell.lost + cell.strays;
            agreeing += u64::from(differs == 0);
            scattered.alone += u64::from(cell.is_settled && cell.strays == 1);
            scattered.certain.add(cell, received.packets);
            counted = counted.saturating_add(received.packets);
        }
        let agreeing = agreeing as f64 / rows as f64;
        scattered.visible += share * agreeing;
        scattered.visible_variance += share * share * agreeing * (1.0 - agreeing) / rows as f64;
    }
    // Packets that are not sampled may be anything.
    let uncounted = pair.downstream.totals.packets.saturating_sub(counted);
    scattered.certain.max = scattered.certain.max.saturating_add(uncounted);
    scattered
}

/// Saturates: the counts may be hostile.
fn packets_of(cells: &[Option<Usable>]) -> u64 {
    cells.iter().flatten().fold(0, |sum, cell| sum.saturating_add(cell.packets))
}

#[derive(Default)]
struct Outcome {
    delay: Option<DelayEstimate>,
    reasons: Vec<Cow<'static, str>>,
}

/// What cells of independent packets tell of `received` of them.
fn delay(cells: &[Option<Usable>], reference_ns: i64, received: u64, printed: bool) -> Outcome {
    let count = packets_of(cells);
    if count == 0 {
        let reason = "no usable cell: every cell lost a packet, or there were none";
        return Outcome { reasons: vec![reason.into()], ..Outcome::default() };
    }
    let relative: i128 = cells.iter().flatten().map(|cell| i128::from(cell.delay_sum_ns)).sum();
    let mean_ns = relative as f64 / count as f64;
    let variance = match printed {
        true => printed_variance(cells, reference_ns as f64 + mean_ns, reference_ns as f64),
        false => centred_variance(cells, mean_ns),
    };
    let (deviation_ns, reason) = match variance {
        Some(variance) if variance >= 0.0 => (Some(variance.sqrt()), None),
        Some(_) => (None, Some("the estimated variance is negative")),
        None => (None, Some("too few usable cells for a deviation")),
    };
    let sum_ns = relative.saturating_add(i128::from(reference_ns) * i128::from(count));
    let unmeasured = 1.0 - count as f64 / received.max(count) as f64;
    let width = deviation_ns.map(|deviation| match unmeasured {
        0.0 => (0.0, None),
        _ => half_width(cells, mean_ns, deviation * (unmeasured / count as f64).sqrt()),
    });
    let (half_width_ns, heavy) = width.map_or((None, None), |(width, heavy)| (Some(width), heavy));
    let delay = DelayEstimate {
        count,
        sum_ns,
        deviation_ns,
        half_width_ns,
        order: None,
        order_range: None,
    };
    Outcome {
        delay: Some(delay),
        reasons: reason.into_iter().chain(heavy).map(Cow::Borrowed).collect(),
    }
}

/// The packets of usable cells are a uniform sample, without replacement, of those that arrived; so
/// the standard error has the correction for a finite population, and there is none when every packet
/// was measured. Student's quantile for as many cells of equal size as know the deviation as well,
/// wider for few of them and for heavy tails of their sums. (The printed bound is a sub-Gaussian one,
/// which delays are not.)
fn half_width(
    cells: &[Option<Usable>],
    mean_ns: f64,
    standard_error_ns: f64,
) -> (f64, Option<&'static str>) {
    let (mut count, mut squares, mut distances) = (0.0, 0.0, Vec::new());
    for cell in cells.iter().flatten() {
        let packets = cell.packets as f64;
        count += packets;
        squares += packets * packets;
        distances.push((cell.delay_sum_ns as f64 - mean_ns * packets) / packets.sqrt());
    }
    let effective = count * count / squares;
    let tail = tail::widening(&mut distances);
    let quantile = student95(effective - 1.0) * tail::few(effective) * tail.factor;
    (quantile * standard_error_ns, tail.is_heavy.then_some(tail::HEAVY))
}

impl Outcome {
    fn stated(
        self,
        [lost, strays]: [LossRange; 2],
        pair: Pair<'_, Lda>,
        question: &Question<'_>,
    ) -> Estimate {
        let totals = pair.upstream.totals;
        let used = self.delay.map_or(0, |delay| delay.count);
        let (packets, bytes) = (totals.packets, Some(totals.bytes));
        let mut evidence = Evidence { packets, used, bytes, ..Evidence::default() };
        evidence.set_loss(Some(lost));
        evidence.set_strays(Some(strays));
        Estimate {
            scope: Scope::All,
            span: question.span,
            evidence,
            reason: (!self.reasons.is_empty()).then(|| self.reasons.join("; ")),
            delay: self.delay,
            sample: None,
            crossings: None,
        }
    }

    /// Adds cells of identical packets of which none was lost. They stand for themselves and for no
    /// others, however many of the others could be measured.
    fn add_heavy(&mut self, cells: &Cells, reference_ns: i64, received: u64) {
        let heavy = cells.heavy_packets();
        let share = heavy as f64 / received.max(1) as f64;
        if cells.are_clustered || share > HEAVY_SHARE_MIN {
            let known = self.delay.as_mut().and_then(|delay| delay.deviation_ns.take());
            let reason = known.map(|_| "no deviation: identical packets share cells");
            self.reasons.extend(reason.map(Cow::Borrowed));
        }
        if heavy == 0 {
            return;
        }
        let heavy_ns: i128 = cells.heavy.iter().map(|cell| i128::from(cell.delay_sum_ns)).sum();
        let reference = |count: u64| i128::from(reference_ns) * i128::from(count);
        let Some(delay) = &mut self.delay else {
            self.reasons = vec!["only cells of identical packets are usable".into()];
            let sum_ns = heavy_ns.saturating_add(reference(heavy));
            let delay = DelayEstimate {
                count: heavy,
                sum_ns,
                deviation_ns: None,
                half_width_ns: (heavy >= received).then_some(0.0),
                order: None,
                order_range: None,
            };
            self.delay = (share >= 1.0 - LEFT_OUT_MOST).then_some(delay);
            return;
        };
        let others = received.saturating_sub(heavy).max(delay.count);
        let others_ns = delay.sum_ns.saturating_sub(reference(delay.count));
        let scale = others as f64 / delay.count as f64;
        // Not added as integers: counts may be hostile.
        let all = others as f64 + heavy as f64;
        delay.half_width_ns = delay.half_width_ns.map(|width| width * others as f64 / all);
        let count = delay.count.saturating_add(heavy);
        // To the unit where every packet was measured.
        let relative_ns = match others == delay.count {
            true => heavy_ns.saturating_add(others_ns),
            false => {
                let mean_ns = (heavy_ns as f64 + others_ns as f64 * scale) / all;
                (mean_ns * count as f64).round() as i128
            }
        };
        delay.sum_ns = relative_ns.saturating_add(reference(count));
        delay.count = count;
    }

    /// Identical packets of which it is not known which were lost.
    fn allow_for_doubt(&mut self, doubt_ns: f64, received: u64) {
        let Some(delay) = self.delay.as_mut().filter(|_| doubt_ns > 0.0) else { return };
        let doubt_ns = doubt_ns / received.max(1) as f64;
        delay.half_width_ns = delay.half_width_ns.map(|width| width + doubt_ns);
        self.reasons.push(
            "some of several identical packets were lost: the interval covers whichever they were"
                .into(),
        );
    }

    /// Whether the interval is narrower than the mean is long.
    fn is_useful(&self) -> bool {
        self.delay.is_some_and(|delay| {
            delay.half_width_ns.is_some_and(|width| width < delay.mean_ns().abs())
        })
    }

    /// Identical packets that arrived, but whose delay no usable cell tells. It may be any.
    fn allow_for(&mut self, left_out: f64, received: u64) {
        let share = left_out / received.max(1) as f64;
        let Some(delay) = self.delay.as_mut().filter(|_| left_out >= 1.0) else { return };
        let who = format!("some {left_out:.0} packets are identical to others, and left out");
        let reason = if share > LEFT_OUT_MOST {
            self.delay = None;
            format!("no mean: {who} as packets were lost in their cells")
        } else {
            delay.half_width_ns = None;
            format!("no interval: {who}; the mean is that of the others")
        };
        self.reasons.push(reason.into());
    }
}

/// Deviation over single usable cells with the mean taken out first.
///
/// In a cell of n packets with total delay T, E (T - mu n)^2 = n sigma^2; the sample's own mean
/// costs one degree of freedom, weighted by cell: the divisor is S - sum n^2 / S.
/// The printed estimator (below) subtracts two large numbers instead, and drowns as soon as a
/// constant delay or a clock offset is a few times the deviation.
fn centred_variance(cells: &[Option<Usable>], mean_ns: f64) -> Option<f64> {
    let (mut squares, mut count, mut count_squares) = (0.0, 0.0, 0.0);
    for cell in cells.iter().flatten() {
        let packets = cell.packets as f64;
        squares += (cell.delay_sum_ns as f64 - mean_ns * packets).powi(2);
        count += packets;
        count_squares += packets * packets;
    }
    let freedom = count - count_squares / count;
    (freedom > 0.0).then(|| squares / freedom)
}

/// As in section IV-C of the paper: neighbouring rows collapse into one with opposite signs, the
/// mean square F of these estimates E w^2, and the variance is F - mu^2. A pair counts only if
/// both rows are usable (equal sums of the two, as printed, let a stray packet pass).
fn printed_variance(cells: &[Option<Usable>], mean_ns: f64, reference_ns: f64) -> Option<f64> {
    let second_moment = collapsed_second_moment(cells, reference_ns)?;
    Some(second_moment - mean_ns * mean_ns)
}

fn collapsed_second_moment(cells: &[Option<Usable>], reference_ns: f64) -> Option<f64> {
    let (mut squares, mut count) = (0.0, 0.0);
    for pair in cells.chunks_exact(2) {
        if let [Some(one), Some(other)] = pair {
            let total =
                |cell: &Usable| cell.delay_sum_ns as f64 + reference_ns * cell.packets as f64;
            squares += (total(one) - total(other)).powi(2);
            count += one.packets as f64 + other.packets as f64;
        }
    }
    (count > 0.0).then(|| squares / count)
}

#[cfg(test)]
mod tests;
