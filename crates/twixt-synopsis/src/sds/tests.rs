//! Flows, loss and squares of small sketches.

use twixt_model::{ClassId, Delay, FlowHash, FlowKey, GroupId, PacketDigest, Span, mix};

use super::*;
use crate::question::{By, KnownFlow};

fn flow(number: u16, packets: Option<u64>) -> KnownFlow {
    let key = FlowKey { source_port: number, protocol: 17, ..FlowKey::default() };
    KnownFlow {
        hash: FlowHash(mix(u64::from(number))),
        key,
        group: GroupId::default(),
        packets,
        class: ClassId(number),
    }
}

/// Flows 0, 1, 2, ... of so many packets, whose delays alternate between 1000 ns times the flow's
/// number plus one, and three times that. `is_lost` says which packets (flow, index) do not come.
fn ends(config: &SdsConfig, flows: &[u64], is_lost: impl Fn(u16, u64) -> bool) -> (Sds, Sds) {
    let (mut upstream, mut downstream) = (Sds::new(config), Sds::new(config));
    for (number, &packets) in (0_u16..).zip(flows) {
        for index in 0..packets {
            let sent = Timestamp::from_nanos(index as i64 * 777);
            let delay_ns = 1000 * (i64::from(number) + 1) * if index % 2 == 0 { 1 } else { 3 };
            let packet = Observation {
                time: sent,
                digest: PacketDigest(mix(index << 16 | u64::from(number))),
                flow: flow(number, None).hash,
                length: 100,
                class: ClassId(number),
                ..Observation::default()
            };
            upstream.update_detailed(&packet, &Detail::default());
            if !is_lost(number, index) {
                let time = sent + Delay::from_nanos(delay_ns);
                let detail = Detail { sent: Some(sent), ..Detail::default() };
                downstream.update_detailed(&Observation { time, ..packet }, &detail);
            }
        }
    }
    (upstream, downstream)
}

fn ask(ends: &(Sds, Sds), by: By, estimator: &str, flows: &[KnownFlow]) -> Vec<Estimate> {
    let question = Question {
        by,
        flows,
        estimator: Some(estimator),
        ..Question::about(Span::at(Timestamp::from_nanos(0)))
    };
    Sds::estimate(Pair { upstream: &ends.0, downstream: &ends.1 }, &question)
}

/// (packets, lost, mean, deviation)
type Shown = (u64, Option<u64>, Option<i64>, Option<i64>);

#[track_caller]
fn check(estimates: &[Estimate], expected: &[Shown]) {
    let show = |estimate: &Estimate| {
        let deviation = estimate.delay.and_then(|delay| delay.deviation_ns);
        let mean = estimate.delay.map(|delay| delay.mean().as_nanos());
        let evidence = estimate.evidence;
        (evidence.packets, evidence.lost, mean, deviation.map(|ns| ns.round() as i64))
    };
    assert_eq!(estimates.iter().map(show).collect::<Vec<_>>(), expected);
    for estimate in estimates {
        let known = estimate.delay.is_some_and(|delay| delay.half_width_ns.is_some());
        assert!(known || estimate.reason.is_some(), "{estimate:?}");
    }
}

fn roomy() -> SdsConfig {
    SdsConfig::new(4, 500).unwrap()
}

#[test]
fn every_estimator_tells_flows_apart_with_their_deviations() {
    let ends = ends(&roomy(), &[12, 200, 30], |_, _| false);
    let flows = [flow(0, Some(12)), flow(1, Some(200)), flow(2, Some(30))];
    for estimator in Sds::ESTIMATORS {
        check(
            &ask(&ends, By::Flow, estimator, &flows),
            &[
                (12, Some(0), Some(2000), Some(1000)),
                (200, Some(0), Some(4000), Some(2000)),
                (30, Some(0), Some(6000), Some(3000)),
            ],
        );
    }
}

#[test]
fn loss_costs_no_answers() {
    let ends = ends(&roomy(), &[6, 200], |flow, index| flow == 1 && index % 50 == 1);
    let estimates = ask(&ends, By::Flow, "joint", &[flow(0, Some(6)), flow(1, Some(200))]);
    assert_eq!(estimates[1].evidence.lost, Some(4));
    // 100 packets took 2000 ns and 96 took 6000 ns.
    let mean = estimates[1].delay.unwrap().mean().as_nanos();
    assert!((mean - 3959).abs() <= 1, "{mean}");
}

#[test]
fn a_flow_of_unknown_size_sent_what_arrived_and_what_was_lost() {
    let ends = ends(&roomy(), &[6, 200], |flow, index| flow == 1 && index % 50 == 1);
    let estimates = ask(&ends, By::Flow, "joint", &[flow(0, None), flow(1, None)]);
    assert_eq!((estimates[1].evidence.packets, estimates[1].evidence.lost), (200, Some(4)));
}

