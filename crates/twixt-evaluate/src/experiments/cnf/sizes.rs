//! Error by flow size: where two own delays are better than many of others.

use super::{Run, config, median, ratio};
use crate::claim::{Claim, Holds};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "cnf-sizes",
    algorithm: "Consistent NetFlow",
    paper: "Consistent NetFlow, section IV-C, Fig. 6",
    about: "Weibull(0.6) delays, 10 % of flows metered with all of their packets: median error of \
            the mean delay by flow size.",
    seeds: Seeds { quick: 2, full: 5 },
    trial,
    claims: &[
        Claim {
            claim: "flows of two packets: Endpoint is exact",
            published: "exact",
            value: "endpoint, 2",
            holds: Holds::AtMost(1e-9),
            note: "",
        },
        Claim {
            claim: "Endpoint over Multiflow, flows of 3 packets",
            published: "below 1",
            value: "endpoint over multiflow, 3",
            holds: Holds::AtMost(1.0),
            note: "",
        },
        Claim {
            claim: "Endpoint over Multiflow, flows of 200 packets and more",
            published: "above 1, and growing",
            value: "endpoint over multiflow, 200+",
            holds: Holds::AtLeast(2.0),
            note: "",
        },
        Claim {
            claim: "Endpoint over Multiflow, flows of 8 to 15 packets",
            published: "above 1",
            value: "endpoint over multiflow, 8-15",
            holds: Holds::AtLeast(1.2),
            note: "",
        },
        Claim {
            claim: "Multiflow, flows of 200 packets and more",
            published: "< 10 %",
            value: "multiflow, 200+",
            holds: Holds::AtMost(0.1),
            note: "",
        },
        Claim {
            claim: "Multiflow, 200 and more over 8 to 15 packets",
            published: "falls with size",
            value: "multiflow, large over small",
            holds: Holds::AtMost(0.5),
            note: "",
        },
        Claim {
            claim: "Hybrid over the better of both, any size (worst)",
            published: "1",
            value: "hybrid over best",
            holds: Holds::AtMost(1.1),
            note: "",
        },
    ],
    figures,
};

/// Sizes, from and to.
const CLASSES: [(&str, u64, u64); 9] = [
    ("2", 2, 2),
    ("3", 3, 3),
    ("4", 4, 4),
    ("5-7", 5, 7),
    ("8-15", 8, 15),
    ("16-31", 16, 31),
    ("32-99", 32, 99),
    ("100-199", 100, 199),
    ("200+", 200, u64::MAX),
];
const ESTIMATORS: [&str; 3] = ["endpoint", "multiflow", "hybrid"];

fn trial(setting: Setting) -> Trial {
    let settings = config("sampling = 0.1\nselect = \"flow\"");
    let run = Run::new(&super::weibull(setting), &settings);
    let means = ESTIMATORS.map(|estimator| run.means(estimator));
    let mut trial = Trial::default();
    let mut worst: f64 = 0.0;
    for (name, from, to) in CLASSES {
        let errors = means.each_ref().map(|means| {
            median(run.errors(means, |flow| (from..=to).contains(&flow.size))).unwrap_or(f64::NAN)
        });
        for (estimator, error) in ESTIMATORS.iter().zip(errors) {
            trial.value(format!("{estimator}, {name}"), error);
            trial.point(estimator, from as f64, error);
        }
        let [endpoint, multiflow, hybrid] = errors;
        trial.value(format!("endpoint over multiflow, {name}"), endpoint / multiflow);
        let best = endpoint.min(multiflow);
        // Both may be exact: then so is the hybrid.
        worst = worst.max(if best > 0.0 { hybrid / best } else { 1.0 + hybrid });
    }
    trial.value("hybrid over best", worst);
    ratio(&mut trial, "multiflow, large over small", "multiflow, 200+", "multiflow, 8-15");
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    vec![Figure {
        name: "cnf-sizes".to_owned(),
        title: "Error of the mean delay by flow size, Weibull delays, whole flows".to_owned(),
        x: Axis::logarithmic("packets of the flow, at least"),
        y: Axis::logarithmic("median relative error"),
        series: ESTIMATORS.map(|name| Curve::of_trials(summary, name, name)).into(),
    }]
}
