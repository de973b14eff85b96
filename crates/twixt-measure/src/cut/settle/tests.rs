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

fn edge(sides: &(Vec<Observation>, Vec<Observation>)) -> Edge<'_> {
    let (shift, reach) = (Delay::ZERO, Delay::from_nanos(20));
    let before = Some(BoundarySide { observations: &sides.0, shift, reach });
    Edge { before, after: Some(BoundarySide { observations: &sides.1, shift, reach }) }
}

/// The boundary is at 100, the reach is 20; packets are (digest, time).
fn settled(upstream: &[(u64, i64)], downstream: &[(u64, i64)]) -> Moves {
    let split = |packets: &[(u64, i64)]| -> (Vec<_>, Vec<_>) {
        seen(packets).into_iter().partition(|packet| packet.time.as_nanos() < 100)
    };
    let (up, down) = (split(upstream), split(downstream));
    settle(Timestamp::from_nanos(100), edge(&up), edge(&down))
}

#[track_caller]
fn check(
    upstream: &[(u64, i64)],
    downstream: &[(u64, i64)],
    earlier: &[(u64, i64)],
    later: &[(u64, i64)],
) {
    let moves = settled(upstream, downstream);
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
    check(&[(1, 95), (1, 105), (1, 106)], &[(1, 85), (1, 98), (1, 99)], &[], &[(1, 98), (1, 99)]);
}

#[test]
fn equal_packets_in_doubt_stay() {
    // One of two was lost; which one is unknown.
    check(&[(1, 95), (1, 105)], &[(1, 110)], &[], &[]);
    // One more than upstream kept: it came from far before the boundary.
    check(&[(1, 105)], &[(1, 90), (1, 110)], &[], &[]);
}

#[test]
fn what_cannot_be_placed_is_counted() {
    let moves = settled(&[(1, 95), (2, 95), (3, 95)], &[(2, 105), (4, 105)]);
    let evidence = moves.evidence;
    assert_eq!((moves.earlier.len(), evidence.unseen, evidence.strange), (1, 2, 1));
    assert_eq!((evidence.sent, evidence.matched, evidence.strain), (3, 1, 0.5));
}

/// `short_delays` were seen at earlier boundaries.
#[track_caller]
fn check_verdict(
    upstream: &[(u64, i64)],
    downstream: &[(u64, i64)],
    short_delays: u64,
    expected: Verdict,
) {
    let evidence = settled(upstream, downstream).evidence;
    assert_eq!(evidence.verdict(short_delays, Unobserved::default()), expected, "{evidence:?}");
}

#[test]
fn delays_near_the_reach_are_not_settled() {
    check_verdict(&[(1, 95)], &[(1, 113)], 0, Verdict::Settled);
    check_verdict(&[(1, 95)], &[(1, 114)], 9, Verdict::Beyond);
    // Though it did not cross the boundary.
    check_verdict(&[(1, 100)], &[(1, 119)], 9, Verdict::Beyond);
    check_verdict(&[(1, 119)], &[(1, 100)], 9, Verdict::Beyond);
    check_verdict(&[], &[], 0, Verdict::Settled);
}

#[test]
fn a_missing_packet_is_lost_only_if_delays_are_known_to_be_short() {
    check_verdict(&[(1, 95), (2, 95)], &[(1, 105)], 8, Verdict::Settled);
    check_verdict(&[(1, 95), (2, 95)], &[(1, 105)], 7, Verdict::Doubtful);
    check_verdict(&[(1, 95), (2, 95)], &[(1, 106)], 8, Verdict::Doubtful);
}

#[test]
fn a_packet_from_nowhere_is_foreign_only_if_delays_are_known_to_be_short() {
    check_verdict(&[(1, 95)], &[(1, 105), (2, 105)], 8, Verdict::Settled);
    check_verdict(&[(1, 95)], &[(1, 105), (2, 105)], 7, Verdict::Doubtful);
}

#[test]
fn packets_missing_here_and_from_nowhere_there_are_late() {
    check_verdict(&[(1, 95), (2, 95)], &[(1, 96), (3, 101)], 1_000, Verdict::Doubtful);
}

#[test]
fn packets_of_which_most_are_missing_may_be_late() {
    let sent: Vec<(u64, i64)> = (0..8).map(|digest| (digest, 95)).collect();
    check_verdict(&sent, &sent[..4], 1_000, Verdict::Settled);
    check_verdict(&sent, &sent[..3], 1_000, Verdict::Late);
    check_verdict(&sent[..7], &sent[..1], 1_000, Verdict::Settled);
}

/// What was sent from some moment before the boundary on is not there, up to where it should be.
#[test]
fn when_nothing_arrives_any_more_packets_may_be_late() {
    let sent: Vec<(u64, i64)> = (0..40).map(|digest| (digest, 80 + digest as i64)).collect();
    let arrived = |until: usize| -> Vec<(u64, i64)> {
        sent[..until].iter().map(|&(digest, place)| (digest, place + 1)).collect()
    };
    for until in 12..20 {
        check_verdict(&sent, &arrived(until), 1_000, Verdict::Stalled);
    }
    // The last before the boundary came: the epoch before it is whole.
    check_verdict(&sent, &arrived(20), 1_000, Verdict::Settled);
    // Others came after those that are missing.
    let others: Vec<(u64, i64)> = [arrived(15), arrived(40)[25..].to_vec()].concat();
    check_verdict(&sent, &others, 1_000, Verdict::Settled);
    // A few may be lost.
    check_verdict(&sent[..22], &arrived(19), 1_000, Verdict::Settled);
    check_verdict(&sent[..23], &arrived(19), 1_000, Verdict::Stalled);
    let evidence = settled(&sent, &arrived(15)).evidence;
    let dropped = Unobserved { upstream: 0, downstream: 30 };
    assert_eq!(evidence.verdict(1_000, dropped), Verdict::Settled);
}

/// They are missing whatever the delays are, but do not tell that these are short.
#[test]
fn packets_that_were_not_observed_do_not_make_others_late() {
    let sent: Vec<(u64, i64)> = (0..8).map(|digest| (digest, 95)).collect();
    let evidence = settled(&sent, &sent[..3]).evidence;
    let dropped = |downstream| Unobserved { upstream: 0, downstream };
    assert_eq!(evidence.verdict(8, dropped(1)), Verdict::Settled);
    assert_eq!(evidence.verdict(7, dropped(5)), Verdict::Doubtful);
    let both = settled(&[(1, 95), (2, 95)], &[(1, 96), (3, 101)]).evidence;
    assert_eq!(both.verdict(8, dropped(0)), Verdict::Doubtful);
    assert_eq!(both.verdict(8, dropped(1)), Verdict::Settled);
}

/// The downstream clock is behind by 5: what left at 84 seems to arrive where nothing is kept.
#[test]
fn what_clocks_apart_hide_is_not_missing() {
    check_verdict(&[(1, 84), (2, 90)], &[(2, 85)], 0, Verdict::Settled);
    check_verdict(&[(2, 102)], &[(2, 97), (3, 116)], 0, Verdict::Settled);
    check_verdict(&[(1, 86), (2, 90)], &[(2, 85)], 0, Verdict::Doubtful);
}
