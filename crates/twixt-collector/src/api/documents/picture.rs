//! Sums and distributions, as pages show them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{CompletenessDocument, EstimateDocument, TimeRange};

/// What an interval of time comes to.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TotalsDocument {
    /// The requested time.
    pub range: TimeRange,
    /// Length of the rows that were summed up.
    pub step: String,
    /// What is missing.
    pub completeness: CompletenessDocument,
    /// By segment, class and algorithm.
    pub totals: Vec<TotalDocument>,
    /// Why rows are missing, if some are.
    pub reason: Option<String>,
}

/// What an interval of time comes to for a segment, a class and an algorithm.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TotalDocument {
    /// Of all epochs.
    #[serde(flatten)]
    pub estimate: EstimateDocument,
    /// The loss of those rows of which it is known; null if there are none. `lost` is null if one row
    /// does not know it.
    pub loss_known: Option<KnownLossDocument>,
}

/// Loss of the rows of which it is known, if only within bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KnownLossDocument {
    /// Packets counted upstream in these rows.
    pub packets: u64,
    /// Packets lost by the network at least.
    pub lost_min: u64,
    /// Packets lost by the network at most.
    pub lost_max: u64,
}

/// How delays are distributed over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HeatmapDocument {
    /// The requested time.
    pub range: TimeRange,
    /// Length of the columns.
    pub step: String,
    /// What is missing.
    pub completeness: CompletenessDocument,
    /// Resolution: bucket n holds delays from 2^(n 2^-scale) ns up to the next bound.
    pub scale: u8,
    /// In order of time. Epochs without an estimate have none.
    pub columns: Vec<HeatmapColumn>,
    /// Why there are no columns.
    pub reason: Option<String>,
    /// Where to continue (`cursor`); null if there is no more.
    pub next: Option<String>,
}

/// The delays of an interval of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HeatmapColumn {
    /// The algorithm of the estimate.
    pub algorithm: String,
    /// Start, by the upstream clock, nanoseconds since 1970.
    pub start_ns: i64,
    /// End.
    pub end_ns: i64,
    /// Packets with a delay of 0 or less, which are in no bucket.
    pub not_positive: f64,
    /// Number of the first bucket.
    pub first: i32,
    /// Packets in that bucket and the following ones; a sampled packet counts for those it stands for.
    pub packets: Vec<f64>,
}
