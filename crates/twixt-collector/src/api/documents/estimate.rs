//! Estimates.

use serde::{Deserialize, Serialize};
use twixt_history::{DelayPart, Quantile, Row};
use utoipa::ToSchema;

use super::{CompletenessDocument, TimeRange};

/// The estimate for a segment, a scope and an interval of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EstimateDocument {
    /// Domain within which point names are unique.
    pub domain: String,
    /// The point that packets pass first.
    pub upstream: String,
    /// The point that packets pass second.
    pub downstream: String,
    /// Class of traffic; empty without classes.
    pub class: String,
    /// The algorithm of the estimate.
    pub algorithm: String,
    /// Scope: `all`, a flow, a prefix pair, …
    pub scope: String,
    /// Its length: `epoch`, `minute` or `hour`.
    pub step: String,
    /// Start, by the upstream clock, nanoseconds since 1970.
    pub start_ns: i64,
    /// End.
    pub end_ns: i64,
    /// Epochs that it rests on; 0 for a gap.
    pub epochs: u64,
    /// Epochs without data.
    pub gaps: u64,
    /// Packets counted upstream.
    pub packets: Option<u64>,
    /// Packets that the estimate rests on.
    pub used: Option<u64>,
    /// Packets lost by the network; null if unknown, also where only bounds are known.
    pub lost: Option<u64>,
    /// Mean delay.
    pub mean_ns: Option<i64>,
    /// Standard deviation of the delay of single packets.
    pub stddev_ns: Option<i64>,
    /// Lower end of the 95 % interval of the mean.
    pub ci95_low_ns: Option<i64>,
    /// Upper end of the 95 % interval of the mean.
    pub ci95_high_ns: Option<i64>,
    /// Smallest delay.
    pub min_ns: Option<i64>,
    /// Median delay.
    pub p50_ns: Option<i64>,
    /// Lower end of its 95 % interval.
    pub p50_low_ns: Option<i64>,
    /// Upper end of its 95 % interval.
    pub p50_high_ns: Option<i64>,
    /// 95th percentile of delay.
    pub p95_ns: Option<i64>,
    /// Lower end of its 95 % interval.
    pub p95_low_ns: Option<i64>,
    /// Upper end of its 95 % interval.
    pub p95_high_ns: Option<i64>,
    /// 99th percentile of delay.
    pub p99_ns: Option<i64>,
    /// Lower end of its 95 % interval.
    pub p99_low_ns: Option<i64>,
    /// Upper end of its 95 % interval.
    pub p99_high_ns: Option<i64>,
    /// 99.9th percentile of delay.
    pub p999_ns: Option<i64>,
    /// Lower end of its 95 % interval.
    pub p999_low_ns: Option<i64>,
    /// Upper end of its 95 % interval.
    pub p999_high_ns: Option<i64>,
    /// Largest delay.
    pub max_ns: Option<i64>,
    /// How far the downstream clock is ahead, if known.
    pub clock_offset_ns: Option<i64>,
    /// Bound on the clock difference, if known.
    pub clock_error_ns: Option<i64>,
    /// Why a value is unknown.
    pub reason: Option<String>,
    /// Bytes of the packets, if known.
    pub bytes: Option<u64>,
    /// Mean absolute difference of the delays of consecutive sampled packets; independent of
    /// clocks.
    pub jitter_ns: Option<i64>,
    /// Epochs among `epochs` that were estimated late: a half arrived after it was given up.
    #[serde(default)]
    pub late_epochs: u64,
    /// Packets lost by the network at least; equals `lost` if that is known.
    pub lost_min: Option<u64>,
    /// Packets lost by the network at most; equals `lost` if that is known.
    pub lost_max: Option<u64>,
    /// Packets that the kernel dropped upstream, of all classes of the interface. Noticed in this
    /// time; the epochs that may lack them give it as the reason.
    pub upstream_dropped: Option<u64>,
    /// Packets that the kernel dropped downstream, likewise.
    pub downstream_dropped: Option<u64>,
    /// Packets observed upstream after their epoch was sealed.
    pub upstream_late: Option<u64>,
    /// Packets observed downstream after their epoch was sealed.
    pub downstream_late: Option<u64>,
    /// Packets that only downstream observed; null if unknown, also where only bounds are known.
    pub strays: Option<u64>,
    /// Packets that only downstream observed at least; equals `strays` if that is known.
    pub strays_min: Option<u64>,
    /// Packets that only downstream observed at most; equals `strays` if that is known.
    pub strays_max: Option<u64>,
}

/// Estimates over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct EstimatesDocument {
    /// The requested time.
    pub range: TimeRange,
    /// Length of the rows.
    pub step: String,
    /// What is missing.
    pub completeness: CompletenessDocument,
    /// In order of time.
    pub estimates: Vec<EstimateDocument>,
    /// Where to continue (`cursor`); null if there is no more.
    pub next: Option<String>,
}

