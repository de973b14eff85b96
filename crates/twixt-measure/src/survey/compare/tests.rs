//! Small captures with both directions, read the way real ones are.

use twixt_model::{Timestamp, mix};

use twixt_model::{FlowHash, PacketDigest};

use super::super::point::{FlowEnds, Passage, Sighting};
use super::*;

/// A flow, its packets, and what happens to them between the points.
#[derive(Clone, Copy)]
struct Flow {
    number: u64,
    heading: Heading,
    delay_ns: i64,
    /// What all packets but the first take in addition.
    queue_ns: i64,
    hops: u8,
    packets: u64,
    /// Whether the capture files say what came in and what went out.
    metadata: bool,
    /// Whether its packets arrive at the second point.
    arrives: bool,
}

const FLOW: Flow = Flow {
    number: 1,
    heading: Heading::Downstream,
    delay_ns: 1_000_000,
    queue_ns: 0,
    hops: 1,
    packets: 5,
    metadata: false,
    arrives: true,
};

fn flow_hash(number: u64, heading: Heading) -> FlowHash {
    FlowHash(mix(2 * number + u64::from(heading == Heading::Upstream)))
}

/// Both points' surveys, with the downstream clock ahead by `offset_ns`.
fn survey(flows: &[Flow], offset_ns: i64) -> (PointSurvey, PointSurvey) {
    let mut points = [PointSurvey::new(), PointSurvey::new()];
    for flow in flows {
        // Host 2n is upstream, host 2n + 1 downstream; flows of number 100 and above share hosts.
        let host = if flow.number >= 100 { 2 } else { 2 * flow.number };
        let (source, destination) = match flow.heading {
            Heading::Downstream => (host, host + 1),
            Heading::Upstream => (host + 1, host),
        };
        let ends = FlowEnds {
            reverse: flow_hash(flow.number, flow.heading.opposite()),
            source,
            destination,
            stays_local: false,
        };
        let (first, second) = if flow.heading == Heading::Downstream { (0, 1) } else { (1, 0) };
        for packet in 0..flow.packets {
            let sent_ns = packet as i64 * 10_000_000;
            let digest = PacketDigest(mix(flow_hash(flow.number, flow.heading).0 ^ packet));
            let mut see = |point: usize, true_ns: i64, ttl: u8, passage: Passage| {
                let time = Timestamp::from_nanos(true_ns + if point == 1 { offset_ns } else { 0 });
                let passage = flow.metadata.then_some(passage);
                let flow = flow_hash(flow.number, flow.heading);
                points[point].saw_frame(time);
                let (length, is_fragment) = (100, false);
                let sighting = Sighting { time, digest, flow, ttl, passage, length, is_fragment };
                points[point].observe(&sighting, || ends);
            };
            see(first, sent_ns, 64, Passage::Out);
            if flow.arrives {
                let queue_ns = if packet == 0 { 0 } else { flow.queue_ns };
                see(second, sent_ns + flow.delay_ns + queue_ns, 64 - flow.hops, Passage::In);
            }
        }
    }
    let [upstream, downstream] = points;
    (upstream, downstream)
}

#[track_caller]
fn check(flows: &[Flow], offset_ns: i64, decided_by: Method) {
    let (upstream, downstream) = survey(flows, offset_ns);
    let comparison = compare(&upstream, &downstream).expect("they have packets in common");
    assert_eq!(comparison.decided_by, decided_by);
    for flow in flows {
        let verdicts = if flow.heading == Heading::Downstream {
            &comparison.upstream
        } else {
            &comparison.downstream
        };
        let none =
            || FlowEnds { reverse: FlowHash(0), source: 999, destination: 998, stays_local: false };
        let heading = verdicts.heading(flow_hash(flow.number, flow.heading), none);
        assert_eq!(heading, Some(flow.heading), "flow {}", flow.number);
    }
}

const BACK: Flow = Flow { heading: Heading::Upstream, ..FLOW };
const YEARS_NS: i64 = 100_000_000_000_000_000;

#[test]
fn a_router_in_between_lowers_the_time_to_live_whatever_the_clocks() {
    for offset_ns in [0, 5_000_000_000, -5_000_000_000, YEARS_NS, -YEARS_NS] {
        check(&[FLOW, BACK, Flow { number: 2, ..BACK }], offset_ns, Method::Ttl);
    }
}

#[test]
fn without_a_router_opposite_flows_tell_whatever_the_clocks() {
    let wire = |flow: Flow| Flow { hops: 0, ..flow };
    for offset_ns in [0, 5_000_000_000, -5_000_000_000, YEARS_NS, -YEARS_NS] {
        check(
            &[wire(FLOW), wire(BACK), wire(Flow { number: 2, ..BACK })],
            offset_ns,
            Method::DelaySign,
        );
    }
}

