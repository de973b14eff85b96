//! How far apart in time one step of a clock shows in the two directions.

use twixt_model::Delay;

use super::shifts::{self, Shift};
use super::steps::PATH_CHANGE_MAX;
use super::track::Track;

/// A step that is smaller than this is allowed to mix up the order of packets for as long as it is.
const DISORDER_MAX: Delay = Delay::from_nanos(50_000_000);

/// Both directions.
pub(super) struct Both<'a> {
    pub(super) forward: &'a Track,
    pub(super) backward: Option<&'a Track>,
}

impl Both<'_> {
    /// How far apart a step shows in the two directions at most: packets under way while it happens
    /// have one time from before and one from after it.
    pub(super) fn reach(&self, shift: Shift) -> Delay {
        // Just before: packets from both sides of a step would seem to vary by it.
        let near = |track: &Track, at: usize| {
            let range = shifts::range_before(track, at).min(PATH_CHANGE_MAX);
            (track.points[at.saturating_sub(1)].difference, range)
        };
        let (ahead, range) = near(self.forward, shift.at);
        let there_and_back = self.backward.map_or(Delay::ZERO, |backward| {
            let last = self.forward.times[shift.at.saturating_sub(1)];
            // Packets that went back may show the step earlier.
            let at = backward.first_from(last).saturating_sub(shifts::SIDE_MIN);
            let (behind, range) = near(backward, at);
            let round_trip = (ahead - behind).as_nanos().saturating_abs();
            // Beyond that, one of the two is from the other side of the step.
            Delay::from_nanos(round_trip.min(PATH_CHANGE_MAX.as_nanos())) + range
        });
        let mixed = Delay::from_nanos(shift.change.as_nanos().saturating_abs()).min(DISORDER_MAX);
        there_and_back + range + range + mixed + self.spacing(shift)
    }

    /// The time that a few packets near the shift take.
    fn spacing(&self, shift: Shift) -> Delay {
        const FEW: usize = 4;
        let gap = |track: &Track, at: usize| {
            let (from, to) = (at.saturating_sub(FEW), (at + FEW).min(track.points.len() - 1));
            let (before, after) = (at.saturating_sub(1).max(from), at.min(to));
            // Without what the clock itself jumped.
            let jump = track.times[after] - track.times[before];
            track.times[to] - track.times[from] - jump
        };
        let backward = self.backward.map_or(Delay::ZERO, |backward| {
            gap(backward, backward.first_from(self.forward.times[shift.at]))
        });
        gap(self.forward, shift.at).max(backward)
    }
}
