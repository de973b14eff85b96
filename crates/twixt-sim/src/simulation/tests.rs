use std::collections::{BTreeMap, HashMap, HashSet};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use twixt_model::Scope;

use super::*;
use twixt_model::quantity::{Nanoseconds, PacketRate};

fn config(flows: u32) -> Config {
    Config { flows, flow_size: "fixed:packets=20".parse().unwrap(), ..Config::default() }
}

fn run(config: &Config) -> Simulation {
    Simulation::run(config).unwrap()
}

/// What both points see, in one number.
fn hash_of(simulation: &Simulation) -> u64 {
    let mut hash = 0;
    for point in [Side::Upstream, Side::Downstream] {
        for (sighting, seen) in simulation.sightings(point).zip(simulation.observations(point)) {
            for word in [seen.time.as_nanos() as u64, seen.digest.0, seen.flow.0] {
                hash = mix(hash ^ word);
            }
            if let Some(frame) = simulation.frame(point, sighting) {
                for &byte in frame.bytes() {
                    hash = mix(hash ^ u64::from(byte));
                }
            }
        }
    }
    hash
}

/// The whole of a configuration that uses everything, so that a change of any draw is noticed.
fn everything(seed: u64) -> Config {
    Config {
        seed,
        flow_size: "pareto:shape=1.05,min=2.53,max=200000".parse().unwrap(),
        delay: "bimodal:fraction=0.6,first=200us,second=1500us,spread=0.35,jitter=0.5"
            .parse()
            .unwrap(),
        propagation: Nanoseconds(4_000_000),
        loss: "burst:rate=0.01,length=5".parse().unwrap(),
        reorder: "prefixes:share=0.1,rate=0.05".parse().unwrap(),
        clock: "offset=1ms,skew=10ppm".parse().unwrap(),
        reverse: "weibull:shape=0.6,scale=100us".parse().unwrap(),
        packets: Some(20_000),
        ..config(1000)
    }
}

#[test]
fn one_seed_gives_one_trace_everywhere() {
    // Pinned: if this changes, every published trace changes. Say so in the change log.
    assert_eq!(hash_of(&run(&everything(1))), GOLDEN, "of seed 1");
    assert_ne!(hash_of(&run(&everything(2))), GOLDEN, "of seed 2");
}

const GOLDEN: u64 = 15_168_261_757_672_322_672;

#[test]
fn models_do_not_disturb_each_other() {
    let plain = run(&config(200));
    let lossy = run(&Config { loss: "uniform:0.1".parse().unwrap(), ..config(200) });
    let skewed = run(&Config { clock: "offset=5s".parse().unwrap(), ..config(200) });
    assert!(plain.observations(Side::Upstream).eq(lossy.observations(Side::Upstream)));
    for (plain, lossy) in plain.packets().iter().zip(lossy.packets()) {
        assert!(lossy.true_delay().is_none_or(|delay| plain.true_delay() == Some(delay)));
    }
    assert_eq!(plain.packets(), skewed.packets());
}

#[test]
fn points_see_packets_in_order_of_their_clocks() {
    let simulation = run(&everything(3));
    for point in [Side::Upstream, Side::Downstream] {
        assert!(simulation.sightings(point).is_sorted_by_key(|sighting| sighting.time));
        let digests: HashSet<PacketDigest> =
            simulation.observations(point).map(|seen| seen.digest).collect();
        assert_eq!(digests.len(), simulation.sightings(point).len());
    }
    let simulation = &simulation;
    let entered = |direction| {
        simulation.packets().iter().filter(move |packet| simulation.direction(packet) == direction)
    };
    let delivered = |direction| entered(direction).filter(|packet| packet.true_delay().is_some());
    assert_eq!(
        simulation.sightings(Side::Downstream).len(),
        delivered(Direction::Forward).count() + entered(Direction::Return).count()
    );
    assert_eq!(entered(Direction::Forward).count(), 20_000);
}

