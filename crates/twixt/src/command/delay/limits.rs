//! `--fail-above` on estimates of delay.

use twixt_collector::alerts::Measure;
use twixt_model::{DelayEstimate, Estimate};

use crate::args::{FailAbove, Judgement, Known, LimitMeasure};
use crate::exit::Exit;
use crate::output::units;

/// Refuses limits on what is not measured here.
pub(super) fn check(limits: Option<&FailAbove>) -> anyhow::Result<()> {
    let is_measured = |measure| matches!(measure, LimitMeasure::Of(of) if of != Measure::Gaps);
    limits.map_or(Ok(()), |limits| limits.check(is_measured))
}

/// Compares every estimate, and says how the command ends.
pub(super) fn conclude<'a>(
    limits: Option<&FailAbove>,
    estimates: impl Iterator<Item = &'a Estimate>,
    is_series: bool,
    exit: Exit,
) -> Exit {
    let Some(limits) = limits else { return exit };
    let mut judgement = Judgement::default();
    for estimate in estimates {
        let scope = match is_series {
            true => format!("{} at {}", estimate.scope, units::moment(estimate.span.start)),
            false => estimate.scope.to_string(),
        };
        limits.judge(&mut judgement, &scope, |measure| known(estimate, measure));
    }
    judgement.conclude(exit)
}

fn known(estimate: &Estimate, measure: LimitMeasure) -> Known {
    let LimitMeasure::Of(measure) = measure else { return Known::Nothing };
    let exactly = |value: Option<f64>| value.map_or(Known::Nothing, Known::Exactly);
    let percentile = |share| estimate.percentile(share).map(|found| found.time_ns as f64);
    match (measure, measure.percentile_share()) {
        (_, Some(share)) => exactly(percentile(share)),
        (Measure::Mean, _) => exactly(estimate.delay.as_ref().map(DelayEstimate::mean_ns)),
        (Measure::Deviation, _) => exactly(estimate.delay.and_then(|delay| delay.deviation_ns)),
        (Measure::Jitter, _) => exactly(estimate.jitter_ns()),
        (Measure::Loss, _) => match (estimate.evidence.loss_range(), estimate.evidence.packets) {
            (_, 0) => Known::Exactly(0.0),
            (Some(range), packets) => {
                Known::Between(range.min as f64 / packets as f64, range.max as f64 / packets as f64)
            }
            (None, _) => Known::Nothing,
        },
        _ => Known::Nothing,
    }
}
