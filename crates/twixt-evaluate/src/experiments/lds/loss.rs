//! Rows that sample keep flows measurable under loss.

use twixt_sim::Loss;
use twixt_synopsis::LdsConfig;

use super::{COLUMNS, LARGE, ROWS, ask, scaled, segment};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::experiments::segment::{Packets, Sizes};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

const LARGEST_FLOWS: &str = "few flows, but the largest of all: the sketch is made for 500 lost \
                             packets of a flow, and these lost more";

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lds-loss",
    algorithm: "LDS",
    paper: "Sketching the delay, section 5.2, Fig. 11",
    about: "146 000 flows in 4 rows of 87 500 cells, 5 to a flow, alpha 0.1, uniform loss of 0, \
            0.1, 0.5 and 1 %: rows that count every packet, 5 %, and 1, 10, 50 and 100 % \
            (several banks). Flows of 1000 packets and more: median error of the mean, flows \
            without an answer, and their share of packets.",
    seeds: Seeds { quick: 2, full: 3 },
    trial,
    claims: &[
        claim(
            "banks, paper, no loss: mean off by",
            "consistently well",
            "banks, paper@0",
            Holds::AtMost(0.05),
        ),
        claim(
            "banks, paper, 0.1 % lost: mean off by",
            "consistently well",
            "banks, paper@0.001",
            Holds::AtMost(0.05),
        ),
        claim(
            "banks, paper, 1 % lost: mean off by",
            "consistently well",
            "banks, paper@0.01",
            Holds::AtMost(0.1),
        ),
        claim(
            "banks, 1 % lost: flows without an answer",
            "very seldom",
            "banks, paper@0.01, unanswered",
            Holds::AtMost(0.05),
        ),
        claim(
            "banks, 1 % lost: their share of packets",
            "–",
            "banks, paper@0.01, unanswered packets",
            Holds::AtMost(0.05),
        )
        .noting(LARGEST_FLOWS),
        claim(
            "banks, 1 % lost: flows of 20 000+ without an answer",
            "–",
            "banks, paper@0.01, unanswered of 20 000+",
            Holds::AtMost(0.05),
        )
        .noting(LARGEST_FLOWS),
        claim(
            "every packet, 1 % lost: flows without an answer",
            "measurements are lost",
            "every packet, paper@0.01, unanswered",
            Holds::AtLeast(0.5),
        ),
        claim(
            "5 %, no loss: off by, over banks",
            "underperforms on low loss",
            "5 %, paper@0 / banks, paper@0",
            Holds::AtLeast(1.0),
        ),
        claim(
            "joint over paper, banks, 0.1 % lost",
            "–",
            "banks, joint@0.001 / banks, paper@0.001",
            Holds::AtMost(0.7),
        ),
        claim(
            "joint over paper, banks, 1 % lost",
            "–",
            "banks, joint@0.01 / banks, paper@0.01",
            Holds::AtMost(0.7),
        )
        .noting(
            "most of the answer comes from rows that sample little here, and is noisy; a quick \
             run has too few large flows to judge",
        ),
    ],
    figures,
};

const LOSSES: [f64; 4] = [0.0, 0.001, 0.005, 0.01];
const VIRTUAL_CELLS: u32 = 5;
const LARGEST: Packets = 20_000..=u64::MAX;
const BANKS: [(&str, [f64; ROWS], &[&str]); 3] = [
    ("every packet", [1.0; ROWS], &["paper"]),
    ("5 %", [0.05; ROWS], &["paper"]),
    ("banks", [0.01, 0.1, 0.5, 1.0], &["paper", "joint"]),
];

fn trial(setting: Setting) -> Trial {
    let columns = scaled(COLUMNS * VIRTUAL_CELLS, setting);
    let mut trial = Trial::default();
    for rate in LOSSES {
        let loss = if rate > 0.0 { Loss::Uniform { rate } } else { Loss::None };
        let segment = segment(setting, loss);
        for (name, sampling, estimators) in BANKS {
            let config = LdsConfig::new(columns, VIRTUAL_CELLS, &sampling)
                .and_then(|config| config.with_alpha(0.1))
                .expect("cells and rates are in range");
            let ends = segment.ends(&config);
            for estimator in estimators {
                let answers = ask(&segment, &ends, estimator, Sizes::Known);
                let name = format!("{name}, {estimator}");
                let error = answers.median_error(LARGE);
                let unanswered = answers.unanswered(LARGE);
                trial.value(format!("{name}@{rate}"), error);
                trial.value(format!("{name}@{rate}, unanswered"), unanswered);
                let packets = answers.unanswered_packets(LARGE);
                trial.value(format!("{name}@{rate}, unanswered packets"), packets);
                let largest = answers.unanswered(LARGEST);
                trial.value(format!("{name}@{rate}, unanswered of 20 000+"), largest);
                trial.point(&name, rate, error);
                trial.point(&format!("{name}, unanswered"), rate, unanswered);
            }
        }
    }
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let names = ["every packet, paper", "5 %, paper", "banks, paper", "banks, joint"];
    let figure = |name: &str, title: &str, y, suffix: &str| Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        x: Axis::linear("loss (share of packets)"),
        y,
        series: names
            .map(|name| Curve::of_trials(summary, &format!("{name}{suffix}"), name))
            .into(),
    };
    vec![
        figure(
            "lds-loss-error",
            "LDS under loss: error of flows of 1000+ packets that are answered",
            Axis::logarithmic("median relative error"),
            "",
        ),
        figure(
            "lds-loss-unanswered",
            "LDS under loss: flows of 1000+ packets without an answer",
            Axis::linear("share of flows"),
            ", unanswered",
        ),
    ]
}
