//! How many counters a flow should spread over.

use twixt_sim::{Config, Loss};

use super::{FEW, LARGE, MANY, ask, packets, scaled, traffic, vector};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::experiments::segment::{TestSegment, median};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "colate-per-flow",
    algorithm: "COLATE",
    paper: "COLATE, section 5, equations (13) to (15)",
    about: "1 to 200 counters per flow, a million packets, flows of 1000 packets and more: median \
         error of the mean delay with 45 533 counters, flows without an answer there when 0.1 % \
         of packets are lost, and error of the deviation with 455 334 counters.",
    seeds: Seeds { quick: 2, full: 4 },
    trial,
    claims: &[
        claim("joint, m = 20: mean off by", "m = 20 is typical", "joint@20", Holds::AtMost(0.01)),
        claim("joint, m = 1: mean off by", "–", "joint@1", Holds::AtMost(0.001)).noting(
            "some ten counters for each flow: alone in one of them, a flow is known exactly. \
             Spread over twenty it always shares counters, and how its packets spread is unknown",
        ),
        claim("joint: m = 200 over m = 20", "–", "joint@200 / joint@20", Holds::AtLeast(1.5))
            .noting("spread widely, every flow shares counters with all others"),
        claim(
            "0.1 % lost, m = 1: flows without an answer",
            "–",
            "unanswered@1",
            Holds::AtLeast(0.5),
        )
        .noting("what several counters are for"),
        claim(
            "0.1 % lost, m = 20: flows without an answer",
            "–",
            "unanswered@20",
            Holds::AtMost(0.01),
        ),
        claim(
            "deviation off by, m = 100 over m = 20",
            "–",
            "deviation@100 / deviation@20",
            Holds::AtMost(0.8),
        )
        .noting("1 / sqrt(2 (m - 1)) at best: 0.07 over 0.16"),
    ],
    figures,
};

const ESTIMATORS: [&str; 3] = ["joint", "median", "paper"];
const CHOICES: [u32; 7] = [1, 3, 10, 20, 50, 100, 200];
const LOSS: Loss = Loss::Uniform { rate: 0.001 };

fn trial(setting: Setting) -> Trial {
    let packets = packets(setting);
    let whole = traffic(setting.seed, packets);
    let lossy = TestSegment::new(&Config { loss: LOSS, ..whole.clone() });
    let whole = TestSegment::new(&whole);
    let mut trial = Trial::default();
    let mut note = |name: &str, per_flow: u32, value: Option<f64>| {
        trial.value(format!("{name}@{per_flow}"), value);
        trial.point(name, f64::from(per_flow), value);
    };
    for per_flow in CHOICES {
        let few = vector(scaled(FEW, packets), per_flow);
        let ends = whole.ends(&few);
        for estimator in ESTIMATORS {
            let error = ask(&whole, &ends, estimator).median_error(LARGE);
            note(estimator, per_flow, error);
        }
        let unanswered = ask(&lossy, &lossy.ends(&few), "paper").unanswered(LARGE);
        note("unanswered", per_flow, unanswered);
        let ends = whole.ends(&vector(scaled(MANY, packets), per_flow));
        let deviations = ask(&whole, &ends, "paper").deviation_errors(LARGE);
        note("deviation", per_flow, median(deviations));
    }
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let mut series: Vec<Curve> =
        ESTIMATORS.into_iter().map(|name| Curve::of_trials(summary, name, name)).collect();
    series.push(Curve::of_trials(summary, "deviation", "deviation, 455 334 counters"));
    series.push(Curve::of_trials(summary, "unanswered", "share without an answer at 0.1 % loss"));
    vec![Figure {
        name: "colate-per-flow".to_owned(),
        title: "COLATE: errors of flows of 1000+ packets by counters of a flow".to_owned(),
        x: Axis::logarithmic("counters of a flow"),
        y: Axis::logarithmic("median relative error, or share"),
        series,
    }]
}
