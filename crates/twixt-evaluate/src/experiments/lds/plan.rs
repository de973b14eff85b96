//! Whether a plan keeps its promise: planned, recorded exactly as planned, and counted.

use twixt_model::quantity::PacketRate;
use twixt_sim::Config;
use twixt_synopsis::{Lds, LdsNeed, Pareto};

use super::super::segment::{Sizes, TestSegment};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lds-plan",
    algorithm: "LDS",
    paper: "Sketching the delay, section 3: cells for a share of flows",
    about: "`twixt plan lds` for 50 000 flows (Pareto sizes, as the paper has them) and three shares of \
            large flows, of whose cell other flows may have 5 %; then an epoch of that traffic. Share of \
            flows of 1000 packets and more whose mean (paper) is within 5 %.",
    seeds: Seeds { quick: 6, full: 40 },
    trial,
    claims: &[
        claim("90 % planned", "90 %", "0.9", Holds::AtLeast(0.9)),
        claim("95 % planned", "95 %", "0.95", Holds::AtLeast(0.95)),
        claim("99 % planned", "99 %", "0.99", Holds::AtLeast(0.99)),
    ],
    figures,
};

const FLOWS: u32 = 50_000;
const SIZES: Pareto = Pareto { shape: 1.05, least: 2.53 };
const LARGE: u64 = 1000;
const TOLERABLE: f64 = 0.05;
const CONFIDENCES: [f64; 3] = [0.9, 0.95, 0.99];

fn trial(setting: Setting) -> Trial {
    let Pareto { shape, least } = SIZES;
    let flow_size = format!("pareto:shape={shape},min={least},max=100000");
    let segment = TestSegment::new(&Config {
        seed: setting.seed,
        flows: FLOWS,
        packets: None,
        rate: PacketRate(16_667),
        flow_size: flow_size.parse().expect("a size is well-formed"),
        delay: "per-flow:median=1ms,spread=0.5,jitter=0.7".parse().expect("a delay is well-formed"),
        ..Config::default()
    });
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
        let ends: (Lds, Lds) = segment.ends(&config);
        let answers = segment.ask((&ends.0, &ends.1), "paper", Sizes::Known);
        let share = answers.share_within(LARGE..=u64::MAX, TOLERABLE);
        trial.value(confidence.to_string(), share);
        trial.point("found", confidence, share);
        trial.point("planned", confidence, confidence);
    }
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    vec![Figure {
        name: "lds-plan".to_owned(),
        title: "LDS: share of large flows that are near enough".to_owned(),
        x: Axis::linear("planned"),
        y: Axis::linear("found"),
        series: ["found", "planned"].map(|name| Curve::of_trials(summary, name, name)).into(),
    }]
}
