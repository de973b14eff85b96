//! Flows that matter more weigh more.

use twixt_model::{ClassId, FlowHash, Observation, mix};
use twixt_sim::Side;
use twixt_synopsis::{Lds, LdsConfig, Synopsis};

use super::{ask, note_distribution, paced_segment, scaled, whole_rows};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::experiments::segment::{Answers, Packets, Sizes, TestSegment};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

const FEW: &str =
    "few flows: 1 % of all are gold, and of these some 2 % have more than 100 packets";

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lds-weights",
    algorithm: "LDS",
    paper: "Sketching the delay, section 5.3, Fig. 12",
    about: "146 000 flows in 4 rows of 10 000 and of 25 000 cells (40 000 and 100 000 counters); 90, 9 and 1 % of \
            them are bronze, silver and gold, of weights 1, 25 and 100, 1, 10 and 100, or 1, 50 and 2500, or all \
            of weight 1: median error of the mean by class (paper's estimator), of flows of more than 100 \
            packets and of all.",
    seeds: Seeds { quick: 2, full: 3 },
    trial,
    claims: &[
        claim(
            "40 000, 1/25/100: gold over no weight, more than 100 packets",
            "significantly greater accuracy",
            "40000, 1/25/100, gold, >100 / 40000, none, gold, >100",
            Holds::AtMost(0.5),
        )
        .noting(FEW),
        claim(
            "40 000, 1/25/100: silver over no weight, more than 100 packets",
            "significantly greater accuracy",
            "40000, 1/25/100, silver, >100 / 40000, none, silver, >100",
            Holds::AtMost(0.9),
        ),
        claim(
            "40 000, 1/25/100: bronze over no weight, more than 100 packets",
            "penalised, not highly",
            "40000, 1/25/100, bronze, >100 / 40000, none, bronze, >100",
            Holds::Between(1.0, 2.0),
        ),
        claim(
            "40 000, 1/25/100: gold over bronze, all flows",
            "significantly greater accuracy",
            "40000, 1/25/100, gold, all / 40000, 1/25/100, bronze, all",
            Holds::AtMost(0.7),
        ),
        claim(
            "40 000, 1/10/100: gold over no weight, all flows",
            "significantly greater accuracy",
            "40000, 1/10/100, gold, all / 40000, none, gold, all",
            Holds::AtMost(0.7),
        ),
        claim(
            "40 000, 1/10/100: silver over no weight, all flows",
            "significantly greater accuracy",
            "40000, 1/10/100, silver, all / 40000, none, silver, all",
            Holds::AtMost(0.9),
        ),
        claim(
            "40 000, 1/50/2500: gold over gold of weight 100, all flows",
            "extreme accuracy",
            "40000, 1/50/2500, gold, all / 40000, 1/25/100, gold, all",
            Holds::AtMost(0.5),
        ),
        claim(
            "40 000, 1/50/2500: bronze over no weight, more than 100 packets",
            "penalised, not highly",
            "40000, 1/50/2500, bronze, >100 / 40000, none, bronze, >100",
            Holds::Between(1.0, 2.0),
        ),
        claim(
            "100 000, 1/25/100: gold over no weight, all flows",
            "significantly greater accuracy",
            "100000, 1/25/100, gold, all / 100000, none, gold, all",
            Holds::AtMost(0.7),
        ),
        claim(
            "100 000, 1/10/100: gold over no weight, all flows",
            "significantly greater accuracy",
            "100000, 1/10/100, gold, all / 100000, none, gold, all",
            Holds::AtMost(0.7),
        ),
        claim(
            "100 000, 1/50/2500: gold over no weight, all flows",
            "extreme accuracy",
            "100000, 1/50/2500, gold, all / 100000, none, gold, all",
            Holds::AtMost(0.3),
        ),
        claim(
            "100 000 over 40 000 counters, 1/25/100: bronze, more than 100 packets",
            "greater accuracy",
            "100000, 1/25/100, bronze, >100 / 40000, 1/25/100, bronze, >100",
            Holds::AtMost(0.8),
        ),
    ],
    figures,
};

