//! The packet thread of a point stands still for a while, so that the kernel drops packets: what the
//! agent seals, through its own thread, and what the collector's engine makes of it. No packet is
//! lost on the way, and none must be called lost.

use std::time::Duration;

use twixt_agent::rehearsal::Moment;
use twixt_engine::{Engine, EngineConfig, EngineEvent, SegmentConfig};
use twixt_measure::Sealed;
use twixt_model::{LossRange, PointId, Segment, Timestamp};

use crate::clock_steps::{frame_of, sealed};

const MS: i64 = 1_000_000;
const SECOND: i64 = 1000 * MS;
const START: i64 = 1_700_000_000 * SECOND;
const LENGTH: i64 = 30 * SECOND;
const TICK: i64 = 10 * MS;
const EVERY: i64 = 5 * MS;
const DELAY: i64 = 2 * MS;
/// What the ring of the kernel holds.
const RING: i64 = 200 * MS;

/// A thread that stands still from a moment after the start on, so long.
type Stall = (i64, i64);

/// What one point sees. What comes during a stall waits in the ring, or is dropped if that is full.
fn script(delay: i64, stalls: &[Stall]) -> Vec<Moment> {
    let (mut moments, mut from, mut to) = (Vec::new(), 0, TICK);
    while to <= LENGTH {
        let stall = stalls.iter().find(|(start, _)| (from..to).contains(start));
        to += stall.map_or(0, |(_, length)| *length);
        let kept_until = to.min(from + RING);
        let seen = |from: i64, to: i64| {
            let numbers = (from - delay).div_euclid(EVERY) + 1..=(to - delay).div_euclid(EVERY);
            numbers.filter(|number| *number >= 0)
        };
        let frame = |number: i64| {
            let time = Timestamp::from_nanos(START + number * EVERY + delay);
            (time, frame_of(number))
        };
        let wall = Timestamp::from_nanos(START + to);
        let steady = Duration::from_nanos(to as u64);
        // The ring is read block by block; the kernel says at the first what it dropped.
        let blocks = (from..kept_until).step_by(TICK as usize);
        let dropped = seen(kept_until, to).count() as u64;
        for (index, block) in blocks.enumerate() {
            let frames = seen(block, (block + TICK).min(kept_until)).map(frame).collect();
            let dropped = if index == 0 { dropped } else { 0 };
            moments.push(Moment { steady, wall, frames, dropped });
        }
        (from, to) = (to, to + TICK);
    }
    moments
}

/// Epoch since the start, and bounds on loss, of all estimates of an algorithm.
fn bounds(up: Vec<(Duration, Sealed)>, down: Vec<(Duration, Sealed)>) -> Vec<(i64, LossRange)> {
    let point = |name: &str| PointId(name.to_owned());
    let segment = Segment { upstream: point("up"), downstream: point("down") };
    let segments = vec![SegmentConfig { segment, class: None }];
    let mut engine = Engine::new(EngineConfig { segments, ..EngineConfig::default() });
    let mut arriving: Vec<(Duration, Sealed)> = up.into_iter().chain(down).collect();
    arriving.sort_by_key(|(at, _)| *at);
    for (at, sealed) in arriving {
        engine.receive(Sealed::from_bytes(&sealed.to_bytes()).unwrap());
        engine.advance(Timestamp::from_nanos(START + at.as_nanos() as i64));
    }
    (0..30).for_each(|s| engine.advance(Timestamp::from_nanos(START + LENGTH + s * SECOND)));
    let mut found = Vec::new();
    while let Some(event) = engine.poll() {
        let EngineEvent::Estimated(pair) = event else { continue };
        let estimate = &pair.estimates[0];
        // Beside an epoch that was observed in part, packets in flight are not known.
        let Some(range) = estimate.evidence.loss_range() else { continue };
        let says_so = estimate.reason.as_deref().is_some_and(|reason| reason.contains("dropped"));
        assert_eq!(says_so, range.min < range.max, "{pair:?}");
        found.push((pair.epoch.0 - START / SECOND, range));
    }
    found
}

/// The points stand still at these times; `uncertain` are the epochs whose loss is then a range.
#[track_caller]
fn check(up_stalls: &[Stall], down_stalls: &[Stall], uncertain: &[i64]) {
    let up = sealed("up", script(0, up_stalls).into_iter());
    let down = sealed("down", script(DELAY, down_stalls).into_iter());
    let all = bounds(up, down);
    let found: Vec<i64> =
        all.iter().filter(|(_, range)| range.exact().is_none()).map(|(epoch, _)| *epoch).collect();
    for (epoch, range) in &all {
        assert_eq!(range.min, 0, "nothing was lost in epoch {epoch}");
    }
    // Of two algorithms, both of them.
    let mut twice: Vec<i64> = uncertain.iter().chain(uncertain).copied().collect();
    twice.sort_unstable();
    let mut found = found;
    found.sort_unstable();
    assert_eq!(found, twice, "{all:?}");
    assert!(all.len() >= 50, "{all:?}");
}

#[test]
fn drops_downstream_are_no_loss() {
    check(&[], &[(5 * SECOND + 150 * MS, 700 * MS)], &[5]);
    // From the middle of an epoch into the next.
    check(&[], &[(5 * SECOND + 500 * MS, SECOND)], &[5, 6]);
    check(&[], &[(5 * SECOND + 500 * MS, 700 * MS), (12 * SECOND, 1500 * MS)], &[5, 6, 12, 13]);
}
