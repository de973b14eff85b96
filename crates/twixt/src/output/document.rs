//! The JSON documents. Keys are part of the contract with users.

use std::collections::BTreeMap;

use serde::Serialize;
use twixt_history::{DelayPart, Row};
use twixt_measure::clock::LevelShift;
use twixt_model::{Delay, DelaySample, Estimate, OrderStatistics, Percentile};
use twixt_observe::PathCounts;
use twixt_offline::{ChosenAlgorithm, Concluded, Files, Measured};

use super::scope_columns::ScopeColumns;

/// One estimate. What is not known is null.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct EstimateRow {
    /// Where rows of several segments stand together.
    #[serde(flatten)]
    segment: Option<SegmentDocument>,
    scope: String,
    packets: u64,
    used: u64,
    lost: Option<u64>,
    mean_ns: Option<i64>,
    stddev_ns: Option<i64>,
    ci95_low_ns: Option<i64>,
    ci95_high_ns: Option<i64>,
    min_ns: Option<i64>,
    p50_ns: Option<i64>,
    p95_ns: Option<i64>,
    p99_ns: Option<i64>,
    max_ns: Option<i64>,
    start_ns: i64,
    end_ns: i64,
    reason: Option<String>,
    bytes: Option<u64>,
    p999_ns: Option<i64>,
    p50_low_ns: Option<i64>,
    p50_high_ns: Option<i64>,
    p95_low_ns: Option<i64>,
    p95_high_ns: Option<i64>,
    p99_low_ns: Option<i64>,
    p99_high_ns: Option<i64>,
    p999_low_ns: Option<i64>,
    p999_high_ns: Option<i64>,
    jitter_ns: Option<i64>,
    lost_min: Option<u64>,
    lost_max: Option<u64>,
    strays: Option<u64>,
    strays_min: Option<u64>,
    strays_max: Option<u64>,
    jitter_max_ns: Option<i64>,
    ipdv_mean_ns: Option<i64>,
    ipdv_p99_ns: Option<i64>,
    pdv_p99_ns: Option<i64>,
    pdv_p999_ns: Option<i64>,
    #[serde(flatten)]
    columns: ScopeColumns,
}

impl EstimateRow {
    fn new(estimate: &Estimate, segment: Option<SegmentDocument>) -> Self {
        let delay = estimate.delay;
        let interval = delay.and_then(|delay| delay.interval());
        let order = |pick: fn(&OrderStatistics) -> Delay| {
            delay.and_then(|delay| delay.order).map(|order| pick(&order).as_nanos())
        };
        let [p50, p95, p99, p999] = DelaySample::SHARES.map(|share| estimate.percentile(share));
        let time = |percentile: Option<Percentile>| percentile.map(|found| found.time_ns);
        let low = |percentile: Option<Percentile>| percentile.map(|found| found.low_ns);
        let high = |percentile: Option<Percentile>| percentile.map(|found| found.high_ns);
        let variation = estimate.variation();
        let min_ns = order(|order| order.min);
        let beyond_min = |percentile: Option<Percentile>| Some(percentile?.time_ns - min_ns?);
        Self {
            segment,
            scope: estimate.scope.to_string(),
            packets: estimate.evidence.packets,
            used: estimate.evidence.used,
            lost: estimate.evidence.lost,
            mean_ns: delay.map(|delay| delay.mean().as_nanos()),
            stddev_ns: delay.and_then(|delay| delay.deviation_ns).map(rounded),
            ci95_low_ns: interval.map(|(low, _)| low.as_nanos()),
            ci95_high_ns: interval.map(|(_, high)| high.as_nanos()),
            min_ns,
            p50_ns: time(p50),
            p95_ns: time(p95),
            p99_ns: time(p99),
            max_ns: order(|order| order.max),
            start_ns: estimate.span.start.as_nanos(),
            end_ns: estimate.span.end.as_nanos(),
            reason: estimate.reasons(),
            bytes: estimate.evidence.bytes,
            p999_ns: time(p999),
            p50_low_ns: low(p50),
            p50_high_ns: high(p50),
            p95_low_ns: low(p95),
            p95_high_ns: high(p95),
            p99_low_ns: low(p99),
            p99_high_ns: high(p99),
            p999_low_ns: low(p999),
            p999_high_ns: high(p999),
            jitter_ns: estimate.jitter_ns().map(rounded),
            lost_min: estimate.evidence.loss_range().map(|range| range.min),
            lost_max: estimate.evidence.loss_range().map(|range| range.max),
            strays: estimate.evidence.strays,
            strays_min: estimate.evidence.stray_range().map(|range| range.min),
            strays_max: estimate.evidence.stray_range().map(|range| range.max),
            jitter_max_ns: variation.map(|found| rounded(found.jitter_max_ns)),
            ipdv_mean_ns: variation.map(|found| rounded(found.ipdv_mean_ns)),
            ipdv_p99_ns: variation.and_then(|found| found.ipdv_p99_ns).map(|ns| ns as i64),
            pdv_p99_ns: beyond_min(p99),
            pdv_p999_ns: beyond_min(p999),
            columns: (&estimate.scope).into(),
        }
    }
}