/// Truth, computed again from what the two points see: packets are identified by their digests.
fn brute_force(simulation: &Simulation) -> BTreeMap<String, (u64, Vec<i64>)> {
    let times = |point| -> HashMap<u32, i64> {
        simulation.sightings(point).map(|seen| (seen.packet, seen.time.as_nanos())).collect()
    };
    let (up, down) = (times(Side::Upstream), times(Side::Downstream));
    let mut flows: BTreeMap<String, (u64, Vec<i64>)> = BTreeMap::new();
    for (index, packet) in (0_u32..).zip(simulation.packets()) {
        let flow = flows.entry(simulation.flow_key(packet.flow).to_string()).or_default();
        flow.0 += 1;
        if let (Some(up), Some(down)) = (up.get(&index), down.get(&index)) {
            let forward = simulation.direction(packet) == Direction::Forward;
            flow.1.push(if forward { down - up } else { up - down });
        }
    }
    flows
}

#[test]
fn truth_is_what_the_captures_say() {
    let simulation = run(&everything(4));
    let truth = simulation.truth();
    let mut expected = brute_force(&simulation);
    assert_eq!(truth.flows.len(), expected.len());
    for flow in &truth.flows {
        let (packets, mut delays) = expected.remove(&flow.scope.to_string()).unwrap();
        delays.sort_unstable();
        assert_eq!(flow.evidence.packets, packets);
        assert_eq!(flow.evidence.lost, Some(packets - delays.len() as u64));
        let Some(delay) = flow.delay else {
            assert!(delays.is_empty() && flow.reason.is_some());
            continue;
        };
        let n = delays.len() as f64;
        let mean = delays.iter().map(|&delay| delay as f64).sum::<f64>() / n;
        let square = delays.iter().map(|&delay| (delay as f64 - mean).powi(2)).sum::<f64>() / n;
        assert!((delay.mean_ns() - mean).abs() < 0.01);
        assert!((delay.deviation_ns.unwrap() - square.sqrt()).abs() < 0.01);
        let order = delay.order.unwrap();
        assert_eq!(order.p95.as_nanos(), delays[((0.95 * n) as usize).min(delays.len() - 1)]);
        assert_eq!(order.max.as_nanos(), *delays.last().unwrap());
    }
}

#[test]
fn the_aggregate_adds_up_the_flows() {
    let truth = run(&everything(5)).truth();
    let forward = |estimate: &&twixt_model::Estimate| match &estimate.scope {
        Scope::Flow(key) => key.source.to_string().starts_with("10."),
        _ => false,
    };
    let flows = || truth.flows.iter().filter(forward);
    assert_eq!(truth.all.evidence.packets, flows().map(|flow| flow.evidence.packets).sum());
    let sums = flows().filter_map(|flow| flow.delay).map(|delay| delay.sum_ns);
    assert_eq!(truth.all.delay.unwrap().sum_ns, sums.sum());
    assert!(truth.returning.unwrap().evidence.packets > 5_000);
}

#[test]
fn truth_is_written_as_rows() {
    let one = Config { flow_size: "fixed:packets=3".parse().unwrap(), ..config(1) };
    let check = |config: &Config, tail: &str| {
        let mut text = String::new();
        run(config).truth().write_csv(&mut text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], Truth::CSV_HEADER);
        assert!(lines[1].ends_with(tail), "{text}");
        assert_eq!(lines[1].matches(',').count(), lines[0].matches(',').count());
    };
    let constant = Config { delay: "constant:1us".parse().unwrap(), ..one.clone() };
    check(&constant, ",3,0,1000,0,1000,1000,1000,1000,1000");
    check(&Config { loss: "uniform:1".parse().unwrap(), ..one }, ",3,3,,,,,,,");
}

