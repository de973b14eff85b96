//! Points, segments, clocks and single epochs.

use serde::{Deserialize, Serialize};
use twixt_history::SeriesKey;
use twixt_model::{Span, TimeSource};
use utoipa::ToSchema;

use super::{CompletenessDocument, MomentRange, TimeRange};
use crate::history::ClockState;

/// A point.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PointDocument {
    /// Domain within which its name is unique.
    pub domain: String,
    /// Its name.
    pub name: String,
    /// Segments that it is an end of.
    pub segments: u64,
    /// The time range for which anything is stored of it; null if no segment has it.
    pub stored: Option<MomentRange>,
    /// End of the last epoch reported since the collector's start; null if there is none.
    pub last_ns: Option<i64>,
    /// Packets counted in that epoch.
    pub packets: Option<u64>,
    /// Frames skipped in that epoch.
    pub skipped: Option<u64>,
    /// Frames that the kernel dropped, noticed in that epoch.
    pub dropped: Option<u64>,
    /// Packets observed in that epoch after their own epoch was sealed.
    pub late: Option<u64>,
    /// Version of its agent, as it stated when it sent last; null if unknown.
    pub agent_version: Option<String>,
    /// Epochs that waited at its agent then, those that it sent included; null if unknown.
    pub spool_epochs: Option<u64>,
    /// Bytes of these on the agent's disk.
    pub spool_bytes: Option<u64>,
    /// Epochs that its agent discarded since it started, because its spool was full.
    pub spool_discarded: Option<u64>,
}

/// All points.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PointsDocument {
    /// The time range for which anything is stored.
    pub range: TimeRange,
    /// By domain and name.
    pub points: Vec<PointDocument>,
}

/// A segment, a class of its traffic, and an algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SegmentDocument {
    /// Domain within which point names are unique.
    pub domain: String,
    /// The point that packets pass first.
    pub upstream: String,
    /// The point that packets pass second.
    pub downstream: String,
    /// Class of traffic; empty without classes.
    pub class: String,
    /// The algorithm of its estimates.
    pub algorithm: String,
    /// Length of an epoch.
    pub epoch_ns: i64,
    /// The time range for which anything is stored of it.
    pub stored: MomentRange,
}

/// All segments.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SegmentsDocument {
    /// The time range for which anything is stored.
    pub range: TimeRange,
    /// By their points, class and algorithm.
    pub segments: Vec<SegmentDocument>,
}

/// The clock of one end of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndDocument {
    /// The point.
    pub point: String,
    /// Source of the timestamps: `file`, `kernel` or `hardware`.
    pub time_source: String,
    /// Bound on the error of its clock, as stated by its agent; null if unknown.
    pub bound_ns: Option<i64>,
}

/// The last known state of the clocks of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClockDocument {
    /// Domain within which point names are unique.
    pub domain: String,
    /// Class of traffic; empty without classes.
    pub class: String,
    /// The algorithm.
    pub algorithm: String,
    /// The epoch of this state.
    pub range: MomentRange,
    /// The upstream clock.
    pub upstream: EndDocument,
    /// The downstream clock.
    pub downstream: EndDocument,
    /// Bound on the difference of the two; null if unknown.
    pub error_ns: Option<i64>,
    /// Downstream epoch numbers are larger by this: the downstream clock is that many epochs ahead.
    pub realigned_epochs: i64,
}

/// The state of clocks since the collector's start.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClocksDocument {
    /// From the first to the last epoch with a known state.
    pub range: TimeRange,
    /// By segment, class and algorithm.
    pub clocks: Vec<ClockDocument>,
}

/// An epoch as one point sealed it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EpochDocument {
    /// Domain within which point names are unique.
    pub domain: String,
    /// The observation point.
    pub point: String,
    /// Class of traffic; empty without classes.
    pub class: String,
    /// The algorithm of the synopsis.
    pub algorithm: String,
    /// Its settings.
    pub settings: String,
    /// Number of the epoch.
    pub epoch: i64,
    /// The time of the epoch.
    pub range: MomentRange,
    /// Number of the run of the agent, hexadecimal.
    pub run: String,
    /// Packets counted.
    pub packets: u64,
    /// Frames skipped.
    pub skipped: u64,
    /// Frames that the kernel dropped, of all classes; noticed in this epoch.
    pub dropped: u64,
    /// Packets observed in this epoch after their own epoch was sealed.
    #[serde(default)]
    pub late: u64,
    /// Most packets that this epoch may lack because they were not observed; null if it is not known
    /// when packets were dropped, or none was.
    pub missing_max: Option<u64>,
    /// Whether its start or end was missed: it is then not compared.
    pub torn: bool,
    /// Source of the timestamps: `file`, `kernel` or `hardware`.
    pub time_source: String,
    /// Bound on the error of the point's clock.
    pub clock_bound_ns: Option<i64>,
    /// First and last packet; null if there was none.
    pub seen: Option<MomentRange>,
    /// Its size in the log, in bytes.
    pub stored_bytes: u64,
}

/// What estimates rest on: the epochs of both points.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EvidenceDocument {
    /// The requested time.
    pub range: TimeRange,
    /// What is missing. Also not complete if there are more epochs than requested.
    pub completeness: CompletenessDocument,
    /// Upstream epochs, in order of time.
    pub upstream: Vec<EpochDocument>,
    /// Downstream epochs, in order of time.
    pub downstream: Vec<EpochDocument>,
}

impl SegmentDocument {
    /// A series, and when something of it is stored.
    pub(crate) fn of(series: &SeriesKey, stored: Span) -> Self {
        Self {
            domain: series.domain.clone(),
            upstream: series.upstream.clone(),
            downstream: series.downstream.clone(),
            class: series.class.clone(),
            algorithm: series.algorithm.clone(),
            epoch_ns: series.epoch_ns,
            stored: stored.into(),
        }
    }
}

impl ClockDocument {
    /// The state of the clocks of a series.
    pub(crate) fn of(series: &SeriesKey, state: &ClockState) -> Self {
        let [upstream, downstream] = &state.ends;
        let end = |point: &str, end: &(TimeSource, Option<i64>)| EndDocument {
            point: point.to_owned(),
            time_source: end.0.name().to_owned(),
            bound_ns: end.1,
        };
        Self {
            domain: series.domain.clone(),
            class: series.class.clone(),
            algorithm: series.algorithm.clone(),
            range: state.span.into(),
            upstream: end(&series.upstream, upstream),
            downstream: end(&series.downstream, downstream),
            error_ns: state.error_ns,
            realigned_epochs: state.realigned_epochs,
        }
    }
}