/// Counters of the sketch, columns, and what its panels are called after.
const SKETCHES: [(&str, u32, &str); 2] = [("40000", 10_000, ""), ("100000", 25_000, "-100000")];
/// By class, and what panels are called after; the first is no weighting.
const WEIGHTS: [(&str, [u32; 3], &str); 4] = [
    ("none", [1, 1, 1], ""),
    ("1/25/100", [1, 25, 100], ""),
    ("1/10/100", [1, 10, 100], "-10-100"),
    ("1/50/2500", [1, 50, 2500], "-50-2500"),
];
const CLASSES: [&str; 3] = ["bronze", "silver", "gold"];
const SIZES: [(&str, Packets); 2] = [(">100", 101..=u64::MAX), ("all", 1..=u64::MAX)];

fn trial(setting: Setting) -> Trial {
    let mut segment = paced_segment(setting);
    segment.flows.iter_mut().for_each(|flow| flow.class = class_of(flow.hash));
    let mut trial = Trial::default();
    for (counters, columns, _) in SKETCHES {
        for (weights, of_class, _) in WEIGHTS {
            let plain = whole_rows(scaled(columns, setting));
            let config = plain.with_weights(&of_class).expect("weights are in range");
            let ends =
                [Side::Upstream, Side::Downstream].map(|point| filled(&segment, point, &config));
            let [upstream, downstream] = ends;
            ask_classes(
                &mut trial,
                &format!("{counters}, {weights}"),
                &mut segment,
                &(upstream, downstream),
            );
        }
    }
    trial
}

/// Each class alone: whose flows are asked about does not change what others are answered.
fn ask_classes(trial: &mut Trial, name: &str, segment: &mut TestSegment, ends: &(Lds, Lds)) {
    let all = std::mem::take(&mut segment.flows);
    for (class, class_name) in CLASSES.iter().enumerate() {
        segment.flows.clone_from(&all);
        segment.flows.retain(|flow| usize::from(flow.class.0) == class);
        let answers = ask(segment, ends, "paper", Sizes::Estimated);
        note(trial, &format!("{name}, {class_name}"), &answers);
    }
    segment.flows = all;
}

fn note(trial: &mut Trial, name: &str, answers: &Answers) {
    for (class, packets) in SIZES {
        note_distribution(trial, &format!("{name}, {class}"), answers.errors(packets));
    }
}

/// Of 100 flows 1 is in the class of weight 100, and 9 in that of 25.
const fn class_of(flow: FlowHash) -> ClassId {
    match mix(flow.0 ^ 0x7765_6967_6874) % 100 {
        0 => ClassId(2),
        1..=9 => ClassId(1),
        _ => ClassId(0),
    }
}

fn filled(segment: &TestSegment, point: Side, config: &LdsConfig) -> Lds {
    let mut lds = Lds::new(config);
    for packet in segment.simulation.observations(point) {
        lds.update(&Observation { class: class_of(packet.flow), ..packet });
    }
    lds
}

/// One panel for each sketch and weighting.
fn figures(summary: &Summary) -> Vec<Figure> {
    let mut panels = Vec::new();
    for (counters, _, of_sketch) in SKETCHES {
        for (weights, _, of_weights) in &WEIGHTS[1..] {
            panels.push(Figure {
                name: format!("lds-weights{of_sketch}{of_weights}"),
                title: format!("LDS, {counters} counters, weights {weights}"),
                x: Axis::logarithmic("relative error of the mean"),
                y: Axis::linear("share of flows"),
                series: curves(summary, counters, weights),
            });
        }
    }
    panels
}

fn curves(summary: &Summary, counters: &str, weights: &str) -> Vec<Curve> {
    let curve = |of: &str, class: &str, size: &str, label: String| {
        Curve::of_trials(summary, &format!("{counters}, {of}, {class}, {size}"), label)
    };
    let mut series = Vec::new();
    for (size, label) in [(">100", "more than 100 packets"), ("all", "all")] {
        let of_class = |class| curve(weights, class, size, format!("{class}, {label}"));
        series.extend(CLASSES.map(of_class));
    }
    series.push(curve("none", "bronze", "all", "no weight, all".to_owned()));
    series
}
