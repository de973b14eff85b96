//! A fuller queue loses more, and is easier to predict.

use super::{RED, Run, config, median, queue};
use crate::claim::{Claim, Holds};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure, Mark};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "cnf-loss",
    algorithm: "Consistent NetFlow",
    paper: "Consistent NetFlow, section IV-D, Fig. 11",
    about: "A RED queue (10 000 packets, thresholds 4000 and 9000) that drains ever more slowly, \
            1 % of packets metered: median error of Multiflow for flows above 100 packets against \
            the loss that results.",
    seeds: Seeds { quick: 2, full: 3 },
    trial,
    claims: &[Claim {
        claim: "error at the highest loss over error at the lowest",
        published: "falls with loss",
        value: "error, fullest over emptiest",
        holds: Holds::AtMost(1.0),
        note: "",
    }],
    figures,
};

const LOADS: [f64; 5] = [0.85, 0.95, 1.0, 1.03, 1.06];

fn trial(setting: Setting) -> Trial {
    let mut trial = Trial::default();
    let mut errors = Vec::new();
    for load in LOADS {
        let run = Run::new(&queue(setting, RED, load), &config("sampling = 0.01"));
        let error = median(
            run.errors(&run.means("multiflow"), |flow| flow.size > 100 && flow.metered >= 2),
        );
        trial.value(format!("lost@{load}"), run.lost_share);
        trial.value(format!("multiflow@{load}"), error);
        trial.point("multiflow", load, error);
        errors.extend(error);
    }
    if let (Some(first), Some(last)) = (errors.first(), errors.last()) {
        trial.value("error, fullest over emptiest", last / first);
    }
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let point = |load: &f64| {
        let lost = summary.value(&format!("lost@{load}"))?.mean;
        let error = summary.value(&format!("multiflow@{load}"))?;
        Some((lost, error.mean, error.spread))
    };
    let points = LOADS.iter().filter_map(point).collect();
    vec![Figure {
        name: "cnf-loss".to_owned(),
        title: "Multiflow by loss of a RED queue, flows above 100 packets".to_owned(),
        x: Axis::linear("loss (share of packets)"),
        y: Axis::logarithmic("median relative error"),
        series: vec![Curve { label: "multiflow".to_owned(), mark: Mark::Line, points }],
    }]
}
