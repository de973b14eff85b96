//! COLATE: what its experiments share.
//!
//! The paper adds delays to traces of single points (CHIC, ICSI, DC) that cannot be had. Here a
//! million packets of flows of very unequal size pass in a minute, with delays around 1 ms, half
//! of it the flow's own. What matters is packets per counter: quick runs have a fifth of both.

pub(super) mod accuracy;
pub(super) mod count_min;
pub(super) mod deviation;
pub(super) mod per_flow;
pub(super) mod plan;
pub(super) mod printed;
pub(super) mod reference;
pub(super) mod reliability;
pub(super) mod storage;
pub(super) mod triangle;

use twixt_model::quantity::PacketRate;
use twixt_sim::Config;
use twixt_synopsis::{Colate, ColateConfig};

use super::segment::{Answers, Packets, Sizes, TestSegment};
use crate::experiment::Setting;

/// Packets that the numbers of counters below are meant for.
const FULL_PACKETS: u64 = 1_000_000;
/// Counters of a flow, as the paper has them.
const PER_FLOW: u32 = 20;
/// Counters for about 22 packets each: the fewest of the experiments.
const FEW: u32 = 45_533;
/// Counters for about 2 packets each: what the paper makes of 1 MB.
const MANY: u32 = 455_334;
const LARGE: Packets = 1000..=u64::MAX;
const MEDIUM: Packets = 100..=999;
const ALL: Packets = 1..=u64::MAX;

const fn packets(setting: Setting) -> u64 {
    setting.size.pick(FULL_PACKETS / 5, FULL_PACKETS)
}

/// As many packets per counter with fewer packets.
const fn scaled(counters: u32, packets: u64) -> u32 {
    (counters as u64 * packets / FULL_PACKETS) as u32
}

fn traffic(seed: u64, packets: u64) -> Config {
    Config {
        seed,
        flows: 4000,
        packets: Some(packets),
        rate: PacketRate(16_667),
        flow_size: "pareto:shape=1.05,min=34,max=200000".parse().expect("a size is well-formed"),
        delay: "per-flow:median=1ms,spread=0.5,jitter=0.7".parse().expect("a delay is well-formed"),
        ..Config::default()
    }
}

fn segment(setting: Setting) -> TestSegment {
    TestSegment::new(&traffic(setting.seed, packets(setting)))
}

/// One vector that counts every packet.
fn vector(counters: u32, per_flow: u32) -> ColateConfig {
    ColateConfig::new(counters, per_flow, &[1.0]).expect("counters are in range")
}

fn ask(segment: &TestSegment, ends: &(Colate, Colate), estimator: &str) -> Answers {
    segment.ask((&ends.0, &ends.1), estimator, Sizes::Known)
}
