//! Round trips of a point, beside limits. A limit is broken only if all of the 95 % interval lies above
//! it, and kept only if all of it lies below: few round trips decide nothing.

use twixt_collector::alerts::Measure;
use twixt_collector::api::{CompletenessDocument, RoundTripDocument, RoundTripsDocument};
use twixt_history::RowQuestion;
use twixt_model::{PointId, RoundTripKind, Segment};

use super::judging::{Finding, State};
use super::{Args, Checked};
use crate::args::{Limit, LimitMeasure};
use crate::command::query::points::{PointSource, round_trips};
use crate::exit::usage;
use crate::output::units;

pub(super) fn check(args: &Args, point: &str) -> anyhow::Result<Checked> {
    args.fail_above.iter().try_for_each(refuse_other)?;
    let point = || PointId(point.to_owned());
    let question = RowQuestion {
        segment: Some(Segment { upstream: point(), downstream: point() }),
        kind: args.kind.map(|kind| kind.name().to_owned()),
        part: Some(String::new()),
        of_all: true,
        ..args.question()?
    };
    let source = PointSource::of(&args.source)?;
    let (mut findings, mut completeness) = (Vec::new(), CompletenessDocument::default());
    for limit in &args.fail_above {
        let above_ns = match limit.measure {
            LimitMeasure::ShareAbove(time) => Some(time.0),
            _ => None,
        };
        let document = round_trips(&source, &question, above_ns)?;
        findings.extend(judge(&document, limit, args));
        completeness = document.completeness;
    }
    Ok(Checked { span: question.span, findings, completeness })
}

/// Refuses what round trips do not have.
fn refuse_other(limit: &Limit) -> anyhow::Result<()> {
    let is_measured = match limit.measure {
        LimitMeasure::Of(measure) => !matches!(measure, Measure::Jitter | Measure::Loss),
        LimitMeasure::ShareAbove(_) => true,
        LimitMeasure::Share => false,
    };
    match is_measured {
        true => Ok(()),
        false => Err(usage(format!("--fail-above: round trips have no {}", limit.measure))),
    }
}

fn judge(document: &RoundTripsDocument, limit: &Limit, args: &Args) -> Vec<Finding> {
    let completeness = &document.completeness;
    if limit.measure == LimitMeasure::Of(Measure::Gaps) {
        let (epochs, gaps) = (completeness.epochs, completeness.gaps);
        let share = gaps as f64 / epochs.saturating_add(gaps).max(1) as f64;
        let known = Some((share, share, share)).filter(|_| epochs > 0 || gaps > 0);
        return vec![finding(limit, known, || NOT_RECORDED.to_owned())];
    }
    // How long connections last is no round trip.
    let duration = RoundTripKind::TcpDuration.name();
    let is_asked = |row: &&RoundTripDocument| args.kind.is_some() || row.kind != duration;
    let found: Vec<Finding> = document
        .total
        .iter()
        .filter(is_asked)
        .map(|row| Finding {
            class: row.class.clone(),
            kind: Some(row.kind.clone()),
            algorithm: Some(row.algorithm.clone()),
            packets: Some(row.matched),
            ..of_row(row, limit, args.minimum_packets)
        })
        .collect();
    match found.is_empty() {
        false => found,
        true => {
            let reason = match completeness.epochs {
                0 => NOT_RECORDED,
                _ => "no such round trip",
            };
            let kind = args.kind.map(|kind| kind.name().to_owned());
            vec![Finding { kind, ..finding(limit, None, || reason.to_owned()) }]
        }
    }
}

/// Of a time without any epoch.
const NOT_RECORDED: &str = "not recorded";

fn of_row(row: &RoundTripDocument, limit: &Limit, minimum: u64) -> Finding {
    if row.matched < minimum {
        let reason = || format!("{} round trips are too few", row.matched);
        return finding(limit, None, reason);
    }
    let reason = || row.reason.clone().unwrap_or_else(|| format!("{} is unknown", limit.measure));
    finding(limit, known(row, limit.measure), reason)
}

