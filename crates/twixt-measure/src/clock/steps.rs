//! Which shifts of level are a clock that was set, and which are another path.
//!
//! A clock that is set changes the differences of both directions alike; a path that gets longer
//! adds to those of one direction, or to one and takes from the other. What only one direction could
//! show is not decided, unless no path could be so much longer.

use twixt_model::{Delay, Timestamp};

use super::reach::Both;
use super::shifts::{self, Shift};
use super::track::Track;
use super::{ClockPoint, Skew};

/// A clock that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// When the first packet after it was seen upstream.
    pub time: Timestamp,
    /// How much further ahead the downstream clock is since.
    pub step: Delay,
}

/// Delays of one direction that changed from one packet to the next, and not by a clock for sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelShift {
    /// When the first packet after it was seen upstream.
    pub time: Timestamp,
    /// How much larger differences (downstream time less upstream time) are since.
    pub change: Delay,
    /// Whether these are packets that went downstream.
    pub downstream: bool,
    /// Why.
    pub cause: ShiftCause,
}

/// Why delays changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShiftCause {
    /// Packets of the other direction did not change with them: another path, or a queue.
    Path,
    /// A clock or another path; what packets there are cannot tell which.
    Unknown,
}

impl ShiftCause {
    /// The name in machine formats.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Unknown => "unknown",
        }
    }
}

/// Maximum number of steps reported: a clock with more is useless.
pub const STEPS_MAX: usize = 16;
/// No path is longer than another by more: not even one by satellite, nor around the world.
pub(super) const PATH_CHANGE_MAX: Delay = Delay::from_nanos(1_000_000_000);
/// Of the larger change, what changes of both directions may differ by if a clock was set.
const ALIKE: f64 = 0.25;
/// A clock that was set, as both directions show it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// Packets before this, by the clock that puts them in order, passed before the step.
    pub(super) until: Timestamp,
    /// Packets after this passed after it. Those in between may be either.
    pub(super) from: Timestamp,
    pub(super) step: ClockStep,
}

/// What happened to the level of delays.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    /// At most [`STEPS_MAX`], in order.
    pub(super) cuts: Vec<Cut>,
    /// The others.
    pub(super) shifts: Vec<LevelShift>,
    /// Where each direction's levels changed, for whatever reason.
    pub(super) forward: Vec<usize>,
    pub(super) backward: Vec<usize>,
}

/// Looks for shifts of both directions, and what caused them.
pub(super) fn find(forward: &Track, backward: Option<&Track>) -> Changes {
    let ours = shifts::find(forward);
    let theirs: Vec<Shift> = backward.map_or_else(Vec::new, |backward| {
        let found = shifts::find(&backward.upside_down());
        found.iter().map(|shift| Shift { change: -shift.change, ..*shift }).collect()
    });
    let pair = Both { forward, backward };
    let mut changes = Changes {
        forward: ours.iter().map(|shift| shift.at).collect(),
        backward: theirs.iter().map(|shift| shift.at).collect(),
        ..Changes::default()
    };
    let mut left = theirs;
    for shift in ours {
        let time = forward.times[shift.at];
        let reach = pair.reach(shift);
        let at = backward.and_then(|backward| {
            let near = |other: &Shift| {
                let apart = backward.times[other.at] - time;
                apart.as_nanos().unsigned_abs() <= reach.as_nanos().unsigned_abs()
            };
            left.iter().position(near)
        });
        let partner = at.map(|at| left.remove(at));
        changes.judge(&pair, shift, partner, reach);
    }
    for shift in left {
        changes.judge_backward(&pair, shift);
    }
    changes.cuts.sort_by_key(|cut| cut.until);
    changes.cuts.truncate(STEPS_MAX);
    changes
}

impl Changes {
    /// When something changed, and it is not known whether a clock did.
    pub(super) fn unknown(&self) -> impl Iterator<Item = Timestamp> {
        let unknown = self.shifts.iter().filter(|shift| shift.cause == ShiftCause::Unknown);
        unknown.map(|shift| shift.time)
    }

    /// Where packets of one direction, whose levels changed at `own`, cannot be compared with those
    /// before, as ranges of indices.
    pub(super) fn gaps(&self, track: &Track, own: &[usize]) -> Vec<(usize, usize)> {
        let near = |at: &usize| {
            let end = (at + shifts::SIDE_MIN).min(track.points.len());
            (at.saturating_sub(shifts::SIDE_MIN), end)
        };
        let steps = self.cuts.iter().map(|cut| {
            let first = track.first_from(cut.until);
            (first, track.first_from(cut.from).max(first))
        });
        let mut gaps: Vec<(usize, usize)> = own.iter().map(near).chain(steps).collect();
        gaps.sort_unstable();
        gaps
    }
}

