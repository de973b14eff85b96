//! The combined result of two LDAs.

use twixt_model::{DelayEstimate, Estimate, Evidence, Scope};

use super::Lda;
use crate::question::Question;
use crate::sums::Usable;
use crate::synopsis::Pair;

/// Quantile of the normal distribution for a two-sided 95 % interval.
const Z95: f64 = 1.959_963_984_540_054;

pub(super) fn estimate(pair: Pair<'_, Lda>, question: &Question<'_>) -> Estimate {
    let cells = usable_cells(pair, question.reference.as_nanos());
    let lost = pair.upstream.totals.lost_until(pair.downstream.totals);
    let received = pair.downstream.totals.packets;
    let printed = question.estimator == Some("printed");
    let outcome = delay(&cells, question.reference.as_nanos(), received, printed);
    let used = packets_of(&cells);
    let stray = lost.is_none().then_some("more packets downstream than upstream: loss is unknown");
    let reasons: Vec<&str> = outcome.reason.into_iter().chain(stray).collect();
    Estimate {
        scope: Scope::All,
        span: question.span,
        evidence: Evidence {
            packets: pair.upstream.totals.packets,
            used,
            lost,
            bytes: Some(pair.upstream.totals.bytes),
            ..Evidence::default()
        },
        reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
        delay: outcome.delay,
        sample: None,
    }
}

/// Cell by cell, bank by bank; `None` where packets were lost or added, or there were none.
fn usable_cells(pair: Pair<'_, Lda>, reference_ns: i64) -> Vec<Option<Usable>> {
    let cells = pair.upstream.cells.iter().zip(&pair.downstream.cells);
    cells.map(|(upstream, downstream)| Usable::of(upstream, downstream, reference_ns)).collect()
}

/// Saturates: the counts may be hostile.
fn packets_of(cells: &[Option<Usable>]) -> u64 {
    cells.iter().flatten().fold(0, |sum, cell| sum.saturating_add(cell.packets))
}

struct Outcome {
    delay: Option<DelayEstimate>,
    reason: Option<&'static str>,
}

fn delay(cells: &[Option<Usable>], reference_ns: i64, received: u64, printed: bool) -> Outcome {
    let count = packets_of(cells);
    if count == 0 {
        let reason = "no usable cell: every cell lost a packet, or there were none";
        return Outcome { delay: None, reason: Some(reason) };
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
    let half_width_ns = deviation_ns.map(|deviation| half_width(deviation, count, received));
    let delay = DelayEstimate {
        count,
        sum_ns,
        deviation_ns,
        half_width_ns,
        order: None,
        order_range: None,
    };
    Outcome { delay: Some(delay), reason }
}

/// The packets of usable cells are a uniform sample, without replacement, of those that arrived:
/// a normal interval with the correction for a finite population. It is empty when every packet
/// was measured. (The printed bound is a sub-Gaussian one, which delays are not.)
fn half_width(deviation_ns: f64, count: u64, received: u64) -> f64 {
    let unmeasured = 1.0 - count as f64 / received.max(count) as f64;
    Z95 * deviation_ns * (unmeasured / count as f64).sqrt()
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