/// A value with the ends of its interval.
fn known(row: &RoundTripDocument, measure: LimitMeasure) -> Option<(f64, f64, f64)> {
    let times = |value: Option<i64>, low: Option<i64>, high: Option<i64>| {
        Some((value? as f64, low? as f64, high? as f64))
    };
    match measure {
        LimitMeasure::ShareAbove(_) => {
            Some((row.share_above?, row.share_above_low?, row.share_above_high?))
        }
        LimitMeasure::Of(Measure::Mean) => times(row.mean_ns, row.ci95_low_ns, row.ci95_high_ns),
        // Its error is not known; it is compared as it is.
        LimitMeasure::Of(Measure::Deviation) => times(row.stddev_ns, row.stddev_ns, row.stddev_ns),
        LimitMeasure::Of(Measure::P50) => times(row.p50_ns, row.p50_low_ns, row.p50_high_ns),
        LimitMeasure::Of(Measure::P95) => times(row.p95_ns, row.p95_low_ns, row.p95_high_ns),
        LimitMeasure::Of(Measure::P99) => times(row.p99_ns, row.p99_low_ns, row.p99_high_ns),
        LimitMeasure::Of(Measure::P999) => times(row.p999_ns, row.p999_low_ns, row.p999_high_ns),
        _ => None,
    }
}

/// Beside a limit: `reason` says why nothing is known.
fn finding(
    limit: &Limit,
    known: Option<(f64, f64, f64)>,
    reason: impl FnOnce() -> String,
) -> Finding {
    let above = limit.above;
    let is_time = matches!(limit.measure, LimitMeasure::Of(measure) if measure.is_time());
    let shown = |value: f64| if is_time { units::duration(value) } else { units::percent(value) };
    let (state, reason) = match known {
        None => (State::Unknown, Some(reason())),
        Some((_, low, _)) if low > above => (State::Critical, None),
        Some((_, _, high)) if high <= above => (State::Ok, None),
        Some((_, low, high)) => {
            let (low, high) = (shown(low), shown(high));
            let limit = shown(above);
            (State::Unknown, Some(format!("between {low} and {high}, limit {limit}")))
        }
    };
    Finding {
        state,
        class: String::new(),
        kind: None,
        algorithm: None,
        measure: limit.measure.to_string(),
        unit: if is_time { "ns" } else { "share" },
        value: known.map(|known| known.0).filter(|_| state != State::Unknown),
        interval: known.map(|known| (known.1, known.2)),
        fail_above: above,
        packets: None,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(limit: &str, (share, low, high): (f64, f64, f64), state: State) {
        let row = RoundTripDocument {
            matched: 100,
            share_above: Some(share),
            share_above_low: Some(low),
            share_above_high: Some(high),
            ..RoundTripDocument::default()
        };
        let found = of_row(&row, &limit.parse().unwrap(), 1);
        assert_eq!(found.state, state, "{found:?}");
        assert_eq!(found.value.is_some(), state != State::Unknown);
        let few = of_row(&row, &limit.parse().unwrap(), 101);
        assert_eq!(few.state, State::Unknown, "{few:?}");
    }

    #[test]
    fn a_limit_is_broken_or_kept_by_all_of_an_interval() {
        check("share:50ms=5%", (0.10, 0.06, 0.15), State::Critical);
        check("share:50ms=5%", (0.10, 0.05, 0.15), State::Unknown);
        check("share:50ms=5%", (0.01, 0.00, 0.06), State::Unknown);
        check("share:50ms=5%", (0.01, 0.00, 0.05), State::Ok);
        let unmeasured = RoundTripDocument { matched: 9, ..RoundTripDocument::default() };
        let found = of_row(&unmeasured, &"p99=1ms".parse().unwrap(), 1);
        assert_eq!(
            (found.state, found.reason),
            (State::Unknown, Some("p99 is unknown".to_owned()))
        );
    }
}
