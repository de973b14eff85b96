//! What two captures have in common, found out before anything is measured.
//!
//! Captures hold both directions, start and stop at different times, and their clocks may differ
//! by years. A first read of each gives a [`PointSurvey`]: for every flow a few packets, and a
//! thin sample of all. Both choose packets by digest, so they choose the same ones. [`compare`]
//! matches them and finds which flows go downstream, how the clocks differ, and which interval
//! both points saw. The second read measures only what [`Edges`] lets through.
//!
//! This module knows no file format and no algorithm.

mod compare;
mod decide;
mod edges;
mod heading;
mod heartbeats;
mod missing;
mod overlap;
mod point;
mod strays;

pub use compare::{ClockDifference, Comparison, DelayRange, compare, compare_specified};
pub use edges::{Edges, Place, Resolved, resolve};
pub use heading::{Heading, Method, Verdicts};
pub use heartbeats::{Ends, heartbeats};
pub use overlap::Overlap;
pub use point::{Disorder, FlowEnds, Passage, PointSurvey, Sighting};
pub use strays::stray_cause;