impl From<&Row> for EstimateRow {
    fn from(row: &Row) -> Self {
        let delay = row.delay.as_ref();
        let interval = delay.and_then(DelayPart::interval);
        let [p50, p95, p99, p999] = delay.map(|delay| delay.quantiles).unwrap_or_default();
        Self {
            segment: None,
            scope: row.scope.clone(),
            packets: row.packets.unwrap_or(0),
            used: row.used.unwrap_or(0),
            lost: row.lost,
            mean_ns: delay.map(DelayPart::mean_ns),
            stddev_ns: delay.and_then(DelayPart::deviation_ns).map(rounded),
            ci95_low_ns: interval.map(|(low_ns, _)| low_ns),
            ci95_high_ns: interval.map(|(_, high_ns)| high_ns),
            min_ns: delay.and_then(|delay| delay.min_ns),
            p50_ns: p50.value_ns,
            p95_ns: p95.value_ns,
            p99_ns: p99.value_ns,
            max_ns: delay.and_then(|delay| delay.max_ns),
            start_ns: row.start_ns,
            end_ns: row.end_ns,
            reason: row.reason.clone(),
            bytes: row.bytes,
            p999_ns: p999.value_ns,
            p50_low_ns: p50.low_ns,
            p50_high_ns: p50.high_ns,
            p95_low_ns: p95.low_ns,
            p95_high_ns: p95.high_ns,
            p99_low_ns: p99.low_ns,
            p99_high_ns: p99.high_ns,
            p999_low_ns: p999.low_ns,
            p999_high_ns: p999.high_ns,
            jitter_ns: delay.and_then(DelayPart::jitter_ns).map(rounded),
            lost_min: row.loss_range().map(|range| range.min),
            lost_max: row.loss_range().map(|range| range.max),
            strays: row.strays,
            strays_min: row.stray_range().map(|range| range.min),
            strays_max: row.stray_range().map(|range| range.max),
            jitter_max_ns: None,
            ipdv_mean_ns: None,
            ipdv_p99_ns: None,
            pdv_p99_ns: None,
            pdv_p999_ns: None,
            columns: ScopeColumns::of_text(&row.scope),
        }
    }
}

fn rounded(ns: f64) -> i64 {
    ns.round() as i64
}

impl From<&Estimate> for EstimateRow {
    fn from(estimate: &Estimate) -> Self {
        Self::new(estimate, None)
    }
}

/// The rows of what an algorithm concluded; `segment` if that is not clear anyway.
pub(crate) fn estimate_rows(
    concluded: &Concluded,
    segment: Option<&SegmentDocument>,
) -> Vec<EstimateRow> {
    concluded
        .estimates
        .iter()
        .map(|estimate| EstimateRow::new(estimate, segment.cloned()))
        .collect()
}

/// `twixt delay -F json`.
#[derive(Serialize)]
pub(crate) struct DelayDocument {
    segment: SegmentDocument,
    algorithm: &'static str,
    config: toml::Table,
    synopsis_bytes: u64,
    epochs: u64,
    upstream: PointDocument,
    downstream: PointDocument,
    direction: DirectionDocument,
    stretch: StretchDocument,
    clock: ClockDocument,
    sample: Option<SampleDocument>,
    estimates: Vec<EstimateRow>,
    /// Of all epochs together, where there are several.
    whole: Option<Vec<EstimateRow>>,
}

/// The two ends, by the names that the user gave.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SegmentDocument {
    pub(crate) upstream: String,
    pub(crate) downstream: String,
}

impl From<Files<'_>> for SegmentDocument {
    fn from(files: Files<'_>) -> Self {
        let name = |path: &std::path::Path| path.display().to_string();
        Self { upstream: name(files.upstream), downstream: name(files.downstream) }
    }
}

/// What one point contributed.
#[derive(Debug, Serialize)]
pub(crate) struct PointDocument {
    packets: u64,
    skipped: BTreeMap<String, u64>,
    dropped: Option<u64>,
}

impl From<&PathCounts> for PointDocument {
    fn from(counts: &PathCounts) -> Self {
        let PathCounts { packets, skipped, dropped } = counts.clone();
        Self { packets, skipped, dropped }
    }
}

#[derive(Debug, Serialize)]
struct DirectionDocument {
    decided_by: &'static str,
    unknown_flows: u64,
}

