use std::collections::HashSet;

use twixt_model::protocol;
use twixt_model::quantity::{BitRate, Nanoseconds, PacketRate};

use super::*;
use crate::{Burst, FlowSize, Loss, PacketSize};

const SECOND: i64 = 1_000_000_000;

fn link() -> LinkConfig {
    let queue = QueueConfig { drain: BitRate(10_000_000), packets: 100 };
    LinkConfig {
        queues: vec![queue; 2],
        propagation: Nanoseconds(2_000_000),
        loss: Loss::None,
        reorder_rate: 0.0,
        reorder_extent: Nanoseconds(0),
        spells: Vec::new(),
    }
}

fn traffic(route: &[usize], class: usize) -> TrafficConfig {
    TrafficConfig {
        route: route.to_vec(),
        class,
        service: (protocol::UDP, 5004),
        flows: 50,
        rate: PacketRate(1_000),
        flow_size: FlowSize::Fixed { packets: 20 },
        burst: Burst { length: 2.0, gap: Nanoseconds(100_000) },
        packet_size: PacketSize::Fixed { bytes: 200 },
        during_ns: None,
    }
}

/// Three links in a row; one traffic along all, one along the last two.
fn chain() -> NetworkConfig {
    NetworkConfig {
        seed: 7,
        links: vec![link(); 3],
        traffic: vec![traffic(&[0, 1, 2], 0), traffic(&[1, 2], 1)],
    }
}

/// What passes each link within so many seconds, in steps of a length.
fn run(config: &NetworkConfig, seconds: i64, step_ns: i64) -> Vec<LinkStep> {
    let mut network = Network::new(config).unwrap();
    let mut whole = vec![LinkStep::default(); config.links.len()];
    for end_ns in (1..=seconds * SECOND / step_ns).map(|step| step * step_ns) {
        for (all, step) in whole.iter_mut().zip(network.advance(end_ns).unwrap()) {
            all.entered.extend(step.entered);
            all.left.extend(step.left);
        }
    }
    whole
}

fn lost(crossings: &[LinkCrossing]) -> usize {
    crossings.iter().filter(|crossing| crossing.left_ns.is_none()).count()
}

#[test]
fn the_length_of_steps_changes_nothing() {
    let config = NetworkConfig {
        links: vec![
            LinkConfig {
                loss: Loss::Uniform { rate: 0.01 },
                reorder_rate: 0.02,
                reorder_extent: Nanoseconds(1_000_000),
                ..link()
            };
            3
        ],
        ..chain()
    };
    assert_eq!(run(&config, 6, SECOND / 20), run(&config, 6, 2 * SECOND));
    assert_ne!(
        run(&config, 6, SECOND),
        run(&NetworkConfig { seed: 8, ..config.clone() }, 6, SECOND)
    );
}

#[test]
fn packets_follow_their_routes_and_none_appears_or_vanishes() {
    let [first, second, third] = <[LinkStep; 3]>::try_from(run(&chain(), 10, SECOND / 10)).unwrap();
    // 1000 a second and traffic: twice as many where both pass.
    assert!(first.entered.len().abs_diff(10_000) < 500, "{}", first.entered.len());
    assert!(second.entered.len().abs_diff(20_000) < 1_000, "{}", second.entered.len());
    let handed_on = second.entered.iter().filter(|crossing| crossing.hop == 1).count();
    assert_eq!(handed_on, first.left.len());
    assert_eq!(third.entered.len(), second.left.len());
    assert!(
        third
            .left
            .iter()
            .all(|crossing| usize::from(crossing.hop) + 1 + crossing.packet.traffic == 3)
    );
    for LinkStep { entered, left } in [first, second, third] {
        assert_eq!(lost(&entered), 0);
        assert!(entered.is_sorted_by_key(|crossing| crossing.entered_ns));
        assert!(left.is_sorted_by_key(|crossing| crossing.left_ns));
        // 200 bytes at 10 Mbit/s take 160 us, and then the line; at most a full queue of these.
        let delays = left.iter().map(|crossing| crossing.left_ns.unwrap() - crossing.entered_ns);
        assert!(delays.clone().min() == Some(2_160_000) && delays.max() < Some(18_160_000));
    }
}

