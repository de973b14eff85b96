//! How many packets single flows lost.

use twixt_sim::Loss;

use super::{COLUMNS, LARGE, ask, scaled, segment, whole_rows};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::experiments::segment::Sizes;
use crate::figure::Figure;
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lds-flow-loss",
    algorithm: "LDS",
    paper: "Sketching the delay, section 4 (loss of flows is mentioned, but not measured)",
    about: "146 000 flows in 4 rows of 17 500 cells, uniform loss of 0.1 and 1 %: flows of 1000 \
         packets and more with a loss estimate, those with a correct one (within 2 packets or a \
         tenth), and flows of any size that lost packets and are reported without loss.",
    seeds: Seeds { quick: 1, full: 3 },
    trial,
    claims: &[
        claim("0.1 % lost: flows with a loss estimate", "–", "0.001, told", Holds::AtLeast(0.9)),
        claim("0.1 % lost: of these, correct", "–", "0.001, right", Holds::AtLeast(0.95)),
        claim("0.1 % lost: reported without loss", "–", "0.001, denied", Holds::AtMost(0.0)),
        claim("1 % lost: flows with a loss estimate", "–", "0.01, told", Holds::AtLeast(0.9)),
        claim("1 % lost: of these, correct", "–", "0.01, right", Holds::AtLeast(0.95)),
        claim("1 % lost: reported without loss", "–", "0.01, denied", Holds::AtMost(0.0)),
    ],
    figures,
};

const LOSSES: [f64; 2] = [0.001, 0.01];

fn trial(setting: Setting) -> Trial {
    let mut trial = Trial::default();
    for rate in LOSSES {
        let segment = segment(setting, Loss::Uniform { rate });
        let ends = segment.ends(&whole_rows(scaled(COLUMNS, setting)));
        let answers = ask(&segment, &ends, "joint", Sizes::Known);
        trial.value(format!("{rate}, told"), answers.with_loss_estimate(LARGE));
        trial.value(format!("{rate}, right"), answers.right_losses(LARGE));
        trial.value(format!("{rate}, denied"), answers.denied_losses(1..=u64::MAX));
    }
    trial
}

fn figures(_summary: &Summary) -> Vec<Figure> {
    Vec::new()
}
