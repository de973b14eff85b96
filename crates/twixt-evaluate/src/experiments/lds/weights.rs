//! Flows that matter more weigh more.

use twixt_model::{ClassId, FlowHash, Observation, mix};
use twixt_sim::{Loss, Side};
use twixt_synopsis::{Lds, LdsConfig, Synopsis};

use super::{ask, note_distribution, scaled, segment, whole_rows};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::experiments::segment::{Answers, Packets, Sizes, TestSegment};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lds-weights",
    algorithm: "LDS",
    paper: "Sketching the delay, section 5.3, Fig. 12",
    about: "146 000 flows in 4 rows of 10 000 cells (40 000 counters), 90, 9 and 1 % of them in \
            classes of weight 1, 25 and 100, and all of weight 1: median error of the mean by \
            class (paper's estimator).",
    seeds: Seeds { quick: 1, full: 3 },
    trial,
    claims: &[
        claim(
            "weight 100 over no weight, flows of more than 100 packets",
            "most accurate",
            "weighted, 100, >100 / plain, 100, >100",
            Holds::AtMost(0.5),
        ),
        claim(
            "weight 25 over no weight, flows of more than 100 packets",
            "in between",
            "weighted, 25, >100 / plain, 25, >100",
            Holds::AtMost(0.9),
        ),
        claim(
            "weight 1 over no weight, flows of more than 100 packets",
            "pays for the others",
            "weighted, 1, >100 / plain, 1, >100",
            Holds::AtLeast(1.0),
        ),
        claim(
            "weight 100 over weight 1, all flows",
            "far below",
            "weighted, 100, all / weighted, 1, all",
            Holds::AtMost(0.7),
        ),
        claim(
            "weight 100 over no weight, all flows",
            "far below",
            "weighted, 100, all / plain, 100, all",
            Holds::AtMost(0.7),
        ),
    ],
    figures,
};

const COLUMNS: u32 = 10_000;
/// By class.
const WEIGHTS: [u32; 3] = [1, 25, 100];
const SIZES: [(&str, Packets); 2] = [(">100", 101..=u64::MAX), ("all", 1..=u64::MAX)];

fn trial(setting: Setting) -> Trial {
    let mut segment = segment(setting, Loss::None);
    segment.flows.iter_mut().for_each(|flow| flow.class = class_of(flow.hash));
    let plain = whole_rows(scaled(COLUMNS, setting));
    let weighted = plain.clone().with_weights(&WEIGHTS).expect("weights are in range");
    let mut trial = Trial::default();
    for (name, config) in [("plain", plain), ("weighted", weighted)] {
        let ends = (
            filled(&segment, Side::Upstream, &config),
            filled(&segment, Side::Downstream, &config),
        );
        let all = std::mem::take(&mut segment.flows);
        for (class, weight) in WEIGHTS.iter().enumerate() {
            segment.flows = all.clone();
            segment.flows.retain(|flow| usize::from(flow.class.0) == class);
            note(
                &mut trial,
                &format!("{name}, {weight}"),
                &ask(&segment, &ends, "paper", Sizes::Estimated),
            );
        }
        segment.flows = all;
    }
    trial
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

fn figures(summary: &Summary) -> Vec<Figure> {
    let series = WEIGHTS.iter().flat_map(|weight| {
        [("weighted", "weight"), ("plain", "no weight, class")].map(|(name, label)| {
            Curve::of_trials(
                summary,
                &format!("{name}, {weight}, >100"),
                format!("{label} {weight}"),
            )
        })
    });
    vec![Figure {
        name: "lds-weights".to_owned(),
        title: "LDS with weights: flows of more than 100 packets off by at most so much".to_owned(),
        x: Axis::logarithmic("relative error of the mean"),
        y: Axis::linear("share of flows"),
        series: series.collect(),
    }]
}
