//! The downstream clock, put right by what is known of it.

use twixt_measure::clock::ClockReport;
use twixt_measure::survey::{Comparison, DelayRange};
use twixt_model::{Delay, Timestamp};

/// Turns what the downstream clock shows into what the upstream one would have shown.
#[derive(Clone, Debug)]
pub(crate) struct Correction {
    report: ClockReport,
    /// About how much later packets are seen downstream, clocks included: what is known of the
    /// clocks is known by upstream time.
    later: Delay,
}

impl Correction {
    /// By what two captures tell; `None` if that is nothing.
    pub(crate) fn new(report: Option<&ClockReport>, comparison: &Comparison) -> Option<Self> {
        let report = report.filter(|report| report.knows_something())?.clone();
        let later = comparison.downstream_delays?.median;
        Some(Self { report, later })
    }

    /// What the clock should have shown.
    pub(crate) fn apply(&self, time: Timestamp) -> Timestamp {
        time - self.report.ahead(time - self.later)
    }

    /// Delays of the packets that were compared, as they are then.
    pub(crate) fn delays(&self, comparison: &Comparison) -> Option<DelayRange> {
        let corrected = comparison
            .downstream_points
            .iter()
            .map(|point| self.apply(point.time + point.difference) - point.time);
        DelayRange::of(corrected.collect())
    }
}
