//! Which epoch a packet belongs to. Answered here and nowhere else.
//!
//! A packet in flight at a boundary must count in the same epoch at both ends of a segment. The
//! answer is the epoch of its *upstream* time. The upstream point knows it at once ([`TimedCut`]);
//! the downstream point cuts by its own time first, and whole observations kept near the
//! boundary put right afterwards what it could not know ([`settle`]).
//!
//! Nothing here knows synopses or messages. Cutting by markers needs no answer of this module:
//! there the place in the packet stream decides.

use twixt_model::{Delay, Epoch, EpochRule, Observation, Span, Timestamp};

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
        let guard = Delay::from_nanos(self.guard_ns);
        Span { start: span.start + guard, end: span.end - guard }
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

/// Whether any moment that can be said lies in the epoch. Numbers come from strangers.
pub(crate) fn exists(rule: EpochRule, epoch: Epoch) -> bool {
    (rule.epoch_of(Timestamp::MIN)..=rule.epoch_of(Timestamp::MAX)).contains(&epoch)
}

/// What one point kept on both sides of a boundary.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Edge<'a> {
    /// Counted in the epoch before.
    pub before: &'a [Observation],
    /// Counted in the epoch after.
    pub after: &'a [Observation],
}

/// Downstream observations that were counted on the wrong side of a boundary, and how many could
/// not be placed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moves {
    /// Counted after the boundary, belong before it.
    pub earlier: Vec<Observation>,
    /// Counted before the boundary, belong after it.
    pub later: Vec<Observation>,
    /// Kept upstream before the boundary and not downstream: lost, or counted where nothing is
    /// kept.
    pub unseen: u64,
    /// Kept downstream after the boundary and not upstream: from where nothing is kept.
    pub strange: u64,
}

/// Finds downstream observations that were counted in another epoch than upstream's.
///
/// Equal digests are told apart by order only: the first of them downstream belong before the
/// boundary, as many as upstream counted there. Where the two points kept different numbers of
/// them (one was lost, or came from beyond the guard) several splits are possible, and the one
/// that moves least is taken. What upstream did not keep at all stays where it is.
pub(crate) fn settle(upstream: Edge<'_>, downstream: Edge<'_>) -> Moves {
    let upstream = sides(upstream);
    let downstream = sides(downstream);
    let mut moves = Moves::default();
    let mut sent_groups = upstream.chunk_by(same_digest).peekable();
    for received in downstream.chunk_by(same_digest) {
        let digest = received[0].observation.digest;
        while let Some(sent) = sent_groups.next_if(|sent| sent[0].observation.digest < digest) {
            moves.unseen += count_before(sent) as u64;
        }
        match sent_groups.next_if(|sent| sent[0].observation.digest == digest) {
            Some(sent) => settle_equal(sent, received, &mut moves),
            None => moves.strange += (received.len() - count_before(received)) as u64,
        }
    }
    moves.unseen += sent_groups.map(count_before).sum::<usize>() as u64;
    moves
}

/// An observation and the side of the boundary that it was counted on.
#[derive(Clone, Copy)]
struct Sided {
    observation: Observation,
    after: bool,
}

fn same_digest(one: &Sided, other: &Sided) -> bool {
    one.observation.digest == other.observation.digest
}

/// Both sides of an edge, by digest and then by time.
fn sides(edge: Edge<'_>) -> Vec<Sided> {
    let on = |after| move |&observation: &Observation| Sided { observation, after };
    let mut all: Vec<Sided> =
        edge.before.iter().map(on(false)).chain(edge.after.iter().map(on(true))).collect();
    all.sort_unstable_by_key(|sided| (sided.observation.digest, sided.observation, sided.after));
    all
}

fn count_before(group: &[Sided]) -> usize {
    group.iter().filter(|sided| !sided.after).count()
}

fn settle_equal(sent: &[Sided], received: &[Sided], moves: &mut Moves) {
    let (sent_before, received_before) = (count_before(sent), count_before(received));
    let sent_after = sent.len() - sent_before;
    // Unless numbers differ, both limits are `sent_before`.
    let if_none_after_is_missing = received.len().saturating_sub(sent_after);
    let least = sent_before.min(if_none_after_is_missing);
    let most = sent_before.max(if_none_after_is_missing).min(received.len());
    let split = received_before.clamp(least, most);
    moves.unseen += sent_before.saturating_sub(split) as u64;
    moves.strange += (received.len() - split).saturating_sub(sent_after) as u64;
    for (index, sided) in received.iter().enumerate() {
        match (index < split, sided.after) {
            (true, true) => moves.earlier.push(sided.observation),
            (false, false) => moves.later.push(sided.observation),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use twixt_model::PacketDigest;

    use super::*;

    fn seen(packets: &[(u64, i64)]) -> Vec<Observation> {
        let observation = |&(digest, time_ns): &(u64, i64)| Observation {
            digest: PacketDigest(digest),
            time: Timestamp::from_nanos(time_ns),
            ..Observation::default()
        };
        packets.iter().map(observation).collect()
    }

    /// The boundary is at 100; packets are (digest, time).
    #[track_caller]
    fn check(
        upstream: &[(u64, i64)],
        downstream: &[(u64, i64)],
        earlier: &[(u64, i64)],
        later: &[(u64, i64)],
    ) {
        let split = |packets: &[(u64, i64)]| -> (Vec<_>, Vec<_>) {
            seen(packets).into_iter().partition(|packet| packet.time.as_nanos() < 100)
        };
        let (up, down) = (split(upstream), split(downstream));
        let moves =
            settle(Edge { before: &up.0, after: &up.1 }, Edge { before: &down.0, after: &down.1 });
        assert_eq!((moves.earlier, moves.later), (seen(earlier), seen(later)));
    }

    #[test]
    fn a_packet_in_flight_belongs_before_the_boundary() {
        check(&[(1, 95)], &[(1, 105)], &[(1, 105)], &[]);
    }

    #[test]
    fn a_packet_that_seems_to_arrive_before_it_left_belongs_after() {
        check(&[(1, 105)], &[(1, 95)], &[], &[(1, 95)]);
    }

    #[test]
    fn what_upstream_did_not_keep_stays() {
        check(&[(1, 95)], &[(2, 105), (3, 95)], &[], &[]);
    }

    #[test]
    fn equal_packets_are_told_apart_by_their_order() {
        check(&[(1, 90), (1, 95), (1, 105)], &[(1, 99), (1, 106), (1, 115)], &[(1, 106)], &[]);
        check(
            &[(1, 95), (1, 105), (1, 106)],
            &[(1, 85), (1, 98), (1, 99)],
            &[],
            &[(1, 98), (1, 99)],
        );
    }

    #[test]
    fn equal_packets_in_doubt_stay() {
        // One of two was lost: which, nobody knows.
        check(&[(1, 95), (1, 105)], &[(1, 110)], &[], &[]);
        // One more than upstream kept: it came from far before the boundary.
        check(&[(1, 105)], &[(1, 90), (1, 110)], &[], &[]);
    }

    #[test]
    fn what_cannot_be_placed_is_counted() {
        let (up, down) = (seen(&[(1, 95), (2, 95), (3, 95)]), seen(&[(2, 105), (4, 105)]));
        let moves = settle(Edge { before: &up, after: &[] }, Edge { before: &[], after: &down });
        assert_eq!((moves.earlier.len(), moves.unseen, moves.strange), (1, 2, 1));
    }

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