#[test]
fn all_traffic_is_exact() {
    let crowded = SdsConfig::new(2, 3).unwrap();
    let ends = ends(&crowded, &[6, 200, 30], |_, index| index == 0);
    // 3, 100, 15 packets took 3, 6, 9 us, and 2, 99, 14 took 1, 2, 3.
    let estimates = ask(&ends, By::All, "joint", &[]);
    check(&estimates, &[(236, Some(3), Some(4232), Some(2263))]);
    assert_eq!(estimates[0].delay.unwrap().half_width_ns, Some(0.0));
}

#[test]
fn without_stamps_only_loss_is_known() {
    let (mut upstream, mut downstream) = (Sds::new(&roomy()), Sds::new(&roomy()));
    let packet = Observation { flow: flow(0, None).hash, ..Observation::default() };
    for _ in 0..10 {
        upstream.update(&packet);
        downstream.update(&packet);
    }
    let ends = (upstream, downstream);
    for estimator in Sds::ESTIMATORS {
        let estimates = ask(&ends, By::Flow, estimator, &[flow(0, Some(10)), flow(7, None)]);
        check(&estimates, &[(10, Some(0), None, None), (0, Some(0), None, None)]);
    }
    check(&ask(&ends, By::All, "joint", &[]), &[(10, Some(0), None, None)]);
}

/// Identical packets have no send time that is known, and may take any time.
#[test]
fn packets_without_a_send_time_take_the_interval_away() {
    let (mut upstream, mut downstream) = ends(&roomy(), &[100, 100, 100], |_, _| false);
    let mut add = |number: u16, packets: u64| {
        for _ in 0..packets {
            let packet = Observation {
                flow: flow(number, None).hash,
                length: 100,
                ..Observation::default()
            };
            upstream.update(&packet);
            downstream.update(&packet);
        }
    };
    add(1, 20);
    add(2, 150);
    let flows = [flow(0, Some(100)), flow(1, Some(120)), flow(2, Some(250))];
    for estimator in ["joint", "min"] {
        let found = ask(&(upstream.clone(), downstream.clone()), By::Flow, estimator, &flows);
        let mean = |index: usize| found[index].delay.map(|delay| delay.mean().as_nanos());
        assert_eq!((mean(0), mean(2)), (Some(2000), None), "{estimator}");
        // Which of the packets have no send time is not known: near, not exact.
        assert!(mean(1).unwrap().abs_diff(4000) < 40, "{estimator}: {:?}", mean(1));
        let interval = |index: usize| found[index].delay.and_then(|delay| delay.half_width_ns);
        assert!(interval(0).unwrap() < 1.0 && interval(1).is_none(), "{estimator}: {found:?}");
        let reason = found[1].reason.as_deref().unwrap();
        assert!(reason.contains("no interval: up to 20 of its packets"), "{estimator}: {reason}");
        assert_eq!(
            found[2].reason.as_deref(),
            Some("no mean: up to 150 of its packets without a send time")
        );
        assert!(found.iter().all(|estimate| estimate.evidence.lost == Some(0)));
    }
    let all = &ask(&(upstream, downstream), By::All, "joint", &[])[0];
    assert_eq!(all.delay.unwrap().half_width_ns, None);
}

/// Thirty heartbeats of 3 030 packets are not stamped, and took 200 times as long as the others: an interval
/// of two deviations of the others was a thousandth of what the mean was off by.
#[test]
fn few_packets_without_a_send_time_may_take_any_time() {
    let (mut upstream, mut downstream) = ends(&roomy(), &[3_000], |_, _| false);
    let hash = flow(0, None).hash;
    let packet = Observation { flow: hash, length: 100, ..Observation::default() };
    for _ in 0..30 {
        upstream.update(&packet);
        downstream.update(&packet);
    }
    let ends = (upstream, downstream);
    for (by, estimator) in [(By::All, "joint"), (By::Flow, "joint"), (By::Flow, "min")] {
        let found = ask(&ends, by, estimator, &[flow(0, None)]).remove(0);
        let delay = found.delay.unwrap();
        assert_eq!((delay.mean().as_nanos(), delay.half_width_ns), (2000, None), "{estimator}");
        let reason = found.reason.unwrap();
        assert!(reason.contains("30 packets without") || reason.contains("30 of its"), "{reason}");
    }
}

