use twixt_model::{FlowHash, PacketDigest, Timestamp};

use super::*;

fn seen(packets: &[(u64, i64)]) -> Vec<Observation> {
    let observation = |&(digest, time_ns): &(u64, i64)| Observation {
        digest: PacketDigest(digest),
        time: Timestamp::from_nanos(time_ns),
        ..Observation::default()
    };
    packets.iter().map(observation).collect()
}

#[track_caller]
fn check(upstream: &[(u64, i64)], downstream: &[(u64, i64)], expected: &[Option<i64>]) {
    let matching = Matching::new(seen(upstream), seen(downstream), Delay::from_nanos(1_000));
    let delays: Vec<Option<i64>> =
        matching.packets.iter().map(|(_, fate)| fate.delay().map(Delay::as_nanos)).collect();
    assert_eq!(delays, expected);
}

/// Of 20 heartbeats some are lost, and no packet of their flow is unique. All other packets took the
/// same time, which those that arrived fit.
#[test]
fn a_constant_delay_of_others_tells_which_heartbeats_are_lost() {
    let flow = |packet: &Observation| FlowHash(u64::from(packet.digest.0 < 100));
    let of_another = |packets: Vec<Observation>| -> Vec<Observation> {
        packets.iter().map(|packet| Observation { flow: flow(packet), ..*packet }).collect()
    };
    let heartbeats = |delay: i64, is_there: fn(i64) -> bool| -> Vec<(u64, i64)> {
        let there = (0..20).filter(|&number| is_there(number));
        there.map(|number| (1, number * 50_000 + delay)).collect()
    };
    let others = |delay: i64| -> Vec<(u64, i64)> {
        (0..50).map(|number| (1_000 + number, number as i64 * 777 + delay)).collect()
    };
    let upstream = [heartbeats(0, |_| true), others(0)].concat();
    let lost_of = |delay: i64| {
        let received = [heartbeats(delay, |number| number % 7 != 3), others(10)].concat();
        let (upstream, downstream) = (seen(&upstream), seen(&received));
        let matching = Matching::new(
            of_another(upstream),
            of_another(downstream),
            Delay::from_nanos(1_000_000),
        );
        let heartbeats = &matching.packets[..20];
        heartbeats.iter().map(|(_, fate)| *fate).collect::<Vec<Fate>>()
    };
    let measured = Fate::Measured(Matched::certain(Delay::from_nanos(10)));
    for (number, fate) in lost_of(10).into_iter().enumerate() {
        assert_eq!(fate, if number % 7 == 3 { Fate::Lost } else { measured }, "{number}");
    }
    // Heartbeats of another queue do not fit.
    assert!(lost_of(70_000).iter().all(|fate| *fate != measured));
}

/// 2000 identical packets a second apart, 20 unique ones: a few of the former are slower than any of
/// the latter, and none is lost.
#[test]
fn identical_packets_slower_than_unique_ones_are_not_lost() {
    let delay = |number: u64| {
        let uniform = (twixt_model::mix(number) >> 11) as f64 / (1_u64 << 53) as f64;
        (10_000.0 * -(1.0 - uniform).ln()) as i64
    };
    let packet = |number: u64| {
        let digest = if number.is_multiple_of(100) { number + 1 } else { 0 };
        (digest, number as i64 * 1_000_000)
    };
    let sent: Vec<(u64, i64)> = (0..2_000).map(packet).collect();
    let received: Vec<(u64, i64)> =
        (0..).zip(&sent).map(|(number, &(digest, time))| (digest, time + delay(number))).collect();
    let slowest = |is_unique: bool| {
        let of = (0..2_000_u64).filter(|number| number.is_multiple_of(100) == is_unique);
        of.map(delay).max().unwrap()
    };
    assert!(slowest(false) > slowest(true) * 3 / 2, "{} {}", slowest(false), slowest(true));
    let matching = Matching::new(seen(&sent), seen(&received), Delay::from_nanos(500_000));
    let lost = matching.packets.iter().filter(|(_, fate)| *fate == Fate::Lost).count();
    assert_eq!((lost, matching.strays.len()), (0, 0));
    // A packet that is missing is missed, and one that came from nowhere is a stray.
    let mut gone = received.clone();
    gone[1_501].1 += 500_000;
    let matching = Matching::new(seen(&sent), seen(&gone), Delay::from_nanos(500_000));
    let lost = matching.packets.iter().filter(|(_, fate)| *fate == Fate::Lost).count();
    assert_eq!((lost, matching.strays.len()), (1, 1));
}

