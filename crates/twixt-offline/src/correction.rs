//! The downstream clock, put right by what is known of it.

use std::sync::Arc;

use twixt_measure::clock::{ClockOffset, ClockPiece, ClockPoint, ClockReport};
use twixt_measure::survey::{ClockDifference, Comparison, DelayRange};
use twixt_model::{Delay, Timestamp};

use crate::beside::ClockUse;
use crate::plan::Plan;
use crate::report::{Remark, Reporter};

/// Turns what the downstream clock shows into what the upstream one would have shown.
#[derive(Clone, Debug)]
pub(crate) struct Correction {
    report: Arc<ClockReport>,
    /// The interval between steps of the clock that is measured.
    piece: usize,
}

/// Why delays are not corrected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoCorrection {
    /// Nothing is known of the clocks.
    Unknown,
    /// A delay would be negative by so much, which is more than what is known can be off.
    Negative(Delay),
}

/// What puts the downstream clock right, if it should be and something is known of it.
pub(crate) fn correction(
    plan: &Plan,
    clocks: Option<&ClockReport>,
    comparison: &Comparison,
    reporter: &dyn Reporter,
) -> Option<Correction> {
    if plan.beside.clock == ClockUse::Report {
        return None;
    }
    match Correction::new(clocks, comparison) {
        Ok(correction) => Some(correction),
        Err(why) => {
            reporter.remark(match why {
                NoCorrection::Unknown => Remark::ClocksUnknown,
                NoCorrection::Negative(below) => Remark::CorrectionRefused(below),
            });
            None
        }
    }
}

/// How far the downstream clock was ahead at the start of the overlap. With one direction it is only
/// known where no delay could explain what was seen.
pub(crate) fn clock_of(
    comparison: &Comparison,
    clocks: Option<&ClockReport>,
) -> Option<ClockDifference> {
    let report = clocks?;
    if !comparison.upstream_points.is_empty() {
        let ClockOffset { offset, error_bound } = report.offset?;
        return Some(ClockDifference { offset, error_bound: Some(error_bound) });
    }
    let first = report.pieces.first()?;
    let points = comparison.downstream_points.iter();
    let least = points.filter(|point| first.upstream.contains(point.time));
    ClockDifference::from_delay(least.map(|point| point.difference).min()?)
}

impl Correction {
    /// By what two captures tell, unless packets contradict it.
    fn new(report: Option<&ClockReport>, comparison: &Comparison) -> Result<Self, NoCorrection> {
        let known = report.filter(|report| report.knows_something()).cloned();
        let report = Arc::new(known.ok_or(NoCorrection::Unknown)?);
        let correction = Self { report, piece: 0 };
        match correction.contradiction(comparison) {
            Some(below) => Err(NoCorrection::Negative(below)),
            None => Ok(correction),
        }
    }

    /// The same in another interval between steps of the clock.
    pub(crate) fn within(&self, piece: usize) -> Self {
        Self { piece, ..self.clone() }
    }

    /// What the clock should have shown.
    pub(crate) fn apply(&self, time: Timestamp) -> Timestamp {
        self.report.upstream_time(self.piece, time)
    }

    /// Delays of the packets that were compared, as they are then.
    pub(crate) fn delays(&self, comparison: &Comparison) -> Option<DelayRange> {
        DelayRange::of(self.differences(&comparison.downstream_points).collect())
    }

    /// How far below zero a delay of either direction would be, if that is beyond any doubt.
    fn contradiction(&self, comparison: &Comparison) -> Option<Delay> {
        let there = self.differences(&comparison.downstream_points).min()?;
        let back = self.differences(&comparison.upstream_points).max().map(|delay| -delay);
        let least = back.map_or(there, |back| back.min(there));
        let seen = comparison.downstream_points.iter().map(|point| point.difference).min()?;
        // Without an offset, delays are as far below zero as they were seen.
        let from = match self.report.offset {
            Some(_) => Delay::ZERO,
            None => seen.min(Delay::ZERO),
        };
        (least + self.report.doubt() < from).then_some(-least)
    }

    fn differences<'a>(&'a self, points: &'a [ClockPoint]) -> impl Iterator<Item = Delay> + 'a {
        self.corrected(points).map(|point| point.difference)
    }

    /// Packets whose interval between steps is known, with corrected differences.
    pub(crate) fn corrected<'a>(
        &'a self,
        points: &'a [ClockPoint],
    ) -> impl Iterator<Item = ClockPoint> + 'a {
        points.iter().filter_map(|point| {
            let received = point.time + point.difference;
            let within = |piece: &ClockPiece| {
                piece.upstream.contains(point.time) && piece.downstream.contains(received)
            };
            let piece = self.report.pieces.iter().position(within)?;
            let difference = self.report.upstream_time(piece, received) - point.time;
            Some(ClockPoint { difference, ..*point })
        })
    }
}
