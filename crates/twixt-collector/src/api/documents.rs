//! What is answered. Keys are part of the contract with users: some may be added, none is renamed
//! or removed. What is not known is null, and a reason stands beside it.

mod alerts;
mod completeness;
mod estimate;
mod flows;
mod now;
mod one_point;
mod picture;
mod source;

pub use alerts::{AcknowledgeDocument, AlertRuleDocument, AlertsDocument, SilenceDocument};
pub use completeness::{CompletenessDocument, MomentRange, TimeRange};
pub use estimate::{
    BucketDocument, EstimateDocument, EstimatesDocument, GapDocument, GapsDocument,
    HistogramDocument,
};
pub use flows::{FlowDocument, FlowOrder, FlowSelection, FlowsDocument};
pub use now::{
    ClockDocument, ClocksDocument, EndDocument, EpochDocument, EvidenceDocument, PointDocument,
    PointsDocument, SegmentDocument, SegmentsDocument,
};
pub use one_point::{
    HeavyDocument, HeavyFlowDocument, ObservedDocument, PrefixDocument, ReorderingDocument,
    RoundTripDocument, RoundTripsDocument,
};
pub use picture::{
    HeatmapColumn, HeatmapDocument, KnownLossDocument, TotalDocument, TotalsDocument,
};
pub use source::{SourceDocument, SourceKind};
