//! The parts of two captures that are measured one by one: between the steps of a clock, times of both
//! can be compared; across one they cannot.

use std::sync::OnceLock;

use twixt_measure::clock::ClockReport;
use twixt_measure::survey::{Comparison, DelayRange, Edges, Overlap};
use twixt_model::{Delay, EpochRule};

use crate::correction::Correction;
use crate::error::OfflineError;

/// A part of two captures in which no clock was set.
pub(crate) struct Part {
    pub(crate) overlap: Overlap,
    pub(crate) edges: Edges,
    /// Where it ends instead, if a person has seen enough.
    pub(crate) shortened: OnceLock<Edges>,
    /// What puts the downstream clock right, if it should be.
    pub(crate) correction: Option<Correction>,
    /// There are others: frames before and after it may have any time.
    pub(crate) jumps: bool,
}

/// How the parts are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Together {
    /// As one: clocks are put right, or differ by little.
    Whole,
    /// Each for itself; what is concluded is added up.
    AddedUp,
}

/// Delays beyond this are not measured together with others: an algorithm may take them for packets
/// that look alike.
const SPREAD_MAX: Delay = Delay::from_nanos(10_000_000_000);

/// The parts, and how they are measured. Without steps of a clock there is one.
pub(crate) fn parts(
    rule: EpochRule,
    comparison: &Comparison,
    clocks: Option<&ClockReport>,
    correction: Option<&Correction>,
) -> Result<(Vec<Part>, Together), OfflineError> {
    let whole = comparison.overlap().ok_or(OfflineError::NoOverlap)?;
    let stepped = clocks.filter(|report| !report.steps.is_empty());
    let stepped = stepped.filter(|_| correction.is_some() || is_too_wide(rule, whole.delays));
    let overlaps = match stepped {
        Some(report) => comparison.overlaps(report),
        None => vec![(0, whole)],
    };
    let together = match stepped.is_some() && correction.is_none() {
        true => Together::AddedUp,
        false => Together::Whole,
    };
    let part = |(number, overlap): (usize, Overlap)| Part {
        edges: Edges::of(&overlap),
        shortened: OnceLock::new(),
        overlap,
        correction: correction.map(|correction| correction.within(number)),
        jumps: stepped.is_some(),
    };
    let parts: Vec<Part> = overlaps.into_iter().map(part).collect();
    if parts.is_empty() { Err(OfflineError::NoOverlap) } else { Ok((parts, together)) }
}

/// Whether delays differ by too much to be compared in one epoch or one guard.
fn is_too_wide(rule: EpochRule, delays: DelayRange) -> bool {
    let spread = delays.max - delays.min;
    let half_an_epoch = rule.length_ns().map(|length_ns| Delay::from_nanos(length_ns / 2));
    spread > SPREAD_MAX || half_an_epoch.is_some_and(|half| half <= spread)
}
