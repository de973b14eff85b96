//! All traffic, flows and prefixes of small sketches.

use twixt_model::{
    ClassId, Delay, Detail, FlowHash, FlowKey, GroupId, Observation, PacketDigest, Scope, Span,
    Timestamp, mix,
};

use super::*;
use crate::codec::{Reader, Writer};
use crate::lds::LdsConfig;
use crate::question::{By, KnownFlow};
use crate::synopsis::{Synopsis, TwoPoint};

/// The printed one answers nothing.
const WORKING: [&str; 2] = ["joint", "paper"];
const YEARS_NS: i64 = 315_360_000_000_000_000;

fn flow(number: u8, packets: Option<u64>) -> KnownFlow {
    let address = std::net::IpAddr::from([10, 0, number / 2, number]);
    let key = FlowKey { source: address, protocol: 17, ..FlowKey::default() };
    KnownFlow {
        hash: FlowHash(mix(u64::from(number))),
        key,
        group: GroupId::default(),
        packets,
        class: ClassId(0),
    }
}

/// Flows 0, 1, 2, ... of so many packets, with a delay of 1000 ns times the flow's number plus
/// one; `is_lost` says which packets (flow, index) do not arrive.
fn ends(config: &LdsConfig, flows: &[u64], is_lost: impl Fn(u8, u64) -> bool) -> (Lds, Lds) {
    let (mut upstream, mut downstream) = (Lds::new(config), Lds::new(config));
    for (number, &packets) in flows.iter().enumerate() {
        let number = number as u8;
        for index in 0..packets {
            let sent_ns = index as i64 * 777;
            let delay_ns = 1000 * (i64::from(number) + 1);
            let packet = Observation {
                time: Timestamp::from_nanos(sent_ns),
                digest: PacketDigest(mix(index << 8 | u64::from(number))),
                flow: flow(number, None).hash,
                length: 100,
                ..Observation::default()
            };
            upstream.update(&packet);
            if !is_lost(number, index) {
                let time = Timestamp::from_nanos(sent_ns + delay_ns);
                downstream.update(&Observation { time, ..packet });
            }
        }
    }
    (upstream, downstream)
}

fn ask(ends: &(Lds, Lds), by: By, estimator: &str, flows: &[KnownFlow]) -> Vec<Estimate> {
    let question = Question {
        by,
        flows,
        estimator: Some(estimator),
        ..Question::about(Span::at(Timestamp::from_nanos(0)))
    };
    Lds::estimate(Pair { upstream: &ends.0, downstream: &ends.1 }, &question)
}

fn roomy() -> LdsConfig {
    LdsConfig::new(500, 1, &[1.0; 4]).unwrap()
}

/// Estimates as (packets, used, lost, mean delay).
#[track_caller]
fn check(estimates: &[Estimate], expected: &[(u64, u64, Option<u64>, Option<i64>)]) {
    let show = |estimate: &Estimate| {
        let evidence = estimate.evidence;
        let mean = estimate.delay.map(|delay| delay.mean().as_nanos());
        (evidence.packets, evidence.used, evidence.lost, mean)
    };
    assert_eq!(estimates.iter().map(show).collect::<Vec<_>>(), expected);
    // What is not known has a reason.
    for estimate in estimates {
        let delay = estimate.delay;
        let all = delay
            .is_some_and(|delay| delay.deviation_ns.is_some() && delay.half_width_ns.is_some());
        assert!(
            all && estimate.evidence.lost.is_some() || estimate.reason.is_some(),
            "{estimate:?}"
        );
    }
}

#[test]
fn flows_are_told_apart_by_either_estimator() {
    let ends = ends(&roomy(), &[5, 200, 30], |_, _| false);
    for sizes in [[None; 3], [Some(5), Some(200), Some(30)]] {
        let flows: Vec<KnownFlow> =
            sizes.iter().zip(0..).map(|(&size, number)| flow(number, size)).collect();
        for estimator in WORKING {
            check(
                &ask(&ends, By::Flow, estimator, &flows),
                &[
                    (5, 5, Some(0), Some(1000)),
                    (200, 200, Some(0), Some(2000)),
                    (30, 30, Some(0), Some(3000)),
                ],
            );
        }
    }
}

#[test]
fn a_flow_that_lost_a_packet_has_no_delay_with_one_cell_per_row() {
    let ends = ends(&roomy(), &[5, 200], |flow, index| flow == 1 && index < 7);
    let flows = [flow(1, Some(200)), flow(0, Some(5)), flow(9, None)];
    for estimator in WORKING {
        let estimates = ask(&ends, By::Flow, estimator, &flows);
        check(
            &estimates,
            &[(200, 0, Some(7), None), (5, 5, Some(0), Some(1000)), (0, 0, Some(0), None)],
        );
        assert!(estimates[0].reason.as_ref().unwrap().contains("no usable cell"));
        assert!(estimates[2].reason.as_ref().unwrap().contains("no packets"));
    }
}