#[test]
fn a_quick_flow_beside_a_slow_one_goes_the_same_way() {
    let wire = |flow: Flow| Flow { hops: 0, ..flow };
    // A queue in one direction only: most delays there are large, the smallest are not.
    let slow = wire(Flow { delay_ns: 13_000_000, queue_ns: 350_000_000, ..FLOW });
    let back = wire(Flow { delay_ns: 13_000_000, ..BACK });
    let quick = wire(Flow { number: 5, delay_ns: 13_100_000, ..FLOW });
    check(&[slow, back, quick], 0, Method::DelaySign);
}

#[test]
fn without_an_opposite_flow_the_sign_tells() {
    check(&[Flow { hops: 0, ..FLOW }, Flow { hops: 0, number: 2, ..BACK }], 0, Method::DelaySign);
}

#[test]
fn with_clocks_years_apart_and_nothing_else_the_order_of_the_captures_counts() {
    check(&[Flow { hops: 0, ..FLOW }], -YEARS_NS, Method::CaptureOrder);
}

#[test]
fn what_came_in_and_what_went_out_goes_before_all() {
    let with_metadata = |flow: Flow| Flow { metadata: true, ..flow };
    check(&[with_metadata(FLOW), with_metadata(BACK)], 0, Method::Metadata);
    // A flow that changes no time to live follows its group although its delay seems negative.
    let wire = Flow { hops: 0, number: 3, delay_ns: -500, ..with_metadata(FLOW) };
    check(
        &[
            with_metadata(FLOW),
            with_metadata(Flow { number: 4, ..FLOW }),
            with_metadata(BACK),
            wire,
        ],
        0,
        Method::Metadata,
    );
}

#[test]
fn a_flow_that_was_lost_whole_follows_its_opposite_flow_and_then_its_addresses() {
    let lost = Flow { arrives: false, ..FLOW };
    check(&[lost, BACK], 0, Method::Ttl);
    let same_hosts = Flow { number: 100, ..FLOW };
    check(
        &[same_hosts, Flow { number: 101, ..same_hosts }, Flow { number: 102, ..lost }],
        0,
        Method::Ttl,
    );
}

#[test]
fn a_flow_of_unknown_addresses_follows_the_others_if_they_go_one_way() {
    let stranger = Flow { number: 7, arrives: false, ..FLOW };
    let ends =
        || FlowEnds { reverse: FlowHash(0), source: 14, destination: 15, stays_local: false };
    for (others, unknown, heading) in
        [(&[FLOW][..], 0, Some(Heading::Downstream)), (&[FLOW, BACK][..], 1, None)]
    {
        let (upstream, downstream) = survey(&[others, &[stranger]].concat(), 0);
        let comparison = compare(&upstream, &downstream).unwrap();
        assert_eq!(comparison.unknown_flows(), unknown);
        assert_eq!(comparison.upstream.heading(flow_hash(7, Heading::Downstream), ends), heading);
    }
}

#[test]
fn captures_without_a_common_packet_are_not_compared() {
    let (upstream, _) = survey(&[FLOW], 0);
    let (_, downstream) = survey(&[Flow { number: 9, ..FLOW }], 0);
    assert!(compare(&upstream, &downstream).is_none());
}

#[test]
fn two_directions_bound_the_clock_difference() {
    let (upstream, downstream) =
        survey(&[FLOW, Flow { delay_ns: 3_000_000, ..BACK }], 5_000_000_000);
    let clock = compare(&upstream, &downstream).unwrap().clock().unwrap();
    // Delays of 1 ms and 3 ms: the guess is off by half their difference, within half their sum.
    assert_eq!(clock.offset.as_nanos(), 5_000_000_000 - 1_000_000);
    assert_eq!(clock.error_bound.unwrap().as_nanos(), 2_000_000);
}

#[test]
fn one_direction_tells_of_clocks_only_what_no_delay_explains() {
    let clock = |offset_ns| {
        let (upstream, downstream) = survey(&[FLOW], offset_ns);
        compare(&upstream, &downstream).unwrap().clock()
    };
    assert_eq!(clock(0), None);
    let ahead = clock(-2_000_000).unwrap();
    assert_eq!((ahead.offset.as_nanos(), ahead.error_bound), (-1_000_000, None));
    assert_eq!(clock(YEARS_NS).unwrap().offset.as_nanos(), YEARS_NS + 1_000_000);
}

#[test]
fn the_opposite_segment_has_opposite_headings_and_delays() {
    let (upstream, downstream) = survey(&[FLOW, Flow { delay_ns: 3_000_000, ..BACK }], 0);
    let opposite = compare(&upstream, &downstream).unwrap().opposite();
    assert_eq!(opposite.downstream_delays.unwrap().min.as_nanos(), 3_000_000);
    let none = || FlowEnds { reverse: FlowHash(0), source: 0, destination: 0, stays_local: false };
    let heading = opposite.upstream.heading(flow_hash(1, Heading::Upstream), none);
    assert_eq!(heading, Some(Heading::Downstream));
}
