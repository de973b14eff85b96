//! Consistent NetFlow: delays out of flow records.
//!
//! A meter of flows keeps two times of every flow, those of its first and its last packet. If two
//! points select the same packets, by a hash of what no router changes, then these are the times
//! of the same two packets, and their differences are delays.
//!
//! Lee, Duffield, Kompella: "Leveraging Consistent NetFlow and the Multiflow estimator".

mod association;
mod cache;

pub use association::{
    Associated, Association, AssociationCounts, Rule, Side, TimingBounds, TimingVerdict,
    judge_by_timing,
};
pub use cache::{FlowCache, FlowCacheConfig, FlowCacheCounts};