#[test]
fn clock_error_shows_in_delays_and_not_in_true_delays() {
    let simulation = run(&Config {
        delay: "constant:1ms".parse().unwrap(),
        clock: "offset=-2ms,skew=100ppm".parse().unwrap(),
        rate: PacketRate(1000),
        ..config(500)
    });
    for packet in simulation.packets() {
        assert_eq!(packet.true_delay(), Some(Delay::from_nanos(1_000_000)));
        let gained_ns = ((packet.entered_ns() + 1_000_000) as f64 / 1e4).round() as i64;
        let expected = Delay::from_nanos(1_000_000 - 2_000_000 + gained_ns);
        assert_eq!(simulation.observed_delay(packet), Some(expected));
    }
    // Ten seconds at 100 ppm: from -1 ms to about 0.
    let order = simulation.truth().all.delay.unwrap().order.unwrap();
    assert!(order.min.as_nanos() < -990_000 && order.max.as_nanos().abs() < 10_000);
}

/// Packets that come later than a successor of their flow.
fn overtaken(simulation: &Simulation) -> Vec<u32> {
    let mut highest: HashMap<u32, u32> = HashMap::new();
    let mut late = Vec::new();
    for sighting in simulation.sightings(Side::Downstream) {
        let packet = &simulation.packets()[sighting.packet as usize];
        let highest = highest.entry(packet.flow).or_insert(packet.sequence);
        if packet.sequence < *highest {
            late.push(packet.flow);
        }
        *highest = packet.sequence.max(*highest);
    }
    late
}

#[test]
fn reordering_afflicts_the_chosen_prefixes_only() {
    let base = Config { delay: "constant:1ms".parse().unwrap(), ..config(10_000) };
    assert!(overtaken(&run(&base)).is_empty());

    let reorder = "prefixes:share=0.1,rate=0.05".parse().unwrap();
    let simulation = run(&Config { reorder, ..base.clone() });
    let prefix_of = |flow: u32| twixt_model::Prefix::of(simulation.flow_key(flow).destination, 24);
    let late = overtaken(&simulation);
    let afflicted: HashSet<_> = late.iter().map(|&flow| prefix_of(flow)).collect();
    // A tenth of the 512 prefixes, rounded up. Of their packets 5 %, less those whose successor
    // is too far away: at most 1 in 8 gaps is a pause.
    assert_eq!(afflicted.len(), 52);
    let candidates = simulation.packets().iter();
    let candidates =
        candidates.filter(|packet| afflicted.contains(&prefix_of(packet.flow))).count() as f64;
    let share = late.len() as f64 / candidates;
    assert!((0.035..=0.053).contains(&share), "{share}");

    // Evenly: 1 % are chosen. Most have a successor within 500 us, half of the extent.
    let reorder = "uniform:rate=0.01,extent=1ms".parse().unwrap();
    let late = overtaken(&run(&Config { reorder, ..base })).len() as f64 / 200_000.0;
    assert!((0.006..0.01).contains(&late), "{late}");
}

#[test]
fn queues_lose_packets_under_overload_only() {
    let lost = |drain: &str| {
        let delay = format!("droptail:drain={drain},queue=100").parse().unwrap();
        run(&Config { delay, packet_size: "fixed:bytes=500".parse().unwrap(), ..config(2_000) })
            .truth()
            .all
            .evidence
            .lost
            .unwrap()
    };
    // 500 000 packets of 4000 bits a second are 2 Gbit/s.
    assert_eq!(lost("20gbit"), 0);
    // Half is carried, but for the queue that is left at the end. The trace has 40 000 packets.
    assert!(lost("1gbit").abs_diff(20_000) < 500, "{}", lost("1gbit"));
}

#[test]
fn return_traffic_answers_what_was_delivered() {
    let simulation = run(&Config {
        delay: "constant:1ms".parse().unwrap(),
        reverse: "constant:3ms".parse().unwrap(),
        propagation: Nanoseconds(500),
        ..config(100)
    });
    let truth = simulation.truth();
    let returning = truth.returning.unwrap();
    assert_eq!(returning.evidence.packets, 1000);
    assert_eq!(returning.delay.unwrap().mean().as_nanos(), 3_000_500);
    assert_eq!(truth.all.delay.unwrap().mean().as_nanos(), 1_000_500);
    assert_eq!(truth.flows.len(), 200);
    // Seen downstream first.
    let back = simulation.packets().last().unwrap();
    assert_eq!(simulation.direction(back), Direction::Return);
    let at = |point| simulation.seen_at(back, point).unwrap();
    assert_eq!((at(Side::Upstream) - at(Side::Downstream)).as_nanos(), 3_000_500);
}