impl Cut {
    /// The step, measured again where it is known what clocks gain between packets.
    pub(super) fn refined(&self, forward: &Track, sure: Option<Skew>) -> ClockStep {
        let rate = sure.map_or(0.0, |skew| skew.ppm / 1e6);
        let gained = |point: &ClockPoint| {
            let elapsed_ns = (point.time - self.step.time).as_nanos() as f64;
            Delay::from_nanos((elapsed_ns * rate).round() as i64)
        };
        let level = forward.changed(|point| point.difference - gained(point));
        let (until, from) = (level.first_from(self.until), level.first_from(self.from));
        let change = shifts::change_between(&level, until, from);
        ClockStep { step: change.map_or(self.step.step, |(change, _)| change), ..self.step }
    }
}

impl Changes {
    /// A shift of packets that went downstream, and the one of the others at about that time.
    fn judge(&mut self, pair: &Both<'_>, shift: Shift, partner: Option<Shift>, reach: Delay) {
        let Both { forward, backward } = pair;
        let time = forward.times[shift.at];
        let other = partner.map(|partner| (partner.change, Delay::ZERO)).or_else(|| {
            let (until, from) = (time - reach, time + reach);
            let turned = backward.map(Track::upside_down)?;
            let (until, from) = (turned.first_from(until), turned.first_from(from));
            shifts::change_between(&turned, until, from).map(|(change, doubt)| (-change, doubt))
        });
        let seen = forward.points[shift.at].time;
        match decide(shift.change, other) {
            Decision::Clock => {
                let other = partner.zip(*backward).map(|(partner, back)| back.times[partner.at]);
                let (first, last) =
                    (other.unwrap_or(time).min(time), other.unwrap_or(time).max(time));
                let step = ClockStep { time: seen, step: shift.change };
                self.cuts.push(Cut { until: first - reach, from: last + reach, step });
            }
            Decision::Not(cause) => self.shifts.push(LevelShift {
                time: seen,
                change: shift.change,
                downstream: true,
                cause,
            }),
        }
    }

    /// A shift of packets that went upstream, and of no others.
    fn judge_backward(&mut self, pair: &Both<'_>, shift: Shift) {
        let Some(backward) = pair.backward else { return };
        let time = backward.times[shift.at];
        let at = pair.forward.first_from(time).min(pair.forward.points.len() - 1);
        let reach = pair.reach(Shift { at, ..shift });
        let (until, from) =
            (pair.forward.first_from(time - reach), pair.forward.first_from(time + reach));
        let seen = backward.points[shift.at].time;
        match decide(shift.change, shifts::change_between(pair.forward, until, from)) {
            Decision::Clock => {
                let step = ClockStep { time: seen, step: shift.change };
                self.cuts.push(Cut { until: time - reach, from: time + reach, step });
            }
            Decision::Not(cause) => self.shifts.push(LevelShift {
                time: seen,
                change: shift.change,
                downstream: false,
                cause,
            }),
        }
    }
}

enum Decision {
    Clock,
    Not(ShiftCause),
}

/// What a change of one direction is, by that of the other and its doubt; without one, no packets
/// of the other direction were there.
fn decide(change: Delay, other: Option<(Delay, Delay)>) -> Decision {
    let size = change.as_nanos().unsigned_abs() as f64;
    let is_impossible = size > PATH_CHANGE_MAX.as_nanos() as f64;
    let Some((other, doubt)) = other else {
        return if is_impossible { Decision::Clock } else { Decision::Not(ShiftCause::Unknown) };
    };
    let (other, doubt) = (other.as_nanos() as f64, doubt.as_nanos() as f64);
    let largest = size.max(other.abs());
    let differs = |expected: f64| (expected - other).abs();
    let change = change.as_nanos() as f64;
    if doubt > ALIKE * size {
        Decision::Not(ShiftCause::Unknown)
    } else if differs(change) <= ALIKE * largest {
        Decision::Clock
    } else if differs(0.0) <= ALIKE * size || differs(-change) <= ALIKE * largest {
        Decision::Not(ShiftCause::Path)
    } else {
        Decision::Not(ShiftCause::Unknown)
    }
}
