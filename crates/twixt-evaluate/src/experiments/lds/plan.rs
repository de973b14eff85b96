//! Whether a plan keeps its promise: planned, recorded exactly as planned, and counted.

use twixt_model::quantity::PacketRate;
use twixt_sim::Config;
use twixt_synopsis::{Lds, LdsConfig, LdsNeed, Pareto, expected_survival};

use super::super::segment::{Answers, Packets, Sizes, TestSegment};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

const FOUND: &str = "of whose emptiest cell others have at most 5 %: their means are within less than 5 %, and so \
     are some others";

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lds-plan",
    algorithm: "LDS",
    paper: "Sketching the delay, section 3: cells for a share of flows",
    about: "`twixt plan lds` for 50 000 flows (Pareto sizes, as the paper has them): for three shares of large \
            flows, of whose cell other flows may have 5 %, and for three memories; then an epoch of that traffic. \
            Share of flows of 1000 packets and more, and of 1000 to 1500, 1000 being what is planned for, whose \
            mean (paper) is within 5 %; for memories, over the share that the plan expects for 1000 packets.",
    seeds: Seeds { quick: 6, full: 40 },
    trial,
    claims: &[
        claim("90 % planned", "90 %", "0.9", Holds::AtLeast(0.9)),
        claim("95 % planned", "95 %", "0.95", Holds::AtLeast(0.95)),
        claim("99 % planned", "99 %", "0.99", Holds::AtLeast(0.99)),
        claim("90 % planned, flows of 1000 to 1500", "90 %", "0.9, smallest", Holds::AtLeast(0.9)),
        claim(
            "95 % planned, flows of 1000 to 1500",
            "95 %",
            "0.95, smallest",
            Holds::AtLeast(0.95),
        ),
        claim(
            "99 % planned, flows of 1000 to 1500",
            "99 %",
            "0.99, smallest",
            Holds::AtLeast(0.99),
        ),
        claim(
            "256 KiB, flows of 1000 to 1500: found over expected",
            "1",
            "256 KiB",
            Holds::AtLeast(1.0),
        )
        .noting(FOUND),
        claim(
            "1 MiB, flows of 1000 to 1500: found over expected",
            "1",
            "1024 KiB",
            Holds::AtLeast(1.0),
        )
        .noting(FOUND),
        claim(
            "4 MiB, flows of 1000 to 1500: found over expected",
            "1",
            "4096 KiB",
            Holds::AtLeast(1.0),
        )
        .noting(FOUND),
    ],
    figures,
};

const FLOWS: u32 = 50_000;
const SIZES: Pareto = Pareto { shape: 1.05, least: 2.53 };
const LARGE: u64 = 1000;
/// Flows at the threshold, which are the hardest of those that are planned for.
const SMALLEST: Packets = LARGE..=1500;
const TOLERABLE: f64 = 0.05;
const CONFIDENCES: [f64; 3] = [0.9, 0.95, 0.99];
const KIBIBYTES: [u64; 3] = [256, 1024, 4096];

fn trial(setting: Setting) -> Trial {
    let segment = segment(setting.seed);
    let need = LdsNeed {
        flows: u64::from(FLOWS),
        sizes: SIZES,
        large: LARGE,
        tolerable: TOLERABLE,
        losses: 0,
    };
    let mut trial = Trial::default();
    for confidence in CONFIDENCES {
        let config = need.for_confidence(confidence).expect("such a sketch is possible");
        let answers = record(&segment, &config);
        let share = answers.share_within(LARGE..=u64::MAX, TOLERABLE);
        let smallest = answers.share_within(SMALLEST, TOLERABLE);
        trial.value(confidence.to_string(), share);
        trial.value(format!("{confidence}, smallest"), smallest);
        trial.point("1000 packets and more", confidence, share);
        trial.point("1000 to 1500 packets", confidence, smallest);
        trial.point("planned", confidence, confidence);
    }
    for kibibytes in KIBIBYTES {
        let config = need.within(kibibytes << 10).expect("there is memory for a sketch");
        let expected = expected_survival(need.flows, &SIZES, &config, LARGE as f64, TOLERABLE);
        let found = record(&segment, &config).share_within(SMALLEST, TOLERABLE);
        trial.value(format!("{kibibytes} KiB"), found.map(|found| found / expected));
    }
    trial
}

/// Traffic as planned for.
fn segment(seed: u64) -> TestSegment {
    let Pareto { shape, least } = SIZES;
    let flow_size = format!("pareto:shape={shape},min={least},max=100000");
    TestSegment::new(&Config {
        seed,
        flows: FLOWS,
        packets: None,
        rate: PacketRate(16_667),
        flow_size: flow_size.parse().expect("a size is well-formed"),
        delay: "per-flow:median=1ms,spread=0.5,jitter=0.7".parse().expect("a delay is well-formed"),
        ..Config::default()
    })
}

/// Recorded exactly as planned.
fn record(segment: &TestSegment, config: &LdsConfig) -> Answers {
    let ends: (Lds, Lds) = segment.ends(config);
    segment.ask((&ends.0, &ends.1), "paper", Sizes::Known)
}

fn figures(summary: &Summary) -> Vec<Figure> {
    vec![Figure {
        name: "lds-plan".to_owned(),
        title: "LDS: share of large flows that are near enough".to_owned(),
        x: Axis::linear("planned"),
        y: Axis::linear("found"),
        series: ["1000 packets and more", "1000 to 1500 packets", "planned"]
            .map(|name| Curve::of_trials(summary, name, name))
            .into(),
    }]
}
