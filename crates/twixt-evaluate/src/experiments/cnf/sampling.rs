//! How the error depends on the share of packets that are metered.

use twixt_sim::Loss;

use super::{Run, config, droptail, median, traffic};
use crate::claim::{Claim, Holds};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Figure, Series};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "cnf-sampling",
    algorithm: "Consistent NetFlow",
    paper: "Consistent NetFlow, section IV-D, Fig. 10",
    about: "A drop-tail queue at 85 % load, 0.1 to 10 % of packets metered: median error of \
            Multiflow for flows above 100 packets.",
    seeds: Seeds { quick: 1, full: 3 },
    trial,
    claims: &[Claim {
        claim: "ten times the packets, from 1 to 10 %: error at 10 % over error at 1 %",
        published: "stable from 1 % on (CHIC)",
        value: "10 % over 1 %",
        holds: Holds::Between(0.3, 1.3),
        note: "",
    }],
    figures,
};

const RATES: [f64; 5] = [0.001, 0.003, 0.01, 0.03, 0.1];

fn trial(setting: Setting) -> Trial {
    let simulation = traffic(setting, droptail(0.85, 10_000), Loss::None);
    let mut trial = Trial::default();
    for rate in RATES {
        let run = Run::new(&simulation, &config(&format!("sampling = {rate}")));
        let error = median(run.errors(&run.means("multiflow"), |size| size > 100));
        trial.value(format!("multiflow@{rate}"), error);
        trial.point("multiflow", rate, error);
    }
    let of = |name: &str| trial.values.get(name).copied();
    let ratio = of("multiflow@0.1").zip(of("multiflow@0.01")).map(|(most, some)| most / some);
    trial.value("10 % over 1 %", ratio);
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    vec![Figure {
        name: "cnf-sampling".to_owned(),
        title: "Multiflow by share of metered packets, flows above 100 packets".to_owned(),
        x: Axis::logarithmic("share of packets metered"),
        y: Axis::logarithmic("median relative error"),
        series: vec![Series::curve(summary, "multiflow", "multiflow")],
    }]
}
