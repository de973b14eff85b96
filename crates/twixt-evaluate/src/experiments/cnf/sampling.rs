//! How the error depends on the share of packets that are metered.

use twixt_model::ClassId;
use twixt_synopsis::cnf::Endpoints;
use twixt_synopsis::cnf::rivals::interpolation;

use super::{DROPTAIL, Run, config, median, queue, ratio};
use crate::claim::{Claim, Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "cnf-sampling",
    algorithm: "Consistent NetFlow",
    paper: "Consistent NetFlow, section IV-D, Fig. 10",
    about: "A drop-tail queue at 85 % load, 0.1 to 10 % of packets metered: median error for \
            flows above 100 packets of which two or more were metered.",
    seeds: Seeds { quick: 1, full: 3 },
    trial,
    claims: &[
        claim(
            "Multiflow, 1 % over 0.1 %",
            "falls with the rate",
            "multiflow, 1 % over 0.1 %",
            Holds::AtMost(1.0),
        ),
        Claim {
            claim: "Multiflow, 10 % over 1 %",
            published: "stable from 1 % on (CHIC)",
            value: "multiflow, 10 % over 1 %",
            holds: Holds::Between(0.7, 1.3),
            note: "it continues to fall: with 10 % a flow of 100 packets has ten metered packets, \
                 and its record covers nearly all of its lifetime",
        },
    ],
    figures,
};

const RATES: [f64; 5] = [0.001, 0.003, 0.01, 0.03, 0.1];

fn trial(setting: Setting) -> Trial {
    let simulation = queue(setting, DROPTAIL, 0.85);
    let mut trial = Trial::default();
    for rate in RATES {
        let run = Run::new(&simulation, &config(&format!("sampling = {rate}")));
        let pairs = run.upstream.associated_with(&run.downstream);
        let line = interpolation(&run.packets, ClassId::default(), &Endpoints::new(&pairs, 0.0));
        for (name, means) in [("multiflow", run.means("multiflow")), ("interpolation", line)] {
            let error = median(run.errors(&means, |flow| flow.size > 100 && flow.metered >= 2));
            trial.value(format!("{name}@{rate}"), error);
            trial.point(name, rate, error);
        }
    }
    ratio(&mut trial, "multiflow, 1 % over 0.1 %", "multiflow@0.01", "multiflow@0.001");
    ratio(&mut trial, "multiflow, 10 % over 1 %", "multiflow@0.1", "multiflow@0.01");
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    vec![Figure {
        name: "cnf-sampling".to_owned(),
        title: "Error by share of metered packets, flows above 100 packets".to_owned(),
        x: Axis::logarithmic("share of packets metered"),
        y: Axis::logarithmic("median relative error"),
        series: ["multiflow", "interpolation"]
            .map(|name| Curve::of_trials(summary, name, name))
            .into(),
    }]
}
