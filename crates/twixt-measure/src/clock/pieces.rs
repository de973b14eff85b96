//! The intervals between the steps of a clock, and how far the clocks are apart in each.

use twixt_model::{Delay, Span, Timestamp};

use super::two_way::{ClockOffset, two_way};
use super::{ClockPoint, SKEW_MAX_PPM, Skew};

/// An interval of time in which no clock was set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockPiece {
    /// When its packets were seen upstream.
    pub upstream: Span,
    /// When its packets were seen downstream.
    pub downstream: Span,
    /// How far the downstream clock is ahead when the upstream one shows the start of the interval;
    /// `None` unless packets went both ways.
    pub offset: Option<ClockOffset>,
    /// The same by all that is known; without an offset, since the start of the first interval.
    pub(super) ahead: Delay,
}

/// What the fastest packets of both directions say of an interval of time: the downstream clock is
/// ahead by no less than `low` and by no more than `high`, as no packet arrives before it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetRange {
    /// The largest difference of packets that went upstream.
    pub low: Delay,
    /// The smallest difference of packets that went downstream.
    pub high: Delay,
}

impl OffsetRange {
    /// Of the packets of one interval of time; `None` unless packets went both ways.
    #[must_use]
    pub fn of(downstream: &[ClockPoint], upstream: &[ClockPoint]) -> Option<Self> {
        Some(Self {
            low: upstream.iter().map(|point| point.difference).max()?,
            high: downstream.iter().map(|point| point.difference).min()?,
        })
    }

    /// Whether one offset explains all packets.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        self.low <= self.high
    }
}

/// What is not known of clocks between steps.
pub(super) struct Doubt {
    /// What they may gain or lose beyond what is known.
    pub(super) ppm: f64,
    /// When delays changed at once, and it may have been a clock.
    pub(super) breaks: Vec<Timestamp>,
}

/// What packets of one interval between steps say, in which clocks gain `sure` ppm, and what is in
/// doubt. Without packets that went upstream, only when it was.
pub(super) fn piece(
    forward: &[ClockPoint],
    backward: &[ClockPoint],
    sure: Option<Skew>,
    doubt: &Doubt,
) -> Option<ClockPiece> {
    let all = || forward.iter().chain(backward);
    let seen = |time: fn(&ClockPoint) -> Timestamp| {
        let times = || all().map(time);
        Some(Span { start: times().min()?, end: times().max()? })
    };
    let upstream = seen(|point| point.time)?;
    let downstream = seen(|point| point.time + point.difference)?;
    let rate = sure.map_or(0.0, |skew| skew.ppm / 1e6);
    let level = |points: &[ClockPoint]| -> Vec<ClockPoint> {
        let gained = |point: &ClockPoint| {
            let elapsed_ns = (point.time - upstream.start).as_nanos() as f64;
            Delay::from_nanos((elapsed_ns * rate).round() as i64)
        };
        let level = |point: &ClockPoint| ClockPoint {
            difference: point.difference - gained(point),
            ..*point
        };
        points.iter().map(level).collect()
    };
    let offset = offset(&level(forward), &level(backward), upstream, doubt);
    Some(ClockPiece { upstream, downstream, offset, ahead: Delay::ZERO })
}

/// The offset of clocks that gain no more than what is in doubt.
fn offset(
    forward: &[ClockPoint],
    backward: &[ClockPoint],
    span: Span,
    doubt: &Doubt,
) -> Option<ClockOffset> {
    let all = OffsetRange::of(forward, backward)?;
    let length_ns = (span.end - span.start).as_nanos() as f64;
    let drifted = Delay::from_nanos((length_ns * doubt.ppm / 1e6).round() as i64);
    let steady = (all.is_possible() && doubt.breaks.is_empty())
        .then(|| two_way(all.high, all.low).widened(drifted));
    let any = at_any_time(forward, backward, span, &doubt.breaks);
    let any = any.map(|range| two_way(range.high, range.low));
    [steady, any].into_iter().flatten().min_by_key(|offset| offset.error_bound)
}