/// Its cells hold delays of other flows, none of which is its own.
#[test]
fn a_flow_without_a_send_time_has_no_mean() {
    let crowded = SdsConfig::new(2, 8).unwrap();
    let sizes = [20; 12];
    let (mut upstream, mut downstream) = ends(&crowded, &sizes, |_, _| false);
    let mut flows: Vec<KnownFlow> = (0..12).map(|number| flow(number, Some(20))).collect();
    for number in 100..140 {
        let hash = flow(number, None).hash;
        let packet = Observation { flow: hash, length: 100, ..Observation::default() };
        upstream.update(&packet);
        downstream.update(&packet);
        flows.push(flow(number, None));
    }
    for estimator in ["joint", "min"] {
        let found = ask(&(upstream.clone(), downstream.clone()), By::Flow, estimator, &flows);
        for (number, estimate) in found.iter().enumerate().filter(|(number, _)| *number >= 12) {
            let is_bare = estimate.delay.is_some_and(|delay| delay.half_width_ns.is_none());
            assert!(!is_bare && estimate.reason.is_some(), "{estimator} {number}: {estimate:?}");
        }
    }
}

/// Four of seven packets have a send time: their mean is hardly that of all. And of a flow whose size is guessed, in
/// cells that it shares, nobody knows which packets these are: one in eleven such means was off by more than half.
#[test]
fn a_mean_that_lacks_many_packets_or_an_unknown_part_is_not_stated() {
    let bare = |packets: Option<u64>, config: SdsConfig, flows: u16| {
        let sizes = vec![4; usize::from(flows)];
        let (mut upstream, mut downstream) = ends(&config, &sizes, |_, _| false);
        for number in (0..flows).step_by(3) {
            let hash = flow(number, None).hash;
            let packet = Observation { flow: hash, length: 100, ..Observation::default() };
            for _ in 0..if packets.is_some() { 3 } else { 1 } {
                upstream.update(&packet);
                downstream.update(&packet);
            }
        }
        let flows: Vec<KnownFlow> = (0..flows).map(|number| flow(number, packets)).collect();
        let found = ["joint", "min"]
            .map(|name| ask(&(upstream.clone(), downstream.clone()), By::Flow, name, &flows));
        // Those without an interval, and those of them that are off by more than half.
        found.map(|found| {
            let bare = |(number, one): (u32, &Estimate)| {
                let delay = one.delay.filter(|delay| delay.half_width_ns.is_none())?;
                Some((delay.mean_ns() / (2000.0 * f64::from(number + 1)) - 1.0).abs() > 0.5)
            };
            let bare: Vec<bool> = (0..).zip(&found).filter_map(bare).collect();
            (bare.len(), bare.iter().filter(|&&is_far| is_far).count())
        })
    };
    assert_eq!(bare(Some(7), roomy(), 1), [(0, 0); 2]);
    let crowded = bare(None, SdsConfig::new(2, 16).unwrap(), 30);
    assert!(crowded.iter().all(|&(_, far)| far == 0), "{crowded:?}");
    // A flow that is alone in its cells: four of five.
    assert_eq!(bare(None, roomy(), 1), [(1, 0); 2]);
}

#[test]
fn weights_drown_others_and_are_divided_out() {
    let crowded = SdsConfig::new(1, 1).unwrap();
    let plain = ends(&crowded, &[100, 100], |flow, index| flow == 1 && index < 10);
    let weighted = ends(&crowded.with_weights(&[1, 1000]).unwrap(), &[100, 100], |flow, index| {
        flow == 1 && index < 10
    });
    let mean = |ends: &(Sds, Sds)| {
        let estimate = ask(ends, By::Flow, "min", &[flow(1, Some(100))]).remove(0);
        (estimate.evidence.lost, estimate.delay.unwrap().mean().as_nanos())
    };
    assert_eq!(mean(&plain), (Some(10), 2947));
    assert_eq!(mean(&weighted), (Some(10), 3998));
}

/// Counts at the ends of what 64 bits hold, as a hostile sender may set them.
#[test]
fn absurd_counts_do_not_panic() {
    let mut bytes = Writer::new();
    SdsConfig::new(1, 2).unwrap().encode(&mut bytes);
    bytes.raw(&[0xff; 16 + 2 * Cell::BYTES]);
    let bytes = bytes.into_bytes();
    let absurd = Sds::decode(&mut Reader::new(&bytes)).unwrap();
    let ends = (absurd.clone(), absurd);
    for estimator in Sds::ESTIMATORS {
        for by in [By::All, By::Flow, By::Prefix { v4: 8, v6: 8 }] {
            let flows = [flow(0, None), flow(1, Some(u64::MAX)), flow(2, Some(0))];
            assert!(!ask(&ends, by, estimator, &flows).is_empty());
        }
    }
}
