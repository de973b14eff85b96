//! The order of round trips in tables, and limits on them.

use twixt_collector::alerts::Measure;
use twixt_model::{RoundTripEstimate, RoundTripKind, Scope};

use crate::args::{FailAbove, Judgement, Known, LimitMeasure};
use crate::exit::{Exit, usage};
use crate::output::{SortKey, sort_by_value};

/// Refuses what round trips do not have.
pub(super) fn check(limits: Option<&FailAbove>, sort: Option<SortKey>) -> anyhow::Result<()> {
    if matches!(sort, Some(SortKey::Loss | SortKey::Jitter)) {
        return Err(usage("--sort: round trips are sorted by mean, p95 or packets"));
    }
    let is_measured = |measure| match measure {
        LimitMeasure::Of(of) => {
            matches!(of, Measure::Mean | Measure::Deviation) || of.percentile_share().is_some()
        }
        LimitMeasure::ShareAbove(_) => true,
        LimitMeasure::Share => false,
    };
    limits.map_or(Ok(()), |limits| limits.check(is_measured))
}

/// Puts the groups of each kind in order; each kind comes before its groups.
pub(super) fn sort(estimates: &mut [RoundTripEstimate], key: SortKey) {
    for kind in estimates.chunk_by_mut(|_, next| !next.is_whole()) {
        // The whole and its parts stay where they are.
        let groups = kind.iter().take_while(|estimate| estimate.scope == Scope::All).count();
        sort_by_value(&mut kind[groups..], |estimate| match key {
            SortKey::Mean => estimate.times.as_ref().map(|times| times.mean_ns),
            SortKey::P95 => percentile(estimate, 0.95),
            _ => Some(estimate.matched as f64),
        });
    }
}

/// Compares every kind and group, and says how the command ends.
pub(super) fn conclude(
    limits: Option<&FailAbove>,
    estimates: &[RoundTripEstimate],
    exit: Exit,
) -> Exit {
    let Some(limits) = limits else { return exit };
    let mut judgement = Judgement::default();
    // Of kinds that do not occur there is nothing to compare, and how long connections last is no
    // round trip.
    let is_compared = |estimate: &&RoundTripEstimate| {
        estimate.matched > 0 && estimate.kind != RoundTripKind::TcpDuration
    };
    for estimate in estimates.iter().filter(is_compared) {
        let name = match (&estimate.scope, estimate.part) {
            (Scope::All, None) => estimate.kind.name().to_owned(),
            (Scope::All, Some(part)) => format!("{} {part}", estimate.kind.name()),
            (scope, _) => format!("{} {scope}", estimate.kind.name()),
        };
        limits.judge(&mut judgement, &name, |measure| known(estimate, measure));
    }
    judgement.conclude(exit)
}

fn known(estimate: &RoundTripEstimate, measure: LimitMeasure) -> Known {
    let times = estimate.times.as_ref();
    let value = match measure {
        LimitMeasure::Of(Measure::Mean) => times.map(|times| times.mean_ns),
        LimitMeasure::Of(Measure::Deviation) => times.map(|times| times.deviation_ns),
        LimitMeasure::Of(of) => of.percentile_share().and_then(|share| percentile(estimate, share)),
        LimitMeasure::ShareAbove(time) => times.map(|times| 1.0 - share_up_to(&times.cdf, time.0)),
        LimitMeasure::Share => None,
    };
    value.map_or(Known::Nothing, Known::Exactly)
}

fn percentile(estimate: &RoundTripEstimate, share: f64) -> Option<f64> {
    let percentiles = &estimate.times.as_ref()?.percentiles;
    percentiles.iter().find(|found| found.share == share).map(|found| found.time_ns as f64)
}

/// The share of round trips that took no longer: between two points of the distribution, in
/// proportion.
fn share_up_to(cdf: &[(i64, f64)], time_ns: i64) -> f64 {
    let after = cdf.partition_point(|&(ns, _)| ns <= time_ns);
    match (after.checked_sub(1).map(|before| cdf[before]), cdf.get(after)) {
        (None, _) => 0.0,
        (Some((_, share)), None) => share,
        (Some((before_ns, share)), Some(&(after_ns, next))) => {
            let part = (time_ns - before_ns) as f64 / (after_ns - before_ns) as f64;
            share + (next - share) * part
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_off_the_distribution() {
        let cdf = [(10, 0.25), (20, 0.75), (40, 1.0)];
        let cases =
            [(5, 0.0), (10, 0.25), (15, 0.5), (20, 0.75), (30, 0.875), (40, 1.0), (99, 1.0)];
        for (time, expected) in cases {
            assert_eq!(share_up_to(&cdf, time), expected, "{time}");
        }
    }
}
