use twixt_model::{Detail, Observation, PacketDigest, Timestamp};

use super::*;
use crate::cnf::CnfConfig;
use crate::synopsis::{Synopsis, TwoPoint};

/// Packets of (flow, digest, upstream time in ns, delay in ns or lost).
type Packet = (u16, u64, i64, Option<i64>);

fn config(settings: &str) -> CnfConfig {
    toml::from_str(settings).unwrap()
}

fn pair_of(config: &CnfConfig, packets: &[Packet]) -> (Cnf, Cnf) {
    let (mut upstream, mut downstream) = (Cnf::new(config), Cnf::new(config));
    for &(flow, digest, sent_ns, delay_ns) in packets {
        let key = FlowKey { source_port: flow, protocol: 17, ..FlowKey::default() };
        let detail = Detail { key, ..Detail::default() };
        let seen = |time_ns| Observation {
            time: Timestamp::from_nanos(time_ns),
            digest: PacketDigest(digest),
            flow: twixt_model::FlowHash(u64::from(flow)),
            length: 100,
            ..Observation::default()
        };
        upstream.update_detailed(&seen(sent_ns), &detail);
        if let Some(delay_ns) = delay_ns {
            downstream.update_detailed(&seen(sent_ns + delay_ns), &detail);
        }
    }
    (upstream, downstream)
}

/// Mean delay, delays used and packets lost by scope.
#[track_caller]
fn check(
    settings: &str,
    by: By,
    estimator: &str,
    packets: &[Packet],
    expected: &[(&str, Option<i64>, u64, Option<u64>)],
) {
    let (upstream, downstream) = pair_of(&config(settings), packets);
    let about = Question::about(Span::at(Timestamp::from_nanos(0)));
    let question = Question { by, estimator: Some(estimator), ..about };
    let pair = Pair { upstream: &upstream, downstream: &downstream };
    let shown: Vec<_> = Cnf::estimate(pair, &question)
        .into_iter()
        .map(|estimate| {
            let mean = estimate.delay.map(|delay| delay.mean().as_nanos());
            let Evidence { used, lost, .. } = estimate.evidence;
            (estimate.scope.to_string(), mean, used, lost)
        })
        .collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|&(scope, mean, used, lost)| (scope.to_owned(), mean, used, lost))
        .collect();
    assert_eq!(shown, expected);
}

const ONE: &str = "udp 0.0.0.0:1 > 0.0.0.0:0";
const TWO: &str = "udp 0.0.0.0:2 > 0.0.0.0:0";
const EVERY: &str = "sampling = 1.0";

/// Flow 1 from 0 to 40, flow 2 within it.
const PACKETS: [Packet; 5] = [
    (1, 1, 0, Some(10)),
    (2, 2, 10, Some(20)),
    (1, 3, 20, Some(12)),
    (2, 4, 30, Some(30)),
    (1, 5, 40, Some(40)),
];

#[test]
fn endpoint_takes_the_flows_own_two_delays() {
    check(
        EVERY,
        By::Flow,
        "endpoint",
        &PACKETS,
        &[(ONE, Some(25), 2, Some(0)), (TWO, Some(25), 2, Some(0))],
    );
}

#[test]
fn multiflow_takes_the_ends_of_all_flows_in_between() {
    // Four delays stand for the three packets of the first; no more than these were used.
    check(
        EVERY,
        By::Flow,
        "multiflow",
        &PACKETS,
        &[(ONE, Some(25), 3, Some(0)), (TWO, Some(25), 2, Some(0))],
    );
    check(EVERY, By::All, "multiflow", &PACKETS, &[("all", Some(25), 5, Some(0))]);
}

#[test]
fn hybrid_looks_at_the_true_size() {
    // Five packets are above the threshold when all are metered, and two stand for two hundred
    // when one in a hundred is.
    let mut packets = PACKETS.to_vec();
    packets.extend([(1, 6, 15, Some(7)), (1, 7, 16, Some(7))]);
    packets.sort_by_key(|packet| packet.2);
    check(
        EVERY,
        By::Flow,
        "hybrid",
        &packets,
        &[(ONE, Some(25), 4, Some(0)), (TWO, Some(25), 2, Some(0))],
    );
    check(
        EVERY,
        By::Flow,
        "hybrid",
        &PACKETS,
        &[(ONE, Some(25), 2, Some(0)), (TWO, Some(25), 2, Some(0))],
    );
}

