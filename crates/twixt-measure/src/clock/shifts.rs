//! Where the delays of one direction are larger, or smaller, from one packet to the next and for
//! good. Whether that is a clock that was set or another path is not decided here.
//!
//! A queue that fills looks much the same. So a shift is only believed if it is large beside what
//! delays near it vary by, and stays.

use twixt_model::Delay;

use super::ClockPoint;
use super::track::Track;

/// All differences are larger by `change` from the packet with index `at` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shift {
    pub(super) at: usize,
    pub(super) change: Delay,
}

/// Most shifts that are looked for in one direction.
pub(super) const SHIFTS_MAX: usize = 32;
/// Packets on both sides that a shift takes at least.
pub(super) const SIDE_MIN: usize = 16;
/// Packets on both sides that are looked at.
const SIDE_MAX: usize = 256;
/// A shift is so many times larger than what most delays near it vary by.
const CLEAR: f64 = 4.0;
/// Smaller ones are not worth telling.
const SHIFT_MIN_NS: f64 = 20_000.0;

/// The shifts of packets whose lowest differences are those of the path.
pub(super) fn find(track: &Track) -> Vec<Shift> {
    let points = &track.points;
    let mut shifts: Vec<Shift> = Vec::new();
    // Where the last shift was: what lies before it says nothing of the next.
    let mut since = 0;
    let mut at = SIDE_MIN;
    while at + SIDE_MIN <= points.len() && shifts.len() < SHIFTS_MAX {
        let found = may_shift(points, at).then(|| change_here(&points[since..at], &points[at..]));
        match found.flatten() {
            Some(change) => {
                shifts.push(Shift { at, change });
                since = at;
                at += SIDE_MIN;
            }
            None => at += 1,
        }
    }
    shifts
}

/// By how much the lowest differences changed between two indices, and how much that may be off;
/// `None` with too few packets on a side.
pub(super) fn change_between(track: &Track, until: usize, from: usize) -> Option<(Delay, Delay)> {
    let (before, after) = (&track.points[..until], &track.points[from.max(until)..]);
    let (old, new) = (ShiftSide::of(last(before))?, ShiftSide::of(first(after))?);
    Some((new.floor - old.floor, Delay::from_nanos(old.doubt_ns.max(new.doubt_ns) as i64)))
}

/// What nearly all packets just before an index vary by.
pub(super) fn range_before(track: &Track, at: usize) -> Delay {
    let before = last(&track.points[..at.min(track.points.len())]);
    Delay::from_nanos(ShiftSide::of(before).map_or(0.0, |side| side.range_ns) as i64)
}

fn last(points: &[ClockPoint]) -> &[ClockPoint] {
    &points[points.len().saturating_sub(SIDE_MAX)..]
}

fn first(points: &[ClockPoint]) -> &[ClockPoint] {
    &points[..points.len().min(SIDE_MAX)]
}

/// Packets beside a shift that are looked at first.
const NEAR: usize = 8;

/// Whether a closer look is worth its time: the few packets beside it hardly overlap.
fn may_shift(points: &[ClockPoint], at: usize) -> bool {
    let (before, after) = (&points[at - NEAR..at], &points[at..at + NEAR]);
    let (old, new) = (lowest(before), lowest(after));
    if (new - old).as_nanos().unsigned_abs() as f64 >= SHIFT_MIN_NS {
        // The packets of one side, but for a few at most, lie below all of the other.
        let below = |points: &[ClockPoint], floor: Delay| {
            points.iter().filter(|point| point.difference < floor).count()
        };
        below(before, new) > NEAR / 2 || below(after, old) > NEAR / 2
    } else {
        false
    }
}

fn lowest(points: &[ClockPoint]) -> Delay {
    points.iter().fold(points[0].difference, |least, point| least.min(point.difference))
}

/// The change between what was before and what came after, if it happened exactly there.
fn change_here(before: &[ClockPoint], after: &[ClockPoint]) -> Option<Delay> {
    let (before, after) = (last(before), first(after));
    if before.len() < SIDE_MIN || after.len() < SIDE_MIN {
        return None;
    }
    let (old_floor, new_floor) = (lowest(before), lowest(after));
    let change = new_floor - old_floor;
    let size_ns = change.as_nanos().unsigned_abs() as f64;
    // Exactly here: the last packet before is nearer to the old floor, the first after to the new.
    let is_new = |point: &ClockPoint| {
        let above = |floor: Delay| (point.difference - floor).as_nanos().unsigned_abs();
        above(new_floor) < above(old_floor)
    };
    let is_here = !is_new(&before[before.len() - 1]) && is_new(&after[0]);
    if size_ns < SHIFT_MIN_NS || !is_here {
        return None;
    }
    let (old, new) = (ShiftSide::of(before)?, ShiftSide::of(after)?);
    (size_ns >= CLEAR * old.varies_ns.max(new.varies_ns)).then_some(change)
}

/// The packets on one side of a shift.
struct ShiftSide {
    floor: Delay,
    /// How far one in ten lies above that at most: the floor is no surer.
    doubt_ns: f64,
    /// What nine in ten, and nearly all of them vary by.
    varies_ns: f64,
    range_ns: f64,
}

impl ShiftSide {
    /// `None` with too few.
    fn of(points: &[ClockPoint]) -> Option<Self> {
        let mut differences: Vec<Delay> = points.iter().map(|point| point.difference).collect();
        if differences.len() < SIDE_MIN {
            return None;
        }
        differences.sort_unstable();
        let floor = differences[0];
        let above = |share: f64| {
            let most = differences[(differences.len() as f64 * share) as usize];
            (most - floor).as_nanos() as f64
        };
        Some(Self { floor, doubt_ns: above(0.1), varies_ns: above(0.9), range_ns: above(0.99) })
    }
}
