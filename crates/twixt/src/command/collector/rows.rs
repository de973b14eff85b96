//! What `--follow -F jsonl` prints. Keys are part of the contract with users.

use serde::Serialize;
use twixt_engine::{Conclusions, EngineEvent, Gap, PairEstimate, PointEstimate, Series, Warning};
use twixt_history::{Row, SeriesKey};
use twixt_model::Estimate;

use crate::output::{EstimateRow, round_trip_rows};

/// Which segment, and how it is looked at.
#[derive(Serialize)]
struct SeriesKeys<'a> {
    domain: &'a str,
    upstream: &'a str,
    downstream: &'a str,
    class: &'a str,
    algorithm: &'a str,
}

#[derive(Serialize)]
struct EstimateLine<'a> {
    event: &'static str,
    #[serde(flatten)]
    series: SeriesKeys<'a>,
    epoch: i64,
    realigned_epochs: i64,
    late: bool,
    #[serde(flatten)]
    row: EstimateRow,
    #[serde(flatten)]
    missed: MissedKeys,
}

/// Packets that the points did not observe.
#[derive(Serialize)]
struct MissedKeys {
    upstream_dropped: Option<u64>,
    downstream_dropped: Option<u64>,
    upstream_late: Option<u64>,
    downstream_late: Option<u64>,
}

#[derive(Serialize)]
struct SummaryLine<'a> {
    event: &'static str,
    #[serde(flatten)]
    series: SeriesKeys<'a>,
    epochs: u64,
    gaps: u64,
    #[serde(flatten)]
    row: EstimateRow,
    #[serde(flatten)]
    missed: MissedKeys,
}

#[derive(Serialize)]
struct GapLine<'a> {
    event: &'static str,
    #[serde(flatten)]
    series: SeriesKeys<'a>,
    epoch: i64,
    epochs: u64,
    point: Option<&'a str>,
    gap: String,
    start_ns: i64,
    end_ns: i64,
}

#[derive(Serialize)]
struct WarningLine<'a> {
    event: &'static str,
    upstream: Option<&'a str>,
    downstream: Option<&'a str>,
    kind: &'static str,
    warning: &'a str,
}

/// The result of one point for an epoch or a minute.
#[derive(Serialize)]
struct PointLine<'a> {
    event: &'static str,
    domain: &'a str,
    point: &'a str,
    class: &'a str,
    purpose: &'a str,
    algorithm: &'a str,
    epoch: i64,
    epochs: u64,
    packets: u64,
    skipped: u64,
    dropped: u64,
    start_ns: i64,
    end_ns: i64,
    /// Only for round trips; others are in the log.
    round_trips: Option<serde_json::Value>,
}

/// The lines of an event.
pub(super) fn lines(event: &EngineEvent) -> serde_json::Result<Vec<String>> {
    match event {
        EngineEvent::Estimated(pair) => {
            pair.estimates.iter().map(|estimate| estimate_line(pair, estimate)).collect()
        }
        EngineEvent::MinuteOver(_) => Ok(Vec::new()),
        EngineEvent::Gap(gap) => one(&gap_line(gap)),
        EngineEvent::Warning(warning) => one(&warning_line(warning)),
        EngineEvent::Observed(point) => one(&point_line("observed", point)?),
        EngineEvent::ObservedSummary(point) => one(&point_line("observed-summary", point)?),
    }
}

fn one(line: &impl Serialize) -> serde_json::Result<Vec<String>> {
    Ok(vec![serde_json::to_string(line)?])
}

fn estimate_line(pair: &PairEstimate, estimate: &Estimate) -> serde_json::Result<String> {
    serde_json::to_string(&EstimateLine {
        event: "estimate",
        series: keys(&pair.series),
        epoch: pair.epoch.0,
        realigned_epochs: pair.realigned_epochs,
        late: pair.is_late,
        row: estimate.into(),
        missed: MissedKeys {
            upstream_dropped: Some(pair.upstream.dropped),
            downstream_dropped: Some(pair.downstream.dropped),
            upstream_late: Some(pair.upstream.late),
            downstream_late: Some(pair.downstream.late),
        },
    })
}

/// The lines of a minute that is over.
pub(super) fn minute_lines(rows: &[Row]) -> serde_json::Result<Vec<String>> {
    let line = |row: &Row| {
        let SeriesKey { upstream, downstream, class, algorithm, domain, .. } = &row.series;
        serde_json::to_string(&SummaryLine {
            event: "summary",
            series: SeriesKeys { domain, upstream, downstream, class, algorithm },
            epochs: row.epochs,
            gaps: row.gaps,
            row: row.into(),
            missed: MissedKeys {
                upstream_dropped: row.missed_upstream.dropped,
                downstream_dropped: row.missed_downstream.dropped,
                upstream_late: row.missed_upstream.late,
                downstream_late: row.missed_downstream.late,
            },
        })
    };
    rows.iter().map(line).collect()
}

fn gap_line(gap: &Gap) -> GapLine<'_> {
    GapLine {
        event: "gap",
        series: keys(&gap.series),
        epoch: gap.first.0,
        epochs: gap.epochs(),
        point: gap.point.as_ref().map(|point| point.0.as_str()),
        gap: gap.reason.to_string(),
        start_ns: gap.span.start.as_nanos(),
        end_ns: gap.span.end.as_nanos(),
    }
}

fn warning_line(warning: &Warning) -> WarningLine<'_> {
    let segment = warning.segment.as_ref();
    WarningLine {
        event: "warning",
        upstream: segment.map(|segment| segment.upstream.0.as_str()),
        downstream: segment.map(|segment| segment.downstream.0.as_str()),
        kind: warning.kind.name(),
        warning: &warning.text,
    }
}

fn point_line<'a>(
    event: &'static str,
    point: &'a PointEstimate,
) -> serde_json::Result<PointLine<'a>> {
    let round_trips = match &point.conclusions {
        Conclusions::RoundTrips(estimates) => {
            let rows: Vec<_> = round_trip_rows(point.span, estimates).collect();
            Some(serde_json::to_value(rows)?)
        }
        _ => None,
    };
    Ok(PointLine {
        event,
        domain: &point.domain,
        point: &point.point.0,
        class: &point.class,
        purpose: point.purpose.name(),
        algorithm: point.algorithm,
        epoch: point.epoch.0,
        epochs: point.epochs,
        packets: point.counts.packets,
        skipped: point.counts.skipped,
        dropped: point.counts.dropped,
        start_ns: point.span.start.as_nanos(),
        end_ns: point.span.end.as_nanos(),
        round_trips,
    })
}

fn keys(series: &Series) -> SeriesKeys<'_> {
    SeriesKeys {
        domain: &series.domain,
        upstream: &series.segment.upstream.0,
        downstream: &series.segment.downstream.0,
        class: &series.class,
        algorithm: series.algorithm,
    }
}
