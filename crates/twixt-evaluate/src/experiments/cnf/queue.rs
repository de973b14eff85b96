//! A real queue at 85 % load: flows against each other, and against the rivals.

use twixt_model::ClassId;
use twixt_sim::Loss;
use twixt_synopsis::cnf::rivals::{
    Means, ReferenceRate, active_packets, interpolation, mean_of_all, reference_interpolation,
    trajectory_sampling,
};
use twixt_synopsis::cnf::Endpoints;

use super::{OFFERED_BITS, Run, config, distribution, droptail, median, traffic};
use crate::claim::{Claim, Holds};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Figure, Series};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "cnf-queue",
    algorithm: "Consistent NetFlow",
    paper: "Consistent NetFlow, section IV-C, Fig. 3 and 9",
    about: "A drop-tail queue of 10 000 packets at about 85 % load, 1 % of packets metered: error \
            of the mean delay, beside active test packets, trajectory sampling, interpolation \
            between the ends of records, and reference packets (RLI).",
    seeds: Seeds { quick: 2, full: 5 },
    trial,
    claims: &[
        claim("Multiflow, flows of 1000 packets and more", "–", "multiflow, 1000+", Holds::AtMost(0.12)),
        claim("Endpoint is several times worse there", "3 to 5 times", "endpoint over multiflow, 1000+", Holds::AtLeast(2.0)),
        claim("active test packets, all metered flows", "67 %", "active", Holds::AtLeast(0.3)),
        claim("Multiflow, all metered flows", "17 %", "multiflow", Holds::AtMost(0.25)),
        claim("interpolation, flows of 100 packets and more", "1.5 %", "interpolation, 100+", Holds::AtMost(0.05)),
        claim("Multiflow over interpolation, 100 and more", "8 to 10 times", "multiflow over interpolation, 100+", Holds::AtLeast(1.0)),
        claim("trajectory sampling over Multiflow, 100 and more", "4 times", "trajectory over multiflow, 100+", Holds::AtLeast(1.5)),
        claim("realised load of the queue", "–", "load", Holds::Between(0.8, 0.9)),
        claim("packets lost", "0 %", "lost", Holds::AtMost(0.001)),
    ],
    figures,
};

const fn claim(
    claim: &'static str,
    published: &'static str,
    value: &'static str,
    holds: Holds,
) -> Claim {
    Claim { claim, published, value, holds, note: "" }
}

const LOAD: f64 = 0.85;

fn trial(setting: Setting) -> Trial {
    let simulation = traffic(setting, droptail(LOAD, 10_000), Loss::None);
    let config = config("sampling = 0.01");
    let run = Run::new(&simulation, &config);
    let mut trial = Trial::default();
    trial.value("lost", run.lost_share);
    trial.value("load", load(&run));
    let metered = run.means("multiflow");
    let for_all = |mean: Option<f64>| -> Means {
        metered.keys().filter_map(|flow| Some((*flow, mean?))).collect()
    };
    // As many test packets as Multiflow has delays, as in the paper.
    let pairs = run.upstream.associated_with(&run.downstream);
    let spacing = run.packets.len() / (2 * pairs.len()).max(1);
    let endpoints = Endpoints::new(&pairs, 0.0);
    let line = OFFERED_BITS / LOAD;
    let ways: [(&str, Means); 9] = [
        ("multiflow", metered.clone()),
        ("endpoint", run.means("endpoint")),
        ("hybrid", run.means("hybrid")),
        ("active", for_all(active_packets(&run.packets, spacing))),
        ("mean of all", for_all(mean_of_all(&run.packets))),
        ("interpolation", interpolation(&run.packets, ClassId(0), &endpoints)),
        (
            "trajectory",
            trajectory_sampling(&run.packets, |packet| {
                config.selects(&twixt_model::Observation {
                    digest: packet.digest,
                    ..twixt_model::Observation::default()
                })
            }),
        ),
        ("reference, static", reference_interpolation(&run.packets, ReferenceRate::Static(100))),
        (
            "reference, adaptive",
            reference_interpolation(
                &run.packets,
                ReferenceRate::Adaptive { line_bits_per_second: line },
            ),
        ),
    ];
    for (name, means) in &ways {
        let of_metered = means.iter().filter(|(flow, _)| metered.contains_key(flow));
        let means: Means = of_metered.map(|(flow, mean)| (*flow, *mean)).collect();
        for (suffix, least) in [("", 1), (", 100+", 100), (", 1000+", 1000)] {
            let errors = run.errors(&means, |size| size >= least);
            if least == 100 {
                trial.curves.insert((*name).to_owned(), distribution(errors.clone()));
            }
            trial.value(format!("{name}{suffix}"), median(errors));
        }
    }
    ratio(&mut trial, "endpoint over multiflow, 1000+", "endpoint, 1000+", "multiflow, 1000+");
    ratio(
        &mut trial,
        "multiflow over interpolation, 100+",
        "multiflow, 100+",
        "interpolation, 100+",
    );
    ratio(&mut trial, "trajectory over multiflow, 100+", "trajectory, 100+", "multiflow, 100+");
    trial
}

fn ratio(trial: &mut Trial, name: &str, over: &str, under: &str) {
    let of = |name: &str| trial.values.get(name).copied();
    let ratio = of(over).zip(of(under)).map(|(over, under)| over / under);
    trial.value(name, ratio);
}

/// Share of the line's time in which it was sending.
fn load(run: &Run) -> Option<f64> {
    let bits: f64 = run.packets.iter().map(|packet| f64::from(packet.length) * 8.0).sum();
    let (first, last) = (run.packets.first()?, run.packets.last()?);
    let seconds = (last.sent - first.sent).as_nanos() as f64 / 1e9;
    Some(bits / seconds / (OFFERED_BITS / LOAD))
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let names = ["multiflow", "interpolation", "trajectory", "active", "reference, static"];
    let series = names.map(|name| Series::first_trial(summary, name, name));
    vec![Figure {
        name: "cnf-queue".to_owned(),
        title: "Flows of 100 packets and more by error of their mean delay, drop-tail at 85 % load"
            .to_owned(),
        x: Axis::logarithmic("relative error"),
        y: Axis::linear("share of flows"),
        series: series
            .into_iter()
            .chain([Series::published(
                "published medians",
                &[(0.015, 0.5), (0.15, 0.5), (0.62, 0.5)],
            )])
            .collect(),
    }]
}
