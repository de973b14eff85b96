//! Percentiles from a coordinated sample: whether their intervals hold the truth.

use std::collections::HashMap;

use twixt_model::quantity::{Nanoseconds, PacketRate};
use twixt_model::{DelaySample, Estimate, Observation, PacketDigest, Span, Timestamp, mix, total};
use twixt_sim::{Config, Side, Simulation};
use twixt_synopsis::{Pair, Question, Sample, SampleConfig, Synopsis, TwoPoint};

use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "sample-percentiles",
    algorithm: "Sample",
    paper: "no paper: order statistics with binomial intervals",
    about: "Weibull delays (shape 0.6) above 1 ms and 1 % loss, 30 seconds in epochs of one \
         second, a sample of 4 KiB per second, 20 digest keys for each seed: share of 95 % \
         intervals of percentiles that contain the exact one, and their width.",
    seeds: Seeds { quick: 5, full: 10 },
    trial,
    claims: &[
        claim("p50: intervals that hold", "at least 90 %", "p50 held", Holds::AtLeast(0.9)),
        claim("p95: intervals that hold", "at least 90 %", "p95 held", Holds::AtLeast(0.9)),
        claim("p99: intervals that hold", "at least 90 %", "p99 held", Holds::AtLeast(0.9)),
        claim("p99.9: intervals that hold", "at least 90 %", "p99.9 held", Holds::AtLeast(0.9)),
        claim("p50 off by", "–", "p50 error", Holds::AtMost(0.1)),
        claim("p99 off by", "–", "p99 error", Holds::AtMost(0.1)),
        claim("bytes per second", "4096", "bytes", Holds::AtMost(4096.0)),
    ],
    figures,
};

const SECONDS: u64 = 30;
const KEYS: u64 = 20;
const MEMORY_BYTES: u64 = 4096;
const SECOND_NS: i64 = 1_000_000_000;
const NAMES: [&str; 4] = ["p50", "p95", "p99", "p99.9"];

fn trial(setting: Setting) -> Trial {
    let rate = setting.size.pick(10_000, 50_000);
    let simulation = Simulation::run(&config(rate, setting.seed)).expect("it is in range");
    let truth = simulation.truth().all.delay.and_then(|delay| delay.order);
    let truth = truth.expect("packets were delivered");
    let seen = Seen::of(&simulation);
    let mut trial = Trial::default();
    let estimates: Vec<Estimate> =
        (0..KEYS).filter_map(|key| seen.estimate(mix(setting.seed ^ key << 32))).collect();
    for (name, share) in NAMES.into_iter().zip(DelaySample::SHARES) {
        let exact_ns = truth.at(share).expect("the truth has these shares").as_nanos();
        let found = || estimates.iter().filter_map(|estimate| estimate.percentile(share));
        // What is not known does not hold.
        let held = found().filter(|found| (found.low_ns..=found.high_ns).contains(&exact_ns));
        trial.value(format!("{name} held"), held.count() as f64 / KEYS as f64);
        let off = |ns: i64| (ns - exact_ns).abs() as f64 / exact_ns as f64;
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        let width = |ns: i64| ns as f64 / exact_ns as f64;
        let errors = found().map(|found| off(found.time_ns)).collect();
        trial.value(format!("{name} error"), mean(errors));
        let widths = found().map(|found| width(found.high_ns - found.low_ns)).collect();
        trial.point("width", share, mean(widths));
    }
    trial.value("bytes", Sample::new(&budget()).state_bytes() as f64);
    trial
}

fn config(rate: u64, seed: u64) -> Config {
    Config {
        seed,
        flows: 2_000,
        rate: PacketRate(rate),
        packets: Some(rate * SECONDS),
        delay: "weibull:shape=0.6,scale=100us".parse().expect("it is a model"),
        propagation: Nanoseconds(1_000_000),
        loss: "uniform:0.01".parse().expect("it is a model"),
        ..Config::default()
    }
}

fn budget() -> SampleConfig {
    Sample::sized(MEMORY_BYTES).expect("4 KiB are in range")
}

/// What two points saw, by epoch of upstream time.
struct Seen {
    epochs: Vec<[Vec<Observation>; 2]>,
}

impl Seen {
    fn of(simulation: &Simulation) -> Self {
        let mut epochs: Vec<[Vec<Observation>; 2]> = Vec::new();
        let mut epoch_of: HashMap<PacketDigest, usize> = HashMap::new();
        let mut start = None;
        for packet in simulation.observations(Side::Upstream) {
            let start = *start.get_or_insert(packet.time);
            let epoch = ((packet.time - start).as_nanos() / SECOND_NS) as usize;
            epochs.resize_with(epochs.len().max(epoch + 1), Default::default);
            epochs[epoch][0].push(packet);
            epoch_of.insert(packet.digest, epoch);
        }
        for packet in simulation.observations(Side::Downstream) {
            if let Some(&epoch) = epoch_of.get(&packet.digest) {
                epochs[epoch][1].push(packet);
            }
        }
        Self { epochs }
    }

    /// The combined result of samples of all epochs, with digests of another key.
    fn estimate(&self, key: u64) -> Option<Estimate> {
        let sample = |packets: &[Observation]| {
            let mut sample = Sample::new(&budget());
            for packet in packets {
                let digest = PacketDigest(mix(packet.digest.0 ^ key));
                sample.update(&Observation { digest, ..*packet });
            }
            sample
        };
        let question = Question::about(Span::at(Timestamp::from_nanos(0)));
        let estimates: Vec<Estimate> = self
            .epochs
            .iter()
            .map(|epoch| [sample(&epoch[0]), sample(&epoch[1])])
            .flat_map(|[upstream, downstream]| {
                Sample::estimate(Pair { upstream: &upstream, downstream: &downstream }, &question)
            })
            .collect();
        total(&estimates)
    }
}

fn figures(summary: &Summary) -> Vec<Figure> {
    vec![Figure {
        name: "sample-percentiles".to_owned(),
        title: "Sample of 4 KiB per second, 30 s: width of the interval by percentile".to_owned(),
        x: Axis::linear("share of packets"),
        y: Axis::logarithmic("width over the percentile"),
        series: vec![Curve::of_trials(summary, "width", "95 % interval")],
    }]
}
