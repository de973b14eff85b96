//! A queue that drops early (RED), at a load at which it does not yet.

use super::ways::{load, ways};
use super::{OFFERED_BITS, RED, Run, config, distribution, median, queue, ratio};
use crate::claim::{Claim, Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "cnf-red",
    algorithm: "Consistent NetFlow",
    paper: "Consistent NetFlow, section IV-C, Fig. 9",
    about: "A RED queue (10 000 packets, thresholds 4000 and 9000) at about 85 % load, 1 % of \
            packets metered: error of the mean delay of flows of 100 packets and more with two or \
            more metered packets.",
    seeds: Seeds { quick: 2, full: 5 },
    trial,
    claims: &[
        Claim {
            claim: "interpolation, 100 packets and more",
            published: "1.5 %",
            value: "interpolation",
            holds: Holds::AtMost(0.02),
            note: "as in cnf-queue: delays are some 0.3 ms apart, and the queue moves in between",
        },
        claim("Multiflow, 100 packets and more", "15 %", "multiflow", Holds::AtMost(0.25)),
        Claim {
            claim: "trajectory sampling, 100 packets and more",
            published: "62 %",
            value: "trajectory",
            holds: Holds::AtLeast(0.3),
            note: "",
        },
        claim(
            "Multiflow over interpolation",
            "10 times (CHIC), 2 times (IPLS)",
            "multiflow over interpolation",
            Holds::AtLeast(1.5),
        ),
        claim(
            "trajectory sampling over Multiflow",
            "4 times (CHIC), 3 times (IPLS)",
            "trajectory over multiflow",
            Holds::AtLeast(1.5),
        ),
        claim("Endpoint over Multiflow", "above 1", "endpoint over multiflow", Holds::AtLeast(2.0)),
        claim(
            "active test packets over Multiflow",
            "above 1",
            "active over multiflow",
            Holds::AtLeast(2.0),
        ),
        claim("realised load of the queue", "–", "load", Holds::Between(0.8, 0.9)),
        claim("packets lost", "0 %", "lost", Holds::AtMost(0.001)),
    ],
    figures,
};

const LOAD: f64 = 0.85;

fn trial(setting: Setting) -> Trial {
    let config = config("sampling = 0.01");
    let run = Run::new(&queue(setting, RED, LOAD), &config);
    let line_bits = OFFERED_BITS / LOAD;
    let mut trial = Trial::default();
    trial.value("lost", run.lost_share);
    trial.value("load", load(&run, line_bits));
    for (name, means) in ways(&run, &config, line_bits) {
        let errors = run.errors(&means, |flow| flow.size >= 100 && flow.metered >= 2);
        trial.curves.insert(name.to_owned(), distribution(errors.clone()));
        trial.value(name, median(errors));
    }
    for (over, under) in [
        ("multiflow", "interpolation"),
        ("trajectory", "multiflow"),
        ("endpoint", "multiflow"),
        ("active", "multiflow"),
    ] {
        ratio(&mut trial, &format!("{over} over {under}"), over, under);
    }
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let names = ["multiflow", "endpoint", "interpolation", "trajectory", "active"];
    let published =
        Curve::published("published medians", &[(0.015, 0.5), (0.15, 0.5), (0.62, 0.5)]);
    let series = names.map(|name| Curve::first_trial(summary, name, name));
    vec![Figure {
        name: "cnf-red".to_owned(),
        title: "Flows of 100 packets and more by error of their mean delay, RED at 85 % load"
            .to_owned(),
        x: Axis::logarithmic("relative error"),
        y: Axis::linear("share of flows"),
        series: series.into_iter().chain([published]).collect(),
    }]
}
