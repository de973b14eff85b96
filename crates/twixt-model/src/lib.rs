//! The nouns of twixt.
//!
//! What one observation point knows of one packet ([`Observation`]), what a segment is
//! ([`Segment`]), and what an algorithm concludes ([`Estimate`]). Every other crate speaks in
//! these words; this one depends on nothing and does nothing but define them.
//!
//! None of these types is serialisable on purpose: bytes, JSON and TOML have their own types at
//! the edges, so that a change of a struct never changes a format by accident.

pub mod binning;
mod crossing;
mod digest;
mod estimate;
mod flow;
mod flow_record;
mod frame;
mod histogram;
mod loss;
mod name;
mod observation;
mod one_point;
mod prefix;
mod prehashed;
pub mod quantity;
mod round_trip_part;
mod sample;
mod scope;
mod segment;
mod sorting;
mod time;
mod total;
mod variation;
mod voice;

pub use crossing::{Crossing, CrossingFate, Crossings};
pub use digest::{
    DigestHash, DigestIdentity, DigestProfile, FlowHash, GroupPrefixes, PacketDigest, mix,
};
pub use estimate::{DelayEstimate, Estimate, Evidence, OrderStatistics};
pub use flow::{FlowKey, ParseFlowKeyError, protocol};
pub use flow_record::{FlowEnd, FlowRecord};
pub use frame::{Frame, FrameDirection, SourceCounts};
pub use histogram::{Bucket, Histogram, HistogramState, ShareAbove};
pub use loss::{LossRange, Unobserved};
pub use name::{NAME_BYTES_MAX, NameError, check_name, is_hidden};
pub use observation::{
    Batch, BatchBuffer, COPIED_WITHIN, ClassId, Detail, Exchange, GroupId, Needs, Observation,
    TcpFields, tcp_flag,
};
pub use one_point::{
    HeavyFlow, Percentile, ReorderEstimate, ReorderExtent, ReorderVerdict, RoundTripEstimate,
    RoundTripKind, RoundTripSample, RoundTripTimes,
};
pub use prefix::{ParsePrefixError, Prefix};
pub use prehashed::{OwnHash, Prehashed};
pub use round_trip_part::{FirstByteWait, RoundTripPart, SpinUse, WaitedFor};
pub use sample::{DelaySample, SampleLevel, SampledDelay, TooFew, needed_for};
pub use scope::Scope;
pub use segment::{Epoch, EpochRule, PointId, Segment, Side, TimeSource};
pub use sorting::{sort_by_hash, sort_by_number};
pub use time::{Delay, Span, Timestamp};
pub use total::{by_scope, total};
pub use variation::{Variation, VariationSum};
pub use voice::{Codec, Heard, Playout, Rating};
