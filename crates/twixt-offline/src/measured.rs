//! What was measured along a segment.

use std::path::Path;

use twixt_measure::clock::ClockReport;
use twixt_measure::survey::ClockDifference;
use twixt_model::{Estimate, PointId, Segment, Span};
use twixt_observe::PathCounts;
use twixt_synopsis::StrayCause;

use crate::beside::KeptBeside;
use crate::pairs::Concluded;
use crate::plan::Plan;

/// What was measured along one segment.
#[derive(Debug)]
pub struct Measured {
    /// In the order of the plan's algorithms.
    pub concluded: Vec<Concluded>,
    /// What the upstream point contributed.
    pub upstream: PathCounts,
    /// What the downstream point contributed.
    pub downstream: PathCounts,
    /// How the direction of flows was decided.
    pub direction: DirectionFound,
    /// The time that was measured.
    pub stretch: Option<Span>,
    /// How the clocks differ.
    pub clock: Option<ClockDifference>,
    /// What single packets tell of the clocks.
    pub clocks: Option<ClockReport>,
    /// Whether what is known of the clocks was taken out of delays.
    pub corrected: bool,
    /// What was kept beside the algorithm.
    pub beside: Option<KeptBeside>,
    /// Packets that seem to have arrived before they were sent.
    pub negative_delays: u64,
    /// Whether this is the opposite of the segment that was asked for.
    pub opposite: bool,
}

/// How the direction of flows was decided.
#[derive(Clone, Copy, Debug)]
pub struct DirectionFound {
    /// By what.
    pub decided_by: &'static str,
    /// Flows whose direction is not known.
    pub unknown_flows: u64,
}

/// Everything about one pair of captures.
#[derive(Debug)]
pub struct PairMeasured {
    /// The segment as asked for, and with both directions its opposite.
    pub segments: Vec<Measured>,
    /// Whether a part of the input was unusable.
    pub partial: bool,
}

/// The two files of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// Where packets pass first.
    pub upstream: &'a Path,
    /// Where they pass second.
    pub downstream: &'a Path,
}

impl Files<'_> {
    /// The other way round.
    #[must_use]
    pub const fn swapped(self) -> Self {
        Self { upstream: self.downstream, downstream: self.upstream }
    }
}

impl Measured {
    /// The files of this segment, when `asked` are those that were asked for.
    #[must_use]
    pub const fn files<'a>(&self, asked: Files<'a>) -> Files<'a> {
        if self.opposite { asked.swapped() } else { asked }
    }

    /// Has every estimate say how far the clocks may differ, where that is known.
    pub(crate) fn note_clock_error(&mut self) {
        let bound = self.clock.and_then(|clock| clock.error_bound);
        for concluded in &mut self.concluded {
            for estimate in concluded.all_mut() {
                estimate.evidence.clock_error = estimate.evidence.clock_error.or(bound);
            }
        }
    }
}

impl Measured {
    /// Has estimates that know of strays, and not what they are like, say what made them.
    pub(crate) fn note_stray_cause(
        &mut self,
        plan: &Plan,
        cause: impl FnOnce() -> Option<StrayCause>,
    ) {
        let algorithms = self.concluded.iter_mut().zip(&plan.algorithms);
        let estimates = algorithms
            .filter(|(_, chosen)| !chosen.algorithm.matches_packets())
            .flat_map(|(concluded, _)| concluded.all_mut());
        let mut strayed: Vec<&mut Estimate> = estimates
            .filter(|estimate| estimate.evidence.stray_range().is_some_and(|range| range.min > 0))
            .collect();
        if strayed.is_empty() {
            return;
        }
        let reason = format!("strays: {}", cause().unwrap_or(StrayCause::Unknown));
        strayed.iter_mut().for_each(|estimate| estimate.add_reason(&reason));
    }
}

/// The names of the points within the program; users see those of their files.
#[must_use]
pub fn segment() -> Segment {
    let point = |name: &str| PointId(name.to_owned());
    Segment { upstream: point("upstream"), downstream: point("downstream") }
}
