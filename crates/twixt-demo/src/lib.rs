//! A whole small network in one process: six simulated routers, and twixt at work on them.
//!
//! Everything behind the packets is the product: the packet path of the agents, sealed epochs, uploads, the
//! collector with its journal, engine and history, and the detection of changes. Only the
//! packets are simulated, and so it is known what really happened.
//!
//! | file | the question it answers |
//! |---|---|
//! | `scenario.rs` | Which routers, which traffic, and what goes wrong? |
//! | `points.rs` | What do the observation points seal? |
//! | `upload.rs` | How do sealed epochs become the body that an agent posts? |
//! | `watching.rs` | What do the collector's estimates say? |
//! | `summary.rs` | What is there to tell after a minute? |
//! | `once.rs` | A minute as fast as it can be: everything in memory |
//! | `live.rs` | The same at the pace of the clock, with the collector's API |
//!
//! Verdicts never come from what was injected: `watching.rs` sees nothing but estimates.

mod error;
mod live;
mod once;
mod points;
mod scenario;
mod summary;
mod upload;
mod watching;

pub use error::DemoError;
pub use live::{LiveDemo, LiveNews};
pub use once::run_once;
pub use scenario::{DemoClass, Injected, InjectedIncidents, ROUTES, Scenario};
pub use summary::{
    DemoSummary, FoundIncident, IncidentOutcome, SegmentSummary, SegmentVerdict, TrafficCount,
};
pub use twixt_detect::{DetectorConfig, IncidentKind};

/// Seconds that a summary covers.
pub const SUMMARY_SECONDS: i64 = 60;
/// Seconds before that in which packets pass already: what was lost in the first epoch of a point is
/// unknown, since packets may have been under way when it began.
const LEAD_SECONDS: i64 = 2;
/// Length of an epoch.
pub const EPOCH_NS: i64 = 1_000_000_000;
