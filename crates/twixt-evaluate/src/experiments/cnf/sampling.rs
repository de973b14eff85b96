//! How the error depends on the share of packets that are metered.

use twixt_model::ClassId;
use twixt_synopsis::cnf::Endpoints;
use twixt_synopsis::cnf::rivals::interpolation;

use super::{RED, Run, config, queue, ratio};
use crate::claim::{Claim, Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::experiments::segment::quantile;
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "cnf-sampling",
    algorithm: "Consistent NetFlow",
    paper: "Consistent NetFlow, section IV-D, Fig. 10",
    about: "A RED queue (10 000 packets, thresholds 4000 and 9000) at 85 % load, without loss, 0.01 to 10 % of \
            packets metered: median, 25th and 75th percentile of the error for flows above 100 packets, and \
            for smaller ones, of which two or more packets were metered.",
    seeds: Seeds { quick: 2, full: 3 },
    trial,
    claims: &[
        claim("packets lost", "0 %", "lost", Holds::AtMost(0.0)),
        claim(
            "Multiflow, 1 % over 0.1 %",
            "falls with the rate",
            "multiflow, 1 % over 0.1 %",
            Holds::AtMost(1.0),
        ),
        Claim {
            claim: "Multiflow, 10 % over 1 %",
            published: "stable from 1 % on (CHIC), from 0.1 % on (IPLS)",
            value: "multiflow, 10 % over 1 %",
            holds: Holds::Between(0.7, 1.3),
            note: "it continues to fall: with 10 % a flow of 100 packets has ten metered packets, \
                 and its record covers nearly all of its lifetime",
        },
        Claim {
            claim: "Multiflow, 10 % over 1 %: distance of the 75th from the 25th percentile",
            published: "stable from 1 % on (CHIC)",
            value: "multiflow, spread@0.1 / multiflow, spread@0.01",
            holds: Holds::Between(0.7, 1.3),
            note: "as the median",
        },
        Claim {
            claim: "Multiflow, flows of 100 packets and fewer, 10 % over 1 %",
            published: "rises with the rate",
            value: "multiflow, small@0.1 / multiflow, small@0.01",
            holds: Holds::AtLeast(1.0),
            note: "small flows are judged by two or more metered packets here, which at 1 % only the largest of \
                   them have, and these last long; the paper judges whoever has a record",
        },
        claim(
            "the same, flows with one metered packet too",
            "rises with the rate",
            "multiflow, any@0.1 / multiflow, any@0.01",
            Holds::AtLeast(1.0),
        )
        .noting(
            "one delay of its own is what a flow of one packet needs; others get nearer to their mean with every \
             further one",
        ),
    ],
    figures,
};

const RATES: [f64; 7] = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1];
const MOST_OF_SMALL: u64 = 100;

fn trial(setting: Setting) -> Trial {
    let simulation = queue(setting, RED, 0.85);
    let mut trial = Trial::default();
    for rate in RATES {
        let run = Run::new(&simulation, &config(&format!("sampling = {rate}")));
        trial.value("lost", run.lost_share);
        let pairs = run.upstream.associated_with(&run.downstream);
        let line = interpolation(&run.packets, ClassId::default(), &Endpoints::new(&pairs, 0.0));
        let means = run.means("multiflow");
        let large =
            |means| run.errors(means, |flow| flow.size > MOST_OF_SMALL && flow.metered >= 2);
        note(&mut trial, "multiflow", rate, &large(&means));
        note(&mut trial, "interpolation", rate, &large(&line));
        let small = run.errors(&means, |flow| flow.size <= MOST_OF_SMALL && flow.metered >= 2);
        note(&mut trial, "multiflow, small", rate, &small);
        let any = run.errors(&means, |flow| flow.size <= MOST_OF_SMALL);
        note(&mut trial, "multiflow, any", rate, &any);
    }
    ratio(&mut trial, "multiflow, 1 % over 0.1 %", "multiflow@0.01", "multiflow@0.001");
    ratio(&mut trial, "multiflow, 10 % over 1 %", "multiflow@0.1", "multiflow@0.01");
    trial
}

fn note(trial: &mut Trial, name: &str, rate: f64, errors: &[f64]) {
    let [low, middle, high] = [0.25, 0.5, 0.75].map(|share| quantile(errors.to_vec(), share));
    trial.value(format!("{name}@{rate}"), middle);
    trial.value(format!("{name}, spread@{rate}"), high.zip(low).map(|(high, low)| high - low));
    trial.point(name, rate, middle);
    trial.point(&format!("{name}, 25 %"), rate, low);
    trial.point(&format!("{name}, 75 %"), rate, high);
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let curves = [
        ("multiflow", "Multiflow, flows above 100 packets"),
        ("multiflow, 25 %", "the same, 25th percentile"),
        ("multiflow, 75 %", "the same, 75th percentile"),
        ("multiflow, small", "Multiflow, smaller flows"),
        ("multiflow, any", "the same, one metered packet too"),
        ("interpolation", "interpolation, flows above 100 packets"),
    ];
    vec![Figure {
        name: "cnf-sampling".to_owned(),
        title: "Error by share of metered packets, RED at 85 % load".to_owned(),
        x: Axis::logarithmic("share of packets metered"),
        y: Axis::logarithmic("relative error"),
        series: curves.map(|(name, label)| Curve::of_trials(summary, name, label)).into(),
    }]
}
