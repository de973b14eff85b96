//! Sealed epochs of many points to estimates of many segments, as they come.
//!
//! Pure: no file, socket, thread or clock. Epochs are handed over with [`Engine::receive`], time
//! with [`Engine::advance`], and events are fetched with [`Engine::poll`]. The caller makes epochs
//! durable before, and stores [`Engine::progress`] after the events are out; [`Engine::resume`]
//! continues from there, so that a replay of the raw epochs reports nothing twice and leaves
//! nothing out.
//!
//! It does not know where epochs come from, nor how estimates are stored or shown. Estimates of
//! minutes and hours are summed where they are stored.

mod aligned;
mod alignment;
mod clocks;
mod config;
mod discovery;
mod engine;
mod event;
mod late;
mod overlap;
mod point;
mod reported;
mod routes;
mod same_stream;
mod sample;
mod segment;
mod series;
mod stored;

pub use aligned::Conclusion;
pub use clocks::{CLOCKS_MAX, SegmentClock};
pub use config::{EngineConfig, LateEpochs, SegmentConfig, SeriesProgress};
pub use engine::{Engine, POINTS_MAX, SERIES_MAX, SERIES_PER_SEGMENT_MAX};
pub use event::{
    Conclusions, EngineCounts, EngineEvent, Gap, GapReason, MinuteOver, PairEstimate, PointCounts,
    PointEstimate, Series, Warning, WarningKind,
};
pub use stored::{StoredHalf, StoredPairing, StoredSeries, StreamCheck, pair_stored};

#[cfg(test)]
mod tests;