#[test]
fn several_cells_per_row_outlive_a_loss_and_give_a_deviation() {
    let config = LdsConfig::new(500, 5, &[1.0; 2]).unwrap();
    let ends = ends(&config, &[500], |_, index| index == 3);
    for estimator in WORKING {
        let estimates = ask(&ends, By::Flow, estimator, &[flow(0, Some(500))]);
        let (evidence, delay) = (estimates[0].evidence, estimates[0].delay.unwrap());
        assert_eq!((evidence.packets, evidence.lost), (500, Some(1)));
        assert_eq!((delay.mean().as_nanos(), delay.deviation_ns), (1000, Some(0.0)));
        assert!((1..500).contains(&evidence.used), "{evidence:?}");
    }
}

#[test]
fn prefixes_weigh_flows_by_their_packets() {
    let ends = ends(&roomy(), &[10, 30, 7, 5], |flow, _| flow == 3);
    let flows: Vec<KnownFlow> =
        [10, 30, 7, 5].iter().zip(0..).map(|(&size, number)| flow(number, Some(size))).collect();
    let estimates = ask(&ends, By::Prefix { v4: 24, v6: 48 }, "paper", &flows);
    check(&estimates, &[(40, 40, Some(0), Some(1750)), (12, 7, Some(5), Some(3000))]);
    assert_eq!(estimates[0].scope.to_string(), "10.0.0.0/24 > 0.0.0.0/24");
    assert!(estimates[1].reason.as_ref().unwrap().contains("1 of 2 flows without a delay"));
}

#[test]
fn all_traffic_is_exact_without_loss() {
    let config = LdsConfig::new(3, 1, &[0.5, 1.0]).unwrap();
    let whole = ends(&config, &[5, 200, 30], |_, _| false);
    let estimates = ask(&whole, By::All, "joint", &[]);
    check(&estimates, &[(235, 235, Some(0), Some(2106))]);
    assert_eq!(estimates[0].delay.unwrap().half_width_ns, Some(0.0));
    let lossy = ends(&config, &[5, 200, 30], |_, _| true);
    check(&ask(&lossy, By::All, "joint", &[]), &[(235, 0, Some(235), None)]);
}

/// A queue that is full delays and drops: flows that lost nothing saw little of it.
#[test]
fn a_mean_of_all_traffic_is_not_made_of_a_sliver() {
    let every_tenth = |flow: u8, index: u64| flow > 0 && index.is_multiple_of(10);
    let heavy = ends(&roomy(), &[7, 700, 742], every_tenth);
    let estimate = &ask(&heavy, By::All, "joint", &[])[0];
    check(std::slice::from_ref(estimate), &[(1449, 0, Some(145), None)]);
    assert!(estimate.reason.as_ref().unwrap().contains("only 7 of 1304 packets"), "{estimate:?}");
    let light = ends(&roomy(), &[700, 700, 42], |flow, index| flow == 1 && index == 0);
    check(&ask(&light, By::All, "joint", &[]), &[(1442, 742, Some(1), Some(1113))]);
}

#[test]
fn a_flow_that_is_listed_twice_is_answered_once() {
    let ends = ends(&roomy(), &[5, 200], |_, _| false);
    let flows = [flow(1, None), flow(1, None), flow(0, None)];
    let estimates = ask(&ends, By::Flow, "joint", &flows);
    check(&estimates, &[(200, 200, Some(0), Some(2000)), (5, 5, Some(0), Some(1000))]);
    assert_eq!(ask(&ends, By::Flow, "joint", &[]), []);
}

#[test]
fn clocks_years_apart_cost_no_precision() {
    let (upstream, mut downstream) = ends(&roomy(), &[5, 200], |_, _| false);
    for cell in 0..downstream.cells.len() {
        downstream.change_sums(cell, |sums| {
            let shift = sums.packets.wrapping_mul(YEARS_NS as u64);
            sums.times = sums.times.wrapping_add(shift);
        });
    }
    let flows = [flow(1, Some(200))];
    for estimator in WORKING {
        let question = Question {
            by: By::Flow,
            flows: &flows,
            estimator: Some(estimator),
            reference: Delay::from_nanos(YEARS_NS + 300),
            ..Question::about(Span::at(Timestamp::from_nanos(0)))
        };
        let pair = Pair { upstream: &upstream, downstream: &downstream };
        let estimates = Lds::estimate(pair, &question);
        assert_eq!(estimates[0].delay.unwrap().mean().as_nanos(), YEARS_NS + 2000);
    }
}

