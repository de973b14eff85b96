//! Identical packets in counters that are not usable.

use twixt_model::{Delay, FlowHash, Observation, PacketDigest, Span, Timestamp, mix};

use super::*;
use crate::question::By;
use crate::synopsis::{Synopsis, TwoPoint};

/// One flow: 3 000 packets of 1.3 ms, and heartbeats that take this long, of which the last is lost. Its mean with
/// half the width of the interval, what it is in truth, and what is said.
fn ask(seed: u64, heartbeats: u64, delay_ns: i64) -> (Option<(f64, Option<f64>)>, f64, String) {
    let (mut upstream, mut downstream) = {
        let config = crate::ColateConfig::default();
        (Colate::new(&config), Colate::new(&config))
    };
    let (mut sum_ns, mut count) = (0.0, 0.0);
    for number in 0..3_000 + heartbeats {
        let is_heartbeat = number >= 3_000;
        let digest = mix(seed << 40 | if is_heartbeat { 1 << 30 } else { number });
        let delay_ns = if is_heartbeat { delay_ns } else { 1_300_000 + (digest % 100_000) as i64 };
        let time = Timestamp::from_nanos(number as i64 * 10_000_000);
        let sent = Observation {
            digest: PacketDigest(digest),
            flow: FlowHash(mix(seed)),
            length: 100,
            time,
            ..Observation::default()
        };
        upstream.update(&sent);
        if !is_heartbeat || number + 1 < 3_000 + heartbeats {
            downstream.update(&Observation { time: time + Delay::from_nanos(delay_ns), ..sent });
            (sum_ns, count) = (sum_ns + delay_ns as f64, count + 1.0);
        }
    }
    let flow = KnownFlow { hash: FlowHash(mix(seed)), ..KnownFlow::default() };
    let question = Question {
        by: By::Flow,
        flows: &[flow],
        listing: Listing::Passing,
        ..Question::about(Span::at(Timestamp::from_nanos(0)))
    };
    let pair = Pair { upstream: &upstream, downstream: &downstream };
    let found = Colate::estimate(pair, &question).remove(0);
    let delay = found.delay.map(|delay| (delay.mean_ns(), delay.half_width_ns));
    (delay, sum_ns / count, found.reason.unwrap_or_default())
}

/// One of 300 heartbeats is lost, and their counter left out: the mean was that of the others, a twentieth of the true
/// one, in an interval of a few microseconds.
#[test]
fn identical_packets_in_a_counter_with_loss_may_take_any_time() {
    for seed in 0..20 {
        for (heartbeats, delay_ns) in [(300, 260_000_000), (300, 13_000_000), (1_500, 13_000_000)] {
            let (delay, truth_ns, reason) = ask(seed, heartbeats, delay_ns);
            let Some((mean_ns, half_width_ns)) = delay else { continue };
            let holds = half_width_ns.is_none_or(|width| (mean_ns - truth_ns).abs() <= width);
            assert!(holds, "{seed} {heartbeats}: {mean_ns} for {truth_ns}: {reason}");
        }
    }
}

/// A packet that is lost alone takes no interval away.
#[test]
fn a_lost_packet_that_occurs_once_leaves_the_interval() {
    for seed in 0..20 {
        let (delay, truth_ns, reason) = ask(seed, 1, 1_300_000);
        let (mean_ns, half_width_ns) = delay.unwrap();
        assert!(half_width_ns.is_some(), "{seed}: {mean_ns} for {truth_ns}: {reason}");
    }
}