#[derive(Debug, Serialize)]
struct StretchDocument {
    start_ns: Option<i64>,
    end_ns: Option<i64>,
}

#[derive(Debug, Serialize)]
struct ClockDocument {
    offset_ns: Option<i64>,
    error_bound_ns: Option<i64>,
    negative_delays: u64,
    /// Microseconds per second that the downstream clock gains.
    skew_ppm: Option<f64>,
    /// Half the width of its 99 % interval.
    skew_error_ppm: Option<f64>,
    /// What that rests on.
    skew_by: Option<&'static str>,
    /// When the downstream clock was set.
    steps: Vec<StepDocument>,
    /// Whether estimates are without what is known of the clocks.
    corrected: bool,
    /// Why the skew is not known.
    skew_reason: Option<String>,
    /// When delays changed at once, and not by a clock for sure.
    shifts: Vec<ShiftDocument>,
}

#[derive(Debug, Serialize)]
struct StepDocument {
    time_ns: i64,
    step_ns: i64,
}

#[derive(Debug, Serialize)]
struct ShiftDocument {
    time_ns: i64,
    /// How much larger differences (downstream time less upstream time) are since.
    change_ns: i64,
    /// Of packets that go `downstream` or `upstream`.
    direction: &'static str,
    cause: &'static str,
}

/// A sample that was kept beside the algorithm.
#[derive(Debug, Serialize)]
struct SampleDocument {
    config: toml::Table,
    synopsis_bytes: u64,
}

impl From<&LevelShift> for ShiftDocument {
    fn from(shift: &LevelShift) -> Self {
        Self {
            time_ns: shift.time.as_nanos(),
            change_ns: shift.change.as_nanos(),
            direction: if shift.downstream { "downstream" } else { "upstream" },
            cause: shift.cause.name(),
        }
    }
}

impl From<&Measured> for ClockDocument {
    fn from(measured: &Measured) -> Self {
        let skew = measured.clocks.as_ref().and_then(|clocks| clocks.skew);
        let steps = measured.clocks.iter().flat_map(|clocks| &clocks.steps);
        let shifts = measured.clocks.iter().flat_map(|clocks| &clocks.shifts);
        let error_bound = measured.clock.and_then(|clock| clock.error_bound);
        Self {
            offset_ns: measured.clock.map(|clock| clock.offset.as_nanos()),
            error_bound_ns: error_bound.map(Delay::as_nanos),
            negative_delays: measured.negative_delays,
            skew_ppm: skew.map(|skew| skew.ppm),
            skew_error_ppm: skew.map(|skew| skew.error_ppm),
            skew_by: skew.map(|skew| skew.basis.name()),
            steps: steps
                .map(|step| StepDocument {
                    time_ns: step.time.as_nanos(),
                    step_ns: step.step.as_nanos(),
                })
                .collect(),
            corrected: measured.corrected,
            skew_reason: measured
                .clocks
                .as_ref()
                .and_then(|clocks| clocks.skew_doubt)
                .map(|doubt| doubt.to_string()),
            shifts: shifts.map(ShiftDocument::from).collect(),
        }
    }
}

impl DelayDocument {
    /// Of what one algorithm concluded along one segment.
    pub(crate) fn new(
        files: Files<'_>,
        chosen: &ChosenAlgorithm,
        measured: &Measured,
        concluded: &Concluded,
    ) -> Self {
        Self {
            segment: files.into(),
            algorithm: chosen.algorithm.name,
            config: chosen.prototype.config(),
            // If nothing was paired, what a point keeps before it has seen anything.
            synopsis_bytes: concluded.synopsis_bytes.max(chosen.prototype.state_bytes()),
            epochs: concluded.epochs(),
            upstream: (&measured.upstream).into(),
            downstream: (&measured.downstream).into(),
            direction: DirectionDocument {
                decided_by: measured.direction.decided_by,
                unknown_flows: measured.direction.unknown_flows,
            },
            stretch: StretchDocument {
                start_ns: measured.stretch.map(|span| span.start.as_nanos()),
                end_ns: measured.stretch.map(|span| span.end.as_nanos()),
            },
            clock: measured.into(),
            sample: measured.beside.as_ref().map(|beside| SampleDocument {
                config: beside.chosen.prototype.config(),
                synopsis_bytes: beside.synopsis_bytes,
            }),
            estimates: estimate_rows(concluded, None),
            whole: (!concluded.together.is_empty())
                .then(|| concluded.together.iter().map(EstimateRow::from).collect()),
        }
    }
}

/// Several segments: both directions, or the segments of a path. There is no total of two
/// opposite directions.
#[derive(Serialize)]
pub(crate) struct SegmentsDocument {
    pub(crate) segments: Vec<DelayDocument>,
    pub(crate) total: Option<Vec<EstimateRow>>,
}