/// Counts and sums at the ends of what 64 bits hold, as a hostile sender may set them.
#[test]
fn absurd_counts_do_not_panic() {
    let config = LdsConfig::new(4, 3, &[1.0, 0.01]).unwrap();
    for (packets, time) in [(u64::MAX, 0), (u64::MAX, 1 << 63), (1 << 63, u64::MAX), (1, 1 << 63)] {
        let (mut upstream, mut downstream) = (Lds::new(&config), Lds::new(&config));
        // One of so few cells may count more than a cell can.
        for cell in [0, 1] {
            let packets = if cell == 0 { packets } else { 7 };
            upstream.change_sums(cell, |sums| sums.packets = packets);
            downstream.change_sums(cell, |sums| (sums.packets, sums.times) = (packets, time));
        }
        downstream.change_sums(2, |sums| sums.packets = 1);
        let flows = [flow(0, None), flow(1, Some(u64::MAX)), flow(2, Some(0))];
        for estimator in Lds::ESTIMATORS {
            for by in [By::All, By::Flow, By::Prefix { v4: 8, v6: 8 }] {
                let estimates = ask(&(upstream.clone(), downstream.clone()), by, estimator, &flows);
                assert!(!estimates.is_empty());
            }
        }
    }
}

#[test]
fn length_and_bytes_of_a_flow_are_bounded_from_above() {
    let (upstream, _) = ends(&roomy(), &[5, 200, 30], |_, _| false);
    for (number, packets) in [(0, 5), (1, 200), (2, 30), (9, 0)] {
        let hash = flow(number, None).hash;
        assert_eq!(upstream.flow_packets_at_most(hash), packets);
        assert_eq!(upstream.flow_bytes_at_most(hash), Some(packets * 100));
    }
    let crowded = LdsConfig::new(1, 1, &[1.0, 0.5]).unwrap();
    let (upstream, _) = ends(&crowded, &[5, 200, 30], |_, _| false);
    assert_eq!(upstream.flow_packets_at_most(flow(0, None).hash), 235);
    let sampled = LdsConfig::new(500, 1, &[0.5]).unwrap();
    let (upstream, _) = ends(&sampled, &[5, 200, 30], |_, _| false);
    assert!(upstream.flow_packets_at_most(flow(1, None).hash) >= 200);
    assert_eq!(upstream.flow_bytes_at_most(flow(1, None).hash), None);
}

#[test]
fn lengths_and_losses_of_weighted_flows_are_divided_by_their_weight() {
    let config = roomy().with_weights(&[25]).unwrap();
    let ends = ends(&config, &[5, 200], |flow, index| flow == 1 && index < 7);
    for sizes in [[None; 2], [Some(5), Some(200)]] {
        let flows = [flow(0, sizes[0]), flow(1, sizes[1])];
        for estimator in WORKING {
            let estimates = ask(&ends, By::Flow, estimator, &flows);
            check(&estimates, &[(5, 5, Some(0), Some(1000)), (200, 0, Some(7), None)]);
            assert_eq!(estimates[1].evidence.bytes, Some(20_000));
        }
    }
    let all = &ask(&ends, By::All, "joint", &[])[0];
    assert_eq!((all.evidence.packets, all.evidence.lost, all.delay), (205, Some(7), None));
}

#[test]
fn a_table_of_large_flows_names_them_when_nobody_else_does() {
    let config = roomy().with_heavy_entries(2).unwrap();
    let (mut upstream, downstream) = (Lds::new(&config), Lds::new(&config));
    for (number, packets) in [(0, 30), (1, 200)] {
        let named = flow(number, None);
        let packet = Observation { flow: named.hash, length: 100, ..Observation::default() };
        let detail = Detail { key: named.key, ..Detail::default() };
        (0..packets).for_each(|_| upstream.update_detailed(&packet, &detail));
    }
    assert!(upstream.needs().detail && !Lds::new(&roomy()).needs().detail);
    let plain = Lds::new(&roomy()).state_bytes();
    assert!(upstream.state_bytes() > plain);
    let estimates = ask(&(upstream.clone(), downstream), By::Flow, "joint", &[]);
    check(&estimates, &[(200, 0, Some(200), None), (30, 0, Some(30), None)]);
    assert_eq!(estimates[0].scope, Scope::Flow(flow(1, None).key));
    let mut bytes = Writer::new();
    upstream.encode(&mut bytes);
    let bytes = bytes.into_bytes();
    assert_eq!(Lds::decode(&mut Reader::new(&bytes)).unwrap(), upstream);
    assert!(config.with_weights(&[2]).unwrap_err().contains("heavy_entries"));
}