/// Whatever comes, every packet upstream crossed or was lost, and every packet downstream crossed
/// or is a stray.
#[test]
fn lost_and_matched_are_upstream_and_strays_and_matched_are_downstream() {
    for seed in 0..300_u64 {
        let draw = |number: u64, below: u64| twixt_model::mix(seed << 20 | number) % below;
        let side = |from: u64| -> Vec<(u64, i64)> {
            let count = draw(from, 60);
            let packet = |number| {
                let digest = draw(from + 2 * number, 1 + draw(7, 40));
                (digest, draw(from + 2 * number + 1, 3_000) as i64)
            };
            (1..=count).map(packet).collect()
        };
        let (sent, received) = (side(1_000), side(9_000));
        let matching = Matching::new(seen(&sent), seen(&received), Delay::from_nanos(1_000));
        let lost = matching.packets.iter().filter(|(_, fate)| *fate == Fate::Lost).count();
        let matched = matching.packets.len() - lost;
        assert_eq!(lost + matched, sent.len(), "seed {seed}");
        assert_eq!(matching.strays.len() + matched, received.len(), "seed {seed}");
    }
}

/// Second copies of packets at either point are lost or stray, and the delays stay as they were.
#[test]
fn doubling_every_packet_at_one_point_changes_no_delay() {
    let [sent, received] = sure(50);
    let single = |packets: &[(u64, i64)]| -> Vec<(u64, i64)> {
        packets.iter().map(|&(digest, time)| (digest, time + 100 * digest as i64)).collect()
    };
    let (sent, received) = (single(&sent), single(&received));
    let doubled = |packets: &[(u64, i64)]| -> Vec<(u64, i64)> {
        packets.iter().flat_map(|&(digest, time)| [(digest, time), (digest, time)]).collect()
    };
    let delays = |sent: &[(u64, i64)], received: &[(u64, i64)]| -> (Vec<Delay>, usize) {
        let matching = Matching::new(seen(sent), seen(received), Delay::from_nanos(1_000));
        let delays = matching.packets.iter().filter_map(|(_, fate)| fate.delay());
        (delays.collect(), matching.strays.len())
    };
    let (once, strays) = delays(&sent, &received);
    assert_eq!((once.len(), strays), (50, 0));
    assert_eq!(delays(&sent, &doubled(&received)), (once.clone(), 50));
    assert_eq!(delays(&doubled(&sent), &received), (once, 0));
}

/// Second copies of other heartbeats are not taken for those that were lost.
#[test]
fn lost_heartbeats_stay_lost_where_packets_are_doubled() {
    let doubled = |packets: &[(u64, i64)]| -> Vec<(u64, i64)> {
        packets.iter().flat_map(|&packet| [packet, packet]).collect()
    };
    let [sent, received] = sure(50);
    let beats: Vec<(u64, i64)> = (0..30).map(|number| (1, number * 100)).collect();
    let arrive = beats.iter().filter(|(_, time)| ![700, 2_000].contains(time));
    let arrived: Vec<(u64, i64)> = arrive.map(|&(digest, time)| (digest, time + 10)).collect();
    let sent = [beats, sent].concat();
    let received = doubled(&[arrived, received].concat());
    let matching = Matching::new(seen(&sent), seen(&received), Delay::from_nanos(1_000));
    let lost = matching.packets.iter().filter(|(_, fate)| *fate == Fate::Lost);
    let times: Vec<i64> = lost.map(|(packet, _)| packet.time.as_nanos()).collect();
    assert_eq!((times, matching.strays.len()), (vec![700, 2_000], 78));
}

#[test]
fn packets_are_matched_by_digest_whatever_their_order() {
    check(&[(1, 0), (2, 10), (3, 20)], &[(3, 25), (1, 7)], &[Some(7), None, Some(5)]);
}

#[test]
fn identical_packets_are_matched_in_order() {
    check(&[(1, 0), (1, 100)], &[(1, 9), (1, 105)], &[Some(9), Some(5)]);
}

/// So many that occur once, with delays from 8 to 12.
fn sure(count: u64) -> [Vec<(u64, i64)>; 2] {
    let sent = |number| (100 + number, 0);
    let received = |number| (100 + number, 8 + number as i64 % 5);
    [(0..count).map(sent).collect(), (0..count).map(received).collect()]
}

#[track_caller]
fn check_among(
    sure: [Vec<(u64, i64)>; 2],
    upstream: &[(u64, i64)],
    downstream: &[(u64, i64)],
    expected: &[Fate],
) {
    let [sent, received] = sure;
    let (sent, received) = ([upstream, &sent].concat(), [downstream, &received].concat());
    let matching = Matching::new(seen(&sent), seen(&received), Delay::from_nanos(1_000));
    let fates: Vec<Fate> = matching.packets.iter().map(|(_, fate)| *fate).collect();
    assert_eq!(fates[..expected.len()], *expected);
}

fn measured(delay_ns: i64) -> Fate {
    Fate::Measured(Matched::certain(Delay::from_nanos(delay_ns)))
}

