//! Which epoch a packet belongs to. Answered here and nowhere else.
//!
//! A packet in flight at a boundary must count in the same epoch at both ends of a segment. The
//! answer is the epoch of its *upstream* time. The upstream point knows it at once ([`TimedCut`]);
//! the downstream point cuts by its own time first, and whole observations kept near the
//! boundary put right afterwards what it could not know ([`settle`]).
//!
//! Nothing here knows synopses or messages. Cutting by markers needs no answer of this module:
//! there the place in the packet stream decides.

mod settle;

pub(crate) use settle::{BoundarySide, Edge, Evidence, Moves, TELLING_MIN, Verdict, settle};

use twixt_model::{Delay, Epoch, EpochRule, Span, Timestamp};

/// Cuts by time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedCut {
    rule: EpochRule,
    /// How far the point's clock is ahead, as far as epochs are concerned.
    shift: Delay,
    guard_ns: i64, // in [0, epoch length / 2]; 0 without boundaries
}

/// Where in its epoch a moment lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    /// Near the start.
    Head,
    /// Far from both boundaries.
    Interior,
    /// Near the end.
    Tail,
}

impl TimedCut {
    /// A guard beyond half an epoch is cut to that: the two zones of an epoch do not overlap.
    pub(crate) fn new(rule: EpochRule, shift: Delay, guard: Delay) -> Self {
        let half_ns = rule.length_ns().map_or(0, |length_ns| length_ns / 2);
        Self { rule, shift, guard_ns: guard.as_nanos().clamp(0, half_ns) }
    }

    /// Within this of a boundary whole observations are kept.
    pub(crate) const fn guard(&self) -> Delay {
        Delay::from_nanos(self.guard_ns)
    }

    /// The epoch of a moment on the point's clock.
    pub(crate) fn epoch_of(&self, time: Timestamp) -> Epoch {
        self.rule.epoch_of(time - self.shift)
    }

    /// The moments of an epoch on the point's clock.
    pub(crate) fn span_of(&self, epoch: Epoch) -> Span {
        let span = self.rule.span_of(epoch);
        match self.rule.length_ns() {
            Some(_) => Span { start: span.start + self.shift, end: span.end + self.shift },
            None => span,
        }
    }

    /// The moments of an epoch that are far from both boundaries; its start lies after its end
    /// if there are none.
    pub(crate) fn interior_of(&self, epoch: Epoch) -> Span {
        let span = self.span_of(epoch);
        Span { start: span.start + self.guard(), end: span.end - self.guard() }
    }

    /// Where in `epoch` the moment lies, which is in it.
    pub(crate) fn zone(&self, epoch: Epoch, time: Timestamp) -> Zone {
        let interior = self.interior_of(epoch);
        if time < interior.start {
            Zone::Head
        } else if time > interior.end {
            Zone::Tail
        } else {
            Zone::Interior
        }
    }
}

/// Whether the epoch contains any representable time. Numbers come from outside.
pub(crate) fn exists(rule: EpochRule, epoch: Epoch) -> bool {
    (rule.epoch_of(Timestamp::MIN)..=rule.epoch_of(Timestamp::MAX)).contains(&epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_zone(guard_ns: i64, shift_ns: i64, time_ns: i64, expected: (i64, Zone)) {
        let rule = EpochRule::every(100).unwrap();
        let cut = TimedCut::new(rule, Delay::from_nanos(shift_ns), Delay::from_nanos(guard_ns));
        let time = Timestamp::from_nanos(time_ns);
        let epoch = cut.epoch_of(time);
        assert_eq!((epoch.0, cut.zone(epoch, time)), expected);
        assert!(cut.span_of(epoch).contains(time));
    }

    #[test]
    fn zones_lie_within_the_guard_of_a_boundary() {
        check_zone(10, 0, 109, (1, Zone::Head));
        check_zone(10, 0, 110, (1, Zone::Interior));
        check_zone(10, 0, 189, (1, Zone::Interior));
        check_zone(10, 0, 190, (1, Zone::Tail));
        check_zone(0, 0, 100, (1, Zone::Interior));
        check_zone(0, 0, 199, (1, Zone::Interior));
    }

    #[test]
    fn a_guard_beyond_half_an_epoch_is_half_an_epoch() {
        check_zone(1_000, 0, 149, (1, Zone::Head));
        check_zone(1_000, 0, 150, (1, Zone::Tail));
    }

    #[test]
    fn a_shift_moves_the_boundaries_and_not_the_times() {
        check_zone(10, 7, 106, (0, Zone::Tail));
        check_zone(10, 7, 107, (1, Zone::Head));
        check_zone(10, -1_000, 105, (11, Zone::Head));
    }

    #[test]
    fn one_epoch_for_all_time_has_no_boundaries() {
        let ten = Delay::from_nanos(10);
        let cut = TimedCut::new(EpochRule::WHOLE, ten, ten);
        assert_eq!(cut.zone(Epoch(0), Timestamp::MIN), Zone::Interior);
        assert_eq!(cut.zone(Epoch(0), Timestamp::MAX), Zone::Interior);
    }
}
