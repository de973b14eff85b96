//! What the delays of single packets tell about the two clocks: how fast they drift apart, when
//! one was set, and, where packets went both ways, how far they are apart.
//!
//! Three things change the differences of two clocks' times: a clock, a path, and a queue. A clock
//! adds to both directions alike, so that the sum of both delays stays; a path or a queue changes the
//! sum. Both directions are looked at together; what they cannot tell apart is not claimed.
//!
//! Pure: values in, values out. Where the packets come from (a survey of two captures, samples of
//! epochs) is not known here, nor what is done about it.

mod drift;
mod hull;
mod line;
mod pieces;
mod reach;
mod report;
mod shifts;
mod skew;
mod steps;
mod track;
mod two_way;
mod watch;

pub use drift::SkewDoubt;
pub use hull::{HULL_VERTICES_MAX, Line, LowerHull};
pub use pieces::{ClockPiece, OffsetRange};
pub use report::ClockReport;
pub use skew::{Skew, SkewBasis};
pub use steps::{ClockStep, LevelShift, STEPS_MAX, ShiftCause};
pub use two_way::{ClockOffset, two_way};
pub use watch::{ClockWatch, WATCH_PACKETS_MAX};

use twixt_model::{Delay, DelaySample, SampledDelay, Timestamp};

use steps::{Changes, Cut};
use track::{Order, Track};

/// One packet that both points saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPoint {
    /// When, by the upstream clock.
    pub time: Timestamp,
    /// Downstream time less upstream time, whichever way the packet went.
    pub difference: Delay,
    /// Stands for its flow; 0 where that is not known.
    pub flow: u64,
}

/// Quartz is off by 100 ppm at worst; no clock is off by ten times as much.
pub const SKEW_MAX_PPM: f64 = 1000.0;

/// Compares clocks by packets that went downstream and, if there are any, some that went upstream,
/// in any order. `None` without packets that went downstream.
#[must_use]
pub fn diagnose(forward: &[ClockPoint], backward: &[ClockPoint]) -> Option<ClockReport> {
    let (order, [forward, backward]) = Order::of([forward, backward]);
    let forward = forward?;
    let changes = steps::find(&forward, backward.as_ref());
    let back = backward.as_ref().map(|back| back.between(&changes.gaps(back, &changes.backward)));
    let there = forward.between(&changes.gaps(&forward, &changes.forward));
    let judged = drift::judge(&there, &back.unwrap_or_default());
    let judged = judged.map(|skew| order.by_upstream(skew));
    let sure = judged.ok().filter(Skew::is_sure);
    let doubt = pieces::Doubt {
        ppm: judged.map_or(SKEW_MAX_PPM, |skew| skew.error_ppm),
        breaks: changes.unknown().collect(),
    };
    let piece = |(from, until): (Timestamp, Timestamp)| {
        let within = |track: &Track| {
            let (first, end) = (track.first_from(from), track.first_from(until));
            track.points[first..end.max(first)].to_vec()
        };
        let backward = backward.as_ref().map(within).unwrap_or_default();
        pieces::piece(&within(&forward), &backward, sure, &doubt)
    };
    let (cuts, pieces) = changes.between(piece);
    let steps = cuts.iter().map(|cut| cut.refined(&forward, sure)).collect();
    Some(ClockReport::new(forward.span(), judged, (steps, pieces), changes.shifts))
}

impl Changes {
    /// What lies between steps, with the steps; a step with nothing before or after it is left out.
    fn between<T>(
        &self,
        mut piece: impl FnMut((Timestamp, Timestamp)) -> Option<T>,
    ) -> (Vec<Cut>, Vec<T>) {
        let (mut cuts, mut pieces, mut from) = (Vec::new(), Vec::new(), Timestamp::MIN);
        for cut in &self.cuts {
            if let Some(before) = piece((from, cut.until)) {
                pieces.push(before);
                cuts.push(*cut);
                from = cut.from;
            }
        }
        match piece((from, Timestamp::MAX)) {
            Some(last) => pieces.push(last),
            None => {
                cuts.pop();
            }
        }
        (cuts, pieces)
    }
}

impl ClockPoint {
    /// The packets of a sample that went downstream.
    pub fn of_sample(sample: &DelaySample) -> impl Iterator<Item = Self> {
        sample.packets().iter().map(Self::of_packet)
    }

    /// A packet of a sample that went downstream.
    #[must_use]
    pub fn of_packet(packet: &SampledDelay) -> Self {
        Self { time: packet.time, difference: packet.delay, flow: packet.flow.into() }
    }

    /// The same packet as seen from the other point.
    #[must_use]
    pub fn turned(self) -> Self {
        Self { time: self.time + self.difference, difference: -self.difference, ..self }
    }
}

#[cfg(test)]
mod tests;
