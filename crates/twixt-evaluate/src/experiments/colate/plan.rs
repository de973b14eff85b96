//! Whether a plan keeps its promise: planned, recorded exactly as planned, and counted.

use twixt_model::quantity::PacketRate;
use twixt_sim::Config;
use twixt_synopsis::{
    Colate, ColateGoal, ColatePlan, ColateTraffic, PlannedEstimator, Reliability,
};

use super::super::segment::{Packets, TestSegment};
use super::ask;
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

const FEW_FLOWS: &str = "of the flows of one epoch, only some ten are this large";

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "colate-plan",
    algorithm: "COLATE",
    paper: "COLATE, section 5: the required reliability is always reached",
    about: "`twixt plan colate` for three requirements and three memories (64, 128 and 256 KiB; full: \
            128, 256 and 512 KiB), then an epoch of as many packets as planned, of flows of 30 to \
            100 000 packets. Share of flows whose mean (joint, sizes known) is as near to the true \
            one as required: of 1000 to 1500 packets, 1000 being the smallest flow planned for, and \
            of 1000 and more.",
    seeds: Seeds { quick: 4, full: 16 },
    trial,
    claims: &[
        claim("90 % within 10 %, least memory", "90 %", "0.1@0", Holds::AtLeast(0.9)),
        claim("90 % within 10 %, twice as much", "90 %", "0.1@1", Holds::AtLeast(0.9)),
        claim("90 % within 10 %, four times as much", "90 %", "0.1@2", Holds::AtLeast(0.9)),
        claim("90 % within 5 %, least memory", "90 %", "0.05@0", Holds::AtLeast(0.9))
            .noting(FEW_FLOWS),
        claim("90 % within 5 %, twice as much", "90 %", "0.05@1", Holds::AtLeast(0.9)),
        claim("90 % within 5 %, four times as much", "90 %", "0.05@2", Holds::AtLeast(0.9)),
        claim("95 % within 10 %, least memory", "95 %", "sure@0", Holds::AtLeast(0.95)),
        claim("95 % within 10 %, twice as much", "95 %", "sure@1", Holds::AtLeast(0.95)),
        claim("95 % within 10 %, four times as much", "95 %", "sure@2", Holds::AtLeast(0.95)),
        claim(
            "90 % within 10 %, four times as much, flows of 1000+",
            "90 %",
            "0.1@2, all",
            Holds::AtLeast(0.9),
        ),
    ],
    figures,
};

/// What is required, and what it is called.
const WANTED: [(&str, Reliability); 3] = [
    ("0.1", Reliability { reliability: 0.9, interval: 0.1 }),
    ("0.05", Reliability { reliability: 0.9, interval: 0.05 }),
    ("sure", Reliability { reliability: 0.95, interval: 0.1 }),
];
const LEAST: f64 = 30.0;
const LARGEST: f64 = 100_000.0;
const SMALLEST: Packets = 1000..=1500;
const PLANNED_FOR: Packets = 1000..=u64::MAX;
/// The flows' means are log-normal with this deviation of their logarithms; packets deviate by so much
/// of their flow's mean.
const SPREAD: f64 = 0.5;
const JITTER: f64 = 0.7;

fn trial(setting: Setting) -> Trial {
    let mut trial = Trial::default();
    for step in 0..3 {
        let memory_bytes = setting.size.pick(64 << 10, 128 << 10) << step;
        for (name, wanted) in WANTED {
            let plan = plan(memory_bytes, wanted);
            let segment = TestSegment::new(&traffic(setting.seed, plan.threshold));
            let ends: (Colate, Colate) = segment.ends(&plan.config);
            let answers = ask(&segment, &ends, "joint");
            let near = answers.share_within(SMALLEST, wanted.interval);
            trial.value(format!("{name}@{step}"), near);
            let all = answers.share_within(PLANNED_FOR, wanted.interval);
            trial.value(format!("{name}@{step}, all"), all);
            trial.point(name, memory_bytes as f64 / 1024.0, near);
        }
    }
    trial
}

fn plan(memory_bytes: u64, wanted: Reliability) -> ColatePlan {
    let model = ColateTraffic {
        least: LEAST,
        smallest: *SMALLEST.start() as f64,
        largest: LARGEST,
        spread: (SPREAD * SPREAD).exp_m1().sqrt(),
        // Relative to the mean of all flows; squares of means are larger than the square of that.
        jitter: JITTER * (SPREAD * SPREAD / 2.0).exp(),
    };
    let estimator = PlannedEstimator::Joint;
    let goal = ColateGoal { wanted, estimator, packets: None, delay_units: 1e6 };
    ColatePlan::within(memory_bytes, &model, &goal).expect("there is memory for a flow")
}

fn traffic(seed: u64, packets: f64) -> Config {
    let mean_size = (LARGEST / LEAST).ln() * LEAST * LARGEST / (LARGEST - LEAST);
    let flow_size = format!("pareto:shape=1,min={LEAST},max={LARGEST}");
    let delay = format!("per-flow:median=1ms,spread={SPREAD},jitter={JITTER}");
    Config {
        seed,
        flows: (packets / mean_size).round() as u32,
        packets: None,
        rate: PacketRate(16_667),
        flow_size: flow_size.parse().expect("a size is well-formed"),
        delay: delay.parse().expect("a delay is well-formed"),
        ..Config::default()
    }
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let names = [
        ("0.1", "90 % within 10 % planned"),
        ("0.05", "90 % within 5 % planned"),
        ("sure", "95 % within 10 % planned"),
    ];
    let series =
        names.into_iter().map(|(name, label)| Curve::of_trials(summary, name, label)).collect();
    vec![Figure {
        name: "colate-plan".to_owned(),
        title: "COLATE: share of the smallest planned flows that are near enough".to_owned(),
        x: Axis::logarithmic("memory (KiB)"),
        y: Axis::linear("share of flows"),
        series,
    }]
}