/// An interval without data.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct GapDocument {
    /// Domain within which point names are unique.
    pub domain: String,
    /// The point that packets pass first.
    pub upstream: String,
    /// The point that packets pass second.
    pub downstream: String,
    /// Class of traffic; empty without classes.
    pub class: String,
    /// The algorithm without an estimate.
    pub algorithm: String,
    /// Start, nanoseconds since 1970.
    pub start_ns: i64,
    /// End.
    pub end_ns: i64,
    /// Number of epochs.
    pub epochs: u64,
    /// The reason.
    pub reason: String,
}

/// Gaps over time.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct GapsDocument {
    /// The requested time.
    pub range: TimeRange,
    /// What is missing: files that cannot be used are gaps too.
    pub completeness: CompletenessDocument,
    /// In order of time.
    pub gaps: Vec<GapDocument>,
    /// Where to continue (`cursor`); null if there is no more.
    pub next: Option<String>,
}

/// A bucket of delays.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BucketDocument {
    /// Lower bound, inclusive; null for all delays that are not positive.
    pub from_ns: Option<f64>,
    /// Upper bound, exclusive.
    pub to_ns: f64,
    /// Packets in it, estimated if only some were measured.
    pub packets: f64,
}

/// All delays of an interval of time.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HistogramDocument {
    /// The requested time.
    pub range: TimeRange,
    /// What is missing.
    pub completeness: CompletenessDocument,
    /// Summaries, one for each class and algorithm.
    pub total: Vec<EstimateDocument>,
    /// All buckets, in order; null if the algorithm keeps none.
    pub buckets: Option<Vec<BucketDocument>>,
    /// Why there are none, if there are none.
    pub reason: Option<String>,
}

impl From<&Row> for EstimateDocument {
    fn from(row: &Row) -> Self {
        let delay = row.delay.as_ref();
        let interval = delay.and_then(DelayPart::interval);
        let [p50, p95, p99, p999] = delay.map_or([Quantile::default(); 4], |delay| delay.quantiles);
        Self {
            domain: row.series.domain.clone(),
            upstream: row.series.upstream.clone(),
            downstream: row.series.downstream.clone(),
            class: row.series.class.clone(),
            algorithm: row.series.algorithm.clone(),
            scope: row.scope.clone(),
            step: row.step.name().to_owned(),
            start_ns: row.start_ns,
            end_ns: row.end_ns,
            epochs: row.epochs,
            gaps: row.gaps,
            packets: row.packets,
            used: row.used,
            lost: row.lost,
            mean_ns: delay.map(DelayPart::mean_ns),
            stddev_ns: delay.and_then(DelayPart::deviation_ns).map(|ns| ns.round() as i64),
            ci95_low_ns: interval.map(|(low, _)| low),
            ci95_high_ns: interval.map(|(_, high)| high),
            min_ns: delay.and_then(|delay| delay.min_ns),
            p50_ns: p50.value_ns,
            p50_low_ns: p50.low_ns,
            p50_high_ns: p50.high_ns,
            p95_ns: p95.value_ns,
            p95_low_ns: p95.low_ns,
            p95_high_ns: p95.high_ns,
            p99_ns: p99.value_ns,
            p99_low_ns: p99.low_ns,
            p99_high_ns: p99.high_ns,
            p999_ns: p999.value_ns,
            p999_low_ns: p999.low_ns,
            p999_high_ns: p999.high_ns,
            max_ns: delay.and_then(|delay| delay.max_ns),
            clock_offset_ns: row.clock_offset_ns,
            clock_error_ns: row.clock_error_ns,
            reason: row.reason.clone(),
            bytes: row.bytes,
            jitter_ns: delay.and_then(DelayPart::jitter_ns).map(|ns| ns.round() as i64),
            late_epochs: row.late_epochs,
            lost_min: row.loss_range().map(|range| range.min),
            lost_max: row.loss_range().map(|range| range.max),
            upstream_dropped: row.missed_upstream.dropped,
            downstream_dropped: row.missed_downstream.dropped,
            upstream_late: row.missed_upstream.late,
            downstream_late: row.missed_downstream.late,
            strays: row.strays,
            strays_min: row.stray_range().map(|range| range.min),
            strays_max: row.stray_range().map(|range| range.max),
        }
    }
}

impl From<&Row> for GapDocument {
    fn from(row: &Row) -> Self {
        Self {
            domain: row.series.domain.clone(),
            upstream: row.series.upstream.clone(),
            downstream: row.series.downstream.clone(),
            class: row.series.class.clone(),
            algorithm: row.series.algorithm.clone(),
            start_ns: row.start_ns,
            end_ns: row.end_ns,
            epochs: row.gaps,
            reason: row.reason.clone().unwrap_or_default(),
        }
    }
}