/// What holds at any time, however a clock drifts that gains or loses no more than [`SKEW_MAX_PPM`].
fn at_any_time(
    forward: &[ClockPoint],
    backward: &[ClockPoint],
    span: Span,
    breaks: &[Timestamp],
) -> Option<OffsetRange> {
    let of = |points: &[ClockPoint], sign: i64| -> Vec<(Timestamp, i64)> {
        points.iter().map(|point| (point.time, sign * point.difference.as_nanos())).collect()
    };
    Some(OffsetRange {
        low: Delay::from_nanos(-largest_bound(of(backward, -1), span, breaks)?),
        high: Delay::from_nanos(largest_bound(of(forward, 1), span, breaks)?),
    })
}

/// So near a change of delay, a packet may be from before or after it.
const BREAK_REACH: Delay = Delay::from_nanos(500_000_000);

/// Each packet is a bound at its time, and one that is the looser the further away, unless a clock may
/// have been set in between. The loosest that all of them leave at any time.
fn largest_bound(
    mut bounds: Vec<(Timestamp, i64)>,
    span: Span,
    breaks: &[Timestamp],
) -> Option<i64> {
    bounds.sort_unstable();
    let gained = |from: Timestamp, to: Timestamp| {
        ((to - from).as_nanos() as f64 * SKEW_MAX_PPM / 1e6).ceil() as i64
    };
    let is_broken = |from: Timestamp, to: Timestamp| {
        breaks.iter().any(|&at| from - BREAK_REACH < at && at < to + BREAK_REACH)
    };
    let tighten = |other: (Timestamp, i64), bound: &mut (Timestamp, i64)| {
        let (from, to) = (other.0.min(bound.0), other.0.max(bound.0));
        if !is_broken(from, to) {
            bound.1 = bound.1.min(other.1.saturating_add(gained(from, to)));
        }
    };
    for at in 1..bounds.len() {
        tighten(bounds[at - 1], &mut bounds[at]);
    }
    for at in (1..bounds.len()).rev() {
        tighten(bounds[at], &mut bounds[at - 1]);
    }
    let (first, last) = (*bounds.first()?, *bounds.last()?);
    let ends = [first.1 + gained(span.start, first.0), last.1 + gained(last.0, span.end)];
    let between = bounds.windows(2).map(|pair| {
        let apart = gained(pair[0].0, pair[1].0);
        let both = i128::from(pair[0].1) + i128::from(pair[1].1) + i128::from(apart);
        match is_broken(pair[0].0, pair[1].0) {
            true => pair[0].1.max(pair[1].1).saturating_add(apart),
            false => (both / 2 + 1) as i64,
        }
    });
    between.chain(ends).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loosest_bound_lies_between_packets_far_apart_or_at_the_ends() {
        let at = |ms: i64| Timestamp::from_nanos(ms * 1_000_000);
        let span = Span { start: at(0), end: at(1000) };
        // A second is a millisecond at most. Between the second and the third it is 0.35 ms of 0.7.
        let bounds = vec![(at(0), 5_000), (at(200), 100), (at(900), 100)];
        assert_eq!(largest_bound(bounds, span, &[]), Some(350_101));
        // The packet of 5 ms is bounded by that of a moment before.
        let bounds = vec![(at(100), 700), (at(100), 5_000_000), (at(101), 5_000_000)];
        assert_eq!(largest_bound(bounds, span, &[]), Some(700 + 900_000));
        assert_eq!(largest_bound(Vec::new(), span, &[]), None);
        // A clock that may have been set after half of the time: nothing before it bounds the rest.
        let bounds = vec![(at(0), 0), (at(1000), 9_000_000)];
        assert_eq!(largest_bound(bounds.clone(), span, &[]), Some(1_000_001));
        assert_eq!(largest_bound(bounds, span, &[at(500)]), Some(10_000_000));
    }
}
