//! Points, segments, clocks and single epochs.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{CompletenessDocument, MomentRange, TimeRange};

/// A point.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PointDocument {
    /// Within which its name is unique.
    pub domain: String,
    /// Its name.
    pub name: String,
    /// Segments that it is an end of.
    pub segments: u64,
    /// From when to when anything is stored of it; null if no segment has it.
    pub stored: Option<MomentRange>,
    /// End of the last epoch that was told of since the collector's start; null if there is none.
    pub last_ns: Option<i64>,
    /// Packets counted in that epoch.
    pub packets: Option<u64>,
    /// Packets skipped on purpose in that epoch.
    pub skipped: Option<u64>,
    /// Packets that the kernel lost in that epoch.
    pub dropped: Option<u64>,
}

/// All points.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PointsDocument {
    /// From when to when anything is stored.
    pub range: TimeRange,
    /// By domain and name.
    pub points: Vec<PointDocument>,
}

/// A segment, a class of its traffic, and how it is looked at.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SegmentDocument {
    /// Within which names of points are unique.
    pub domain: String,
    /// The point that packets pass first.
    pub upstream: String,
    /// The point that packets pass second.
    pub downstream: String,
    /// Class of traffic; empty without classes.
    pub class: String,
    /// The algorithm that concludes.
    pub algorithm: String,
    /// Length of an epoch.
    pub epoch_ns: i64,
    /// From when to when anything is stored of it.
    pub stored: MomentRange,
}

/// All segments.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SegmentsDocument {
    /// From when to when anything is stored.
    pub range: TimeRange,
    /// By their points, class and algorithm.
    pub segments: Vec<SegmentDocument>,
}

/// The clock of one end of a segment.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EndDocument {
    /// The point.
    pub point: String,
    /// Who took the times: `file`, `kernel` or `hardware`.
    pub time_source: String,
    /// Bound on the error of its clock, as its agent says; null if it does not know.
    pub bound_ns: Option<i64>,
}

/// How the clocks of a segment were found last.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClockDocument {
    /// Within which names of points are unique.
    pub domain: String,
    /// Class of traffic; empty without classes.
    pub class: String,
    /// The algorithm.
    pub algorithm: String,
    /// The epoch in which it was found.
    pub range: MomentRange,
    /// Upstream's.
    pub upstream: EndDocument,
    /// Downstream's.
    pub downstream: EndDocument,
    /// Bound on the difference of the two; null if it is not known.
    pub error_ns: Option<i64>,
    /// Downstream's epochs have numbers larger by this: its clock is that many epochs ahead.
    pub realigned_epochs: i64,
}

/// How clocks were found since the collector's start.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClocksDocument {
    /// From the first to the last epoch in which any were found.
    pub range: TimeRange,
    /// By segment, class and algorithm.
    pub clocks: Vec<ClockDocument>,
}

/// An epoch as one point sealed it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EpochDocument {
    /// Within which names of points are unique.
    pub domain: String,
    /// Who saw it.
    pub point: String,
    /// Class of traffic; empty without classes.
    pub class: String,
    /// The algorithm that remembers.
    pub algorithm: String,
    /// Its settings.
    pub settings: String,
    /// Number of the epoch.
    pub epoch: i64,
    /// When it is.
    pub range: MomentRange,
    /// Number of the run of the agent, hexadecimal.
    pub run: String,
    /// Packets counted.
    pub packets: u64,
    /// Packets skipped on purpose.
    pub skipped: u64,
    /// Packets that the kernel lost.
    pub dropped: u64,
    /// Whether its start or end was missed: it is not compared then.
    pub torn: bool,
    /// Who took the times: `file`, `kernel` or `hardware`.
    pub time_source: String,
    /// Bound on the error of the point's clock.
    pub clock_bound_ns: Option<i64>,
    /// First and last packet; null if there was none.
    pub seen: Option<MomentRange>,
    /// Bytes that it takes in the log.
    pub stored_bytes: u64,
}

/// What estimates rest on: the epochs of both points.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EvidenceDocument {
    /// What was asked for.
    pub range: TimeRange,
    /// What is missing. Not complete either when there are more epochs than were asked for.
    pub completeness: CompletenessDocument,
    /// Upstream's, in order of time.
    pub upstream: Vec<EpochDocument>,
    /// Downstream's, in order of time.
    pub downstream: Vec<EpochDocument>,
}
