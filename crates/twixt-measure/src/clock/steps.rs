//! When a clock was set: from one packet to the next all delays are larger, or smaller, for good.
//!
//! A queue that fills looks much the same, and so does another route. So a step is only believed
//! if it is large beside what delays near it vary by, stays, and, where packets went both ways, is
//! seen in both: a way that gets longer adds to one direction only. What is smaller than that
//! cannot be distinguished from network delay, and stays in the delays.

use twixt_model::{Delay, Timestamp};

use super::line::median;
use super::{ClockPoint, Track};

/// A clock that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// When the first packet after it was seen upstream.
    pub time: Timestamp,
    /// How much further ahead the downstream clock is since.
    pub step: Delay,
}

/// Maximum number of steps reported: a clock with more is useless.
pub const STEPS_MAX: usize = 16;
/// Packets on both sides that a step takes at least.
const SIDE_MIN: usize = 16;
/// Packets on both sides that are looked at.
const SIDE_MAX: usize = 256;
/// A step is so many times larger than what most delays near it vary by.
const CLEAR: f64 = 4.0;
/// Smaller ones are not worth telling.
const STEP_MIN_NS: f64 = 20_000.0;

/// Steps of the packets that went downstream, which those that went back do not deny.
pub(super) fn find(forward: &Track, backward: Option<&Track>) -> Vec<ClockStep> {
    let mut steps: Vec<ClockStep> = Vec::new();
    let points = &forward.points;
    // Where the last step was: what lies before it says nothing of the next.
    let mut since = 0;
    let mut at = SIDE_MIN;
    while at + SIDE_MIN <= points.len() && steps.len() < STEPS_MAX {
        let found = may_step(points, at).then(|| step_between(&points[since..at], &points[at..]));
        match found.flatten() {
            Some(step) if backward.is_none_or(|backward| !denies(backward, &step)) => {
                steps.push(step);
                since = at;
                at += SIDE_MIN;
            }
            _ => at += 1,
        }
    }
    steps
}

/// The same steps, measured again where what clocks gain between packets is known.
pub(super) fn refined(
    forward: &Track,
    steps: &[ClockStep],
    gained: impl Fn(Timestamp) -> Delay,
) -> Vec<ClockStep> {
    let floor = |points: &[ClockPoint]| {
        points.iter().map(|point| point.difference - gained(point.time)).min()
    };
    let mut since = 0;
    let refine = |step: &ClockStep| {
        let at = forward.points.partition_point(|point| point.time < step.time);
        let (before, after) = forward.points.split_at(at);
        let before = &before[since.max(at.saturating_sub(SIDE_MAX))..];
        since = at;
        // No further than the next step, which is at least so far away.
        let after = floor(&after[..after.len().min(SIDE_MIN)]);
        let size = after.zip(floor(before)).map(|(after, before)| after - before);
        ClockStep { step: size.unwrap_or(step.step), ..*step }
    };
    steps.iter().map(refine).collect()
}

/// Packets beside a step that are looked at first.
const NEAR: usize = 8;

/// Whether a closer look is worth its time: the few packets beside it hardly overlap.
fn may_step(points: &[ClockPoint], at: usize) -> bool {
    let sorted = |points: &[ClockPoint]| {
        let mut near = [Delay::ZERO; NEAR];
        for (place, point) in near.iter_mut().zip(points) {
            *place = point.difference;
        }
        near.sort_unstable();
        near
    };
    let (before, after) = (sorted(&points[at - NEAR..at]), sorted(&points[at..at + NEAR]));
    let apart = after[0] > before[NEAR / 2] || before[0] > after[NEAR / 2];
    apart && (after[0] - before[0]).as_nanos().unsigned_abs() as f64 >= STEP_MIN_NS
}

/// The step between what was before and what came after, if there is one.
fn step_between(before: &[ClockPoint], after: &[ClockPoint]) -> Option<ClockStep> {
    let before = &before[before.len().saturating_sub(SIDE_MAX)..];
    let after = &after[..after.len().min(SIDE_MAX)];
    let (old, new) = (StepSide::of(before)?, StepSide::of(after)?);
    let step = new.floor - old.floor;
    let size_ns = step.as_nanos().unsigned_abs() as f64;
    let is_clear = size_ns >= (CLEAR * old.varies_ns.max(new.varies_ns)).max(STEP_MIN_NS);
    // Exactly here: the last packet before is nearer to the old floor, the first after to the new.
    let is_new = |point: &ClockPoint| {
        let above = |floor: Delay| (point.difference - floor).as_nanos().unsigned_abs();
        above(new.floor) < above(old.floor)
    };
    let is_here = !is_new(&before[before.len() - 1]) && is_new(&after[0]);
    (is_clear && is_here).then(|| ClockStep { time: after[0].time, step })
}

/// The packets on one side of a step.
struct StepSide {
    floor: Delay,
    /// What nine in ten of them vary by.
    varies_ns: f64,
}

impl StepSide {
    /// `None` with too few.
    fn of(points: &[ClockPoint]) -> Option<Self> {
        let mut differences: Vec<Delay> = points.iter().map(|point| point.difference).collect();
        if differences.len() < SIDE_MIN {
            return None;
        }
        differences.sort_unstable();
        let floor = differences[0];
        let most = differences[differences.len() * 9 / 10];
        Some(Self { floor, varies_ns: (most - floor).as_nanos() as f64 })
    }
}

/// Whether packets that went the other way were on both sides, and their differences did not
/// change by about as much.
fn denies(backward: &Track, step: &ClockStep) -> bool {
    let at = backward.points.partition_point(|point| point.time < step.time);
    let (before, after) = backward.points.split_at(at);
    let middle = |points: &[ClockPoint]| {
        let first = before.first().or(after.first())?.difference;
        median(points.iter().map(|point| (point.difference - first).as_nanos() as f64))
    };
    let before = &before[before.len().saturating_sub(SIDE_MAX)..];
    let after = &after[..after.len().min(SIDE_MAX)];
    if before.len() < SIDE_MIN || after.len() < SIDE_MIN {
        return false;
    }
    let changed = middle(after).zip(middle(before)).map(|(after, before)| after - before);
    let expected = step.step.as_nanos() as f64;
    changed.is_some_and(|changed| (changed - expected).abs() > expected.abs() / 2.0)
}