#[test]
fn frames_are_valid_and_no_two_are_alike() {
    let simulation = run(&everything(6));
    for (point, forward_ttl, return_ttl) in [(Side::Upstream, 64, 63), (Side::Downstream, 63, 64)] {
        let mut seen = HashSet::new();
        for sighting in simulation.sightings(point) {
            let packet = &simulation.packets()[sighting.packet as usize];
            let frame = simulation.frame(point, sighting).unwrap();
            let forward = simulation.direction(packet) == Direction::Forward;
            let ttl = if forward { forward_ttl } else { return_ttl };
            check_frame(&frame, packet, &simulation.flow_key(packet.flow), ttl);
            assert!(seen.insert(frame.bytes().to_vec()), "{frame:?}");
        }
    }
}

/// An independent parser reads from the frame what the packet is.
#[track_caller]
fn check_frame(frame: &SimulatedFrame, packet: &SimulatedPacket, key: &FlowKey, ttl: u8) {
    assert_eq!(frame.wire_length(), packet.length + 14);
    // The payload that was cut is all zeros.
    let mut whole = frame.bytes().to_vec();
    whole.resize(frame.wire_length() as usize, 0);
    let sliced = SlicedPacket::from_ethernet(&whole).unwrap();
    let Some(NetSlice::Ipv4(ip)) = &sliced.net else { panic!("no IPv4") };
    let header = ip.header();
    assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum());
    assert_eq!(u32::from(header.total_len()), packet.length);
    assert_eq!((header.ttl(), header.protocol().0), (ttl, key.protocol));
    assert_eq!((std::net::IpAddr::V4(header.source_addr())), key.source);
    assert_eq!((std::net::IpAddr::V4(header.destination_addr())), key.destination);
    match sliced.transport.unwrap() {
        TransportSlice::Tcp(tcp) => {
            assert_eq!(frame.bytes().len(), 54);
            let sum = tcp.calc_checksum_ipv4(header.source(), header.destination()).unwrap();
            assert_eq!((key.protocol, tcp.checksum()), (protocol::TCP, sum));
            assert_eq!(
                (tcp.source_port(), tcp.destination_port()),
                (key.source_port, key.destination_port)
            );
        }
        TransportSlice::Udp(udp) => {
            assert_eq!(frame.bytes().len(), 50);
            let sum =
                udp.to_header().calc_checksum_ipv4(&header.to_header(), udp.payload()).unwrap();
            assert_eq!((key.protocol, udp.checksum()), (protocol::UDP, sum));
            assert_eq!(udp.payload()[..8], u64::from(packet.sequence).to_be_bytes());
        }
        other => panic!("neither TCP nor UDP: {other:?}"),
    }
}

#[test]
fn acknowledgements_are_of_what_was_sent() {
    let simulation = run(&Config { reverse: "constant:1ms".parse().unwrap(), ..config(50) });
    let mut expected: HashSet<(FlowKey, u32)> = HashSet::new();
    let (mut found, mut total) = (0, 0);
    // Upstream, an acknowledgement comes after what it acknowledges.
    for sighting in simulation.sightings(Side::Upstream) {
        let packet = &simulation.packets()[sighting.packet as usize];
        let key = simulation.flow_key(packet.flow);
        let frame = simulation.frame(Side::Upstream, sighting).unwrap();
        let whole = [frame.bytes(), &[0; 1500]].concat();
        let SlicedPacket { transport: Some(TransportSlice::Tcp(tcp)), .. } =
            SlicedPacket::from_ethernet(&whole).unwrap()
        else {
            continue;
        };
        let detail = simulation.detail(sighting);
        let numbers = detail.tcp.map(|fields| (fields.sequence, fields.acknowledgement));
        assert_eq!(detail.key, key);
        assert_eq!(numbers, Some((tcp.sequence_number(), tcp.acknowledgment_number())));
        if simulation.direction(packet) == Direction::Forward {
            expected.insert((key, tcp.sequence_number().wrapping_add(packet.payload_bytes())));
        } else {
            total += 1;
            found += u32::from(expected.contains(&(key.reversed(), tcp.acknowledgment_number())));
        }
    }
    assert!(total > 300);
    assert_eq!(found, total);
}

