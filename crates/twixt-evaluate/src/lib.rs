//! The published experiments, rerun with the synopses of twixt.
//!
//! An [`Experiment`] is one small file: what it varies, what the paper says, and a trial that
//! measures the same from a seed. Trials are pure, so they may run in any order, on any thread,
//! and their results may be kept; [`Summary`] brings the trials of one experiment together, and
//! [`Experiment::judge`] compares them with what was published.
//!
//! This crate starts no threads, draws nothing and writes no files; the command does.

mod claim;
mod experiment;
mod experiments;
mod figure;
mod summary;

pub use claim::{Claim, Holds, Judged, Verdict};
pub use experiment::{Experiment, Seeds, Setting, Size, Trial};
pub use experiments::{EXPERIMENTS, FlowError, RecordWays, record_ways};
pub use figure::{Axis, Curve, Figure, Mark};
pub use summary::{CurvePoint, Summary, Value};

/// The experiment of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Experiment> {
    EXPERIMENTS.iter().copied().find(|experiment| experiment.name == name)
}