#[test]
fn of_identical_packets_the_one_with_the_usual_delay_arrived() {
    check_among(sure(8), &[(1, 0), (1, 500)], &[(1, 511)], &[Fate::Lost, measured(11)]);
    check_among(sure(8), &[(1, 500)], &[(1, 100), (1, 509)], &[measured(9)]);
}

#[test]
fn where_usual_delays_are_unknown_nothing_tells_which_of_identical_packets_arrived() {
    let fates = [Fate::Lost, Fate::Arrived(Delay::ZERO)];
    check_among(sure(7), &[(1, 0), (1, 500)], &[(1, 511)], &fates);
    check_among(sure(7), &[(1, 0), (1, 500)], &[(1, 9), (1, 511)], &[measured(9), measured(11)]);
}

/// Heartbeats that wait in another queue than all packets that occur once.
#[test]
fn another_flow_tells_nothing_of_identical_packets() {
    let of_another = |packets: Vec<Observation>| -> Vec<Observation> {
        let flow = |packet: &Observation| FlowHash(u64::from(packet.digest.0 < 100));
        packets.iter().map(|packet| Observation { flow: flow(packet), ..*packet }).collect()
    };
    let [sent, received] = sure(20);
    let upstream = [&[(1, 0), (1, 50), (1, 100)][..], &sent].concat();
    let downstream = [&[(1, 60), (1, 110)][..], &received].concat();
    let (upstream, downstream) = (of_another(seen(&upstream)), of_another(seen(&downstream)));
    let matching = Matching::new(upstream, downstream, Delay::from_nanos(1_000));
    let fates: Vec<Fate> = matching.packets[..3].iter().map(|(_, fate)| *fate).collect();
    assert_eq!(
        fates.iter().filter(|fate| matches!(fate, Fate::Arrived(_))).count(),
        2,
        "{fates:?}"
    );
}

/// A queue that only these packets waited in: no match within the usual delays. The first that came
/// may have overtaken the other.
#[test]
fn identical_packets_with_unusual_delays_are_not_lost() {
    let fate = |low_ns: i64, high_ns: i64| {
        let [delay, low, high] = [300, low_ns, high_ns].map(Delay::from_nanos);
        Fate::Measured(Matched { low, high, ..Matched::certain(delay) })
    };
    let (sent, arrived) = ([(1, 0), (1, 10)], [(1, 300), (1, 310)]);
    check_among(sure(8), &sent, &arrived, &[fate(290, 300), fate(300, 310)]);
}

/// A heartbeat every 100 ms that takes 260 ms, all other packets 1 ms. Of those in flight when the captures
/// began, downstream saw two that upstream did not, and as many were in flight at the end: the counts are equal, and all
/// were taken to be two heartbeats younger, with certainty.
#[test]
fn heartbeats_that_were_in_flight_at_the_ends_are_not_taken_for_others() {
    let others = (0..3_000).map(|number| (number + 1, number as i64 * 10_000_000));
    let upstream: Vec<(u64, i64)> =
        others.clone().chain((0..300).map(|number| (0, number * 100_000_000 + 50_000))).collect();
    for (before, expected) in [(2, None), (0, Some(Delay::from_nanos(260_000_000)))] {
        let heartbeats = (-before..300 - before)
            .map(|number| (0, number * 100_000_000 + 260_050_000))
            .filter(|&(_, time)| before == 0 || time > 0);
        let received = others.clone().map(|(digest, time)| (digest, time + 1_000_000));
        let downstream: Vec<(u64, i64)> = received.chain(heartbeats).collect();
        // Where others were sent long before and after, none is in flight.
        let wider = [(9_000, -1_000_000_000), (9_001, 40_000_000_000)];
        let more = |delay: i64| {
            let there = if before == 0 { &wider[..] } else { &[] };
            there.iter().map(move |&(digest, time)| (digest, time + delay))
        };
        let sent: Vec<(u64, i64)> = upstream.iter().copied().chain(more(0)).collect();
        let arrived: Vec<(u64, i64)> = downstream.into_iter().chain(more(1_000_000)).collect();
        let window = Delay::from_nanos(60_000_000_000);
        let matching = Matching::new(seen(&sent), seen(&arrived), window);
        let mut delays = matching.packets[..300].iter().map(|(_, fate)| fate.delay());
        assert!(delays.all(|delay| delay == expected), "{before} in flight");
    }
}

#[test]
fn equal_packets_far_apart_are_different_packets() {
    check(&[(1, 0), (2, 0), (3, 0)], &[(1, 5), (2, 5), (3, 2_000)], &[Some(5), Some(5), None]);
}

#[test]
fn negative_delays_stay_negative() {
    check(&[(1, 100), (2, 100)], &[(1, 90), (2, 95)], &[Some(-10), Some(-5)]);
}

#[test]
fn nothing_matches_nothing() {
    check(&[], &[(1, 5)], &[]);
    check(&[(1, 5)], &[], &[None]);
}