#[test]
fn a_lost_end_leaves_the_other_and_a_lost_flow_is_not_known() {
    let packets = [(1, 1, 0, None), (1, 3, 20, Some(50)), (2, 4, 30, None)];
    check(
        EVERY,
        By::Flow,
        "endpoint",
        &packets,
        &[(ONE, Some(50), 1, Some(1)), (TWO, None, 0, Some(1))],
    );
}

/// Metered packets at 100, 200 and 300 stand for a flow from 0 to 400: what passed then is a part of its
/// deviation, and not of its mean.
#[test]
fn the_deviation_is_that_of_the_flows_whole_time() {
    let delays = [(0, 9), (50, 900), (100, 10), (200, 20), (300, 30), (350, 900), (401, 9)];
    let packet = |&(time, delay): &(i64, i64)| {
        let flow = if (100..=300).contains(&time) { 1 } else { 10 + time as u16 };
        (flow, time as u64, time, Some(delay))
    };
    let (upstream, downstream) =
        pair_of(&config(EVERY), &delays.iter().map(packet).collect::<Vec<_>>());
    let pairs = upstream.associated_with(&downstream);
    let (up, down) = (upstream.records(), downstream.records());
    let records = PairedRecords { upstream: &up, downstream: &down, pairs: &pairs };
    let about = |packet_rate| FlowQuestion {
        by: By::Flow,
        estimator: RecordEstimator::Multiflow,
        packet_rate,
        outliers: 0.0,
        span: Span::at(Timestamp::from_nanos(0)),
    };
    let found = |packet_rate| {
        let estimates = conclude(&records, &about(packet_rate));
        let flow = estimates.iter().find(|estimate| estimate.scope.to_string() == ONE).unwrap();
        (flow.delay.unwrap().mean_ns(), flow.delay.unwrap().deviation_ns.unwrap().round())
    };
    // Ends of records within: 10 and 30; around them also 9 and twice 900, whose variance is 234 330.
    assert_eq!(found(1.0), (20.0, 14.0));
    assert_eq!(found(0.01), (20.0, 484.0));
}

#[test]
fn nothing_selected_is_nothing_known() {
    check("sampling = 1e-9", By::All, "hybrid", &PACKETS, &[("all", None, 0, Some(0))]);
    check("sampling = 1e-9", By::Flow, "hybrid", &PACKETS, &[]);
}

#[test]
fn timing_alone_finds_the_same_delays() {
    let ms = |packet: &Packet| {
        let (flow, digest, sent, delay) = *packet;
        (flow, digest, sent * 1_000_000, delay.map(|delay| delay * 100_000))
    };
    let packets: Vec<Packet> = PACKETS.iter().map(ms).collect();
    check(
        "sampling = 1.0\nassociate = \"timing\"",
        By::Flow,
        "endpoint",
        &packets,
        &[(ONE, Some(2_500_000), 2, Some(0)), (TWO, Some(2_500_000), 2, Some(0))],
    );
}

#[test]
fn both_points_select_the_same_packets_and_the_rate_is_what_was_asked() {
    // 3 sigma of a binomial share of 20 000 at 0.1 is 0.0064.
    for settings in ["sampling = 0.1", "sampling = 0.1\nselect = \"flow\""] {
        let packets: Vec<Packet> = (0..20_000_u64)
            .map(|number| (number as u16, twixt_model::mix(number), number as i64, Some(5)))
            .collect();
        let (upstream, downstream) = pair_of(&config(settings), &packets);
        assert_eq!(upstream.selected(), downstream.selected());
        let share = upstream.selected() as f64 / 20_000.0;
        assert!((share - 0.1).abs() < 0.0064, "{settings}: {share}");
    }
}