#[test]
fn long_flows_of_empty_packets_stay_distinguishable() {
    let simulation = run(&Config {
        flow_size: "fixed:packets=70000".parse().unwrap(),
        packet_size: "fixed:bytes=1".parse().unwrap(),
        ..config(1)
    });
    let frames: HashSet<Vec<u8>> = simulation
        .sightings(Side::Upstream)
        .filter_map(|sighting| simulation.frame(Side::Upstream, sighting))
        .map(|frame| frame.bytes().to_vec())
        .collect();
    assert_eq!(frames.len(), 70_000);
}

fn arrival(time_ns: i64, key: &str, frame: u64) -> Arrival {
    Arrival { time: Timestamp::from_nanos(time_ns), key: key.parse().unwrap(), length: 100, frame }
}

#[test]
fn a_trace_of_the_users_own_crosses_the_segment() {
    let (first, second) = ("tcp 10.0.0.1:1 > 10.0.1.1:2", "udp [2001:db8::1]:53 > [2001:db8::2]:9");
    let trace = [arrival(900, second, 7), arrival(500, first, 8), arrival(700, second, 9)];
    let config = Config { delay: "constant:1us".parse().unwrap(), ..Config::default() };
    let simulation = Simulation::with_arrivals(&config, trace).unwrap();
    let seen: Vec<(i64, u64, String)> = simulation
        .sightings(Side::Downstream)
        .map(|sighting| {
            assert!(simulation.frame(Side::Downstream, sighting).is_none());
            let packet = &simulation.packets()[sighting.packet as usize];
            let frame = simulation.original_frame(sighting.packet).unwrap();
            (sighting.time.as_nanos(), frame, simulation.flow_key(packet.flow).to_string())
        })
        .collect();
    let row = |time, frame, key: &str| (time, frame, key.to_owned());
    assert_eq!(seen, [row(1500, 8, first), row(1700, 9, second), row(1900, 7, second)]);
    assert_eq!(simulation.truth().flows.len(), 2);
}

#[test]
fn damaged_traces_are_refused() {
    let check = |config: &Config, times: &[i64], expected: SimulationConfigError| {
        let key = "tcp 10.0.0.1:1 > 10.0.1.1:2";
        let trace = times.iter().map(|&time| arrival(time, key, 0));
        assert_eq!(Simulation::with_arrivals(config, trace).unwrap_err(), expected);
    };
    let config = Config::default();
    check(&config, &[], SimulationConfigError::NoArrivals);
    check(&config, &[i64::MIN, i64::MAX], SimulationConfigError::ArrivalsTooLong);
    let reverse = "constant:1ms".parse().unwrap();
    check(&Config { reverse, ..config }, &[0], SimulationConfigError::ReverseOfArrivals);
    let late = [arrival(i64::MAX, "tcp 10.0.0.1:1 > 10.0.1.1:2", 0)];
    assert!(Simulation::with_arrivals(&Config::default(), late).is_ok());
}

#[test]
fn nonsense_is_refused_with_its_name() {
    let check = |config: Config, says: &str| {
        let message = Simulation::run(&config).unwrap_err().to_string();
        assert!(message.contains(says), "{message}");
    };
    check(config(0), "flows is 0");
    check(Config { rate: PacketRate(0), ..config(1) }, "rate is 0pps");
    check(Config { packets: Some(0), ..config(1) }, "packets is 0");
    check(Config { propagation: Nanoseconds(-1), ..config(1) }, "propagation is -1ns");
    check(Config { loss: crate::Loss::Uniform { rate: f64::NAN }, ..config(1) }, "NaN");
    check(Config { start: Timestamp::MAX, ..config(1) }, "start is");
}