#[test]
fn classes_have_queues_of_their_own() {
    let flood = TrafficConfig { rate: PacketRate(8_000), flows: 1_000, ..traffic(&[1], 1) };
    let config = NetworkConfig { traffic: vec![traffic(&[1], 0), flood], ..chain() };
    let steps = run(&config, 5, SECOND / 10);
    let of_class = |class: usize| -> Vec<LinkCrossing> {
        steps[1].entered.iter().copied().filter(|crossing| crossing.packet.class == class).collect()
    };
    let mean_ns = |crossings: &[LinkCrossing]| {
        let delays: Vec<i64> = crossings
            .iter()
            .filter_map(|crossing| Some(crossing.left_ns? - crossing.entered_ns))
            .collect();
        delays.iter().sum::<i64>() / delays.len() as i64
    };
    // 12.8 Mbit/s want to pass at 10: a queue of 100 packets of 160 us, and more than a fifth lost.
    let (calm, full) = (of_class(0), of_class(1));
    assert!(lost(&calm) == 0 && mean_ns(&calm) < 2_500_000, "{}", mean_ns(&calm));
    assert!(mean_ns(&full) > 15_000_000, "{}", mean_ns(&full));
    let share = lost(&full) as f64 / full.len() as f64;
    assert!((share - 0.22).abs() < 0.03, "{share}");
}

#[test]
fn spells_and_passing_traffic_keep_to_their_time() {
    let during_ns = 2 * SECOND..4 * SECOND;
    let spell = LossSpell { class: Some(0), rate: 0.5, during_ns: during_ns.clone() };
    let passing = TrafficConfig { during_ns: Some(during_ns.clone()), ..traffic(&[2], 1) };
    let config = NetworkConfig {
        links: vec![link(), link(), LinkConfig { spells: vec![spell], ..link() }],
        traffic: vec![traffic(&[2], 0), passing],
        ..chain()
    };
    let entered = run(&config, 6, SECOND / 10).remove(2).entered;
    let is_within = |crossing: &&LinkCrossing| during_ns.contains(&crossing.entered_ns);
    assert!(
        entered.iter().filter(|crossing| crossing.packet.traffic == 1).all(|of| is_within(&of))
    );
    let gone: Vec<&LinkCrossing> =
        entered.iter().filter(|crossing| crossing.left_ns.is_none()).collect();
    assert!(gone.iter().all(|crossing| crossing.packet.class == 0 && is_within(crossing)));
    // Half of some 2000; five standard errors of sqrt(2000) / 2, and those of bursts.
    assert!(gone.len().abs_diff(1_000) < 250, "{}", gone.len());
}

#[test]
fn no_two_packets_look_alike_and_no_flow_comes_again() {
    let steps = run(&chain(), 10, SECOND);
    let frames: Vec<Vec<u8>> =
        steps[2].entered.iter().map(|crossing| crossing.packet.frame(0).bytes().to_vec()).collect();
    assert_eq!(frames.iter().collect::<HashSet<_>>().len(), frames.len());
    let keys: HashSet<FlowKey> = steps[2].entered.iter().map(|of| of.packet.key).collect();
    // Laps of 50 flows with 1000 packets: one a second for each of the two.
    assert!(keys.len().abs_diff(1_000) <= 100, "{}", keys.len());
    // A router takes one from the time to live, and nothing else that a digest covers.
    let packet = steps[2].entered[0].packet;
    let (one, other) = (packet.frame(0), packet.frame(2));
    assert_eq!((one.bytes()[22], other.bytes()[22]), (64, 62));
    assert_eq!(one.bytes()[26..], other.bytes()[26..]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    #[track_caller]
    fn check(change: impl FnOnce(&mut NetworkConfig), problem: &str) {
        let mut config = chain();
        change(&mut config);
        let error = Network::new(&config).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
    check(|config| config.traffic[0].route = vec![], "no links");
    check(|config| config.traffic[1].route = vec![1, 3], "does not exist");
    check(|config| config.traffic[1].route = vec![2, 1], "another order");
    check(|config| config.traffic[1].class = 2, "no queue for class 2");
    check(|config| config.traffic[1].flows = 5_000, "1 to 4096");
    check(|config| config.links[0].reorder_rate = 2.0, "reordering");
    check(|config| config.links[0].queues[0].packets = 0, "queue");
}
