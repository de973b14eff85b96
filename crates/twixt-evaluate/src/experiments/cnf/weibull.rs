//! Delays that are independent from packet to packet: where records of others cannot help but by
//! their number.

use super::{Run, config, distribution, median};
use crate::claim::{Claim, Holds};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "cnf-weibull",
    algorithm: "Consistent NetFlow",
    paper: "Consistent NetFlow, section IV-C, Fig. 4(a)",
    about: "Weibull(0.6) delays, 1 % of packets metered: error of the mean delay of flows with \
            two or more metered packets.",
    seeds: Seeds { quick: 2, full: 5 },
    trial,
    claims: &[
        Claim {
            claim: "Multiflow, median error",
            published: "10 %",
            value: "multiflow",
            holds: Holds::Between(0.08, 0.15),
            note: "",
        },
        Claim {
            claim: "Endpoint, median error",
            published: "50 %",
            value: "endpoint",
            holds: Holds::Between(0.5, 0.75),
            note: "depends on the population: the mean of two Weibull delays is off by two thirds \
                   for large flows, and by nothing for flows of two packets, of which ours, with \
                   two or more metered packets, has hardly any",
        },
    ],
    figures,
};

fn trial(setting: Setting) -> Trial {
    let run = Run::new(&super::weibull(setting), &config("sampling = 0.01"));
    let mut trial = Trial::default();
    for estimator in ["multiflow", "endpoint", "hybrid"] {
        let errors = run.errors(&run.means(estimator), |flow| flow.metered >= 2);
        trial.value(estimator, median(errors.clone()));
        trial.curves.insert(estimator.to_owned(), distribution(errors));
    }
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    // Distributions of several seeds have no common x: the first stands for all.
    let series = |name| Curve::first_trial(summary, name, name);
    vec![Figure {
        name: "cnf-weibull".to_owned(),
        title: "Flows by error of their mean delay, Weibull delays, 1 % of packets".to_owned(),
        x: Axis::logarithmic("relative error"),
        y: Axis::linear("share of flows"),
        series: vec![
            series("multiflow"),
            series("endpoint"),
            Curve::published("published medians", &[(0.1, 0.5), (0.5, 0.5)]),
        ],
    }]
}
