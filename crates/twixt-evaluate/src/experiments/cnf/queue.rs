//! A real queue at 85 % load: flows against each other, and against the rivals.

use twixt_synopsis::CnfConfig;

use super::ways::{load, ways};
use super::{
    DROPTAIL, OFFERED_BITS, Run, SHORT_BURSTS, bursty_queue, config, distribution, median, queue,
    ratio,
};
use crate::claim::{Claim, Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure, Mark};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "cnf-queue",
    algorithm: "Consistent NetFlow",
    paper: "Consistent NetFlow, section IV-C, Fig. 3 and 9",
    about: "A drop-tail queue of 10 000 packets at about 85 % load, 1 % of packets metered: error \
         of the mean delay of flows with two or more metered packets, compared with active test \
         packets, trajectory sampling, interpolation between the ends of records, and reference \
         packets (RLI).",
    seeds: Seeds { quick: 2, full: 5 },
    trial,
    claims: &[
        claim("Multiflow, 1000 packets and more", "–", "multiflow, 1000+", Holds::AtMost(0.12)),
        claim(
            "Endpoint over Multiflow, 1000 packets and more",
            "3 times (WISC), 5 times (Weibull), all flows",
            "endpoint over multiflow, 1000+",
            Holds::AtLeast(3.0),
        ),
        claim("Multiflow, flows of any size", "17 %", "multiflow", Holds::AtMost(0.25)),
        claim("active test packets, flows of any size", "67 %", "active", Holds::AtLeast(0.5)),
        claim(
            "active test packets over Multiflow",
            "4 times",
            "active over multiflow",
            Holds::AtLeast(2.0),
        ),
        Claim {
            claim: "Multiflow, flows of any size, one metered packet too",
            published: "17 %",
            value: "multiflow, every metered flow",
            holds: Holds::AtMost(0.25),
            note: "most metered flows have one metered packet, and so one delay, which is off by \
                   half; the published flows seem to have two or more",
        },
        Claim {
            claim: "active test packets over Multiflow, load that varies within milliseconds only",
            published: "4 times",
            value: "active over multiflow, short bursts",
            holds: Holds::AtLeast(2.0),
            note: "with bursts of 8 packets all flows of some length see the same mean delay, and \
                 one number for all is as good as Multiflow: its advantage needs slowly changing \
                 load",
        },
        Claim {
            claim: "interpolation, 100 packets and more",
            published: "1.5 %",
            value: "interpolation, 100+",
            holds: Holds::AtMost(0.02),
            note: "delays are some 0.3 ms apart when 1 % of packets are metered, and our queue \
                   moves in between: the error falls with their spacing (cnf-sampling, where it \
                   is halved with 10 %)",
        },
        Claim {
            claim: "Multiflow over interpolation, 100 packets and more",
            published: "8 to 10 times (CHIC), 2 times (IPLS)",
            value: "multiflow over interpolation, 100+",
            holds: Holds::AtLeast(2.0),
            note: "between the published factors of two traces: it depends on how fast the queue \
                 moves",
        },
        Claim {
            claim: "trajectory sampling over Multiflow, 100 packets and more",
            published: "4 times (CHIC), 3 times (IPLS)",
            value: "trajectory over multiflow, 100+",
            holds: Holds::AtLeast(1.5),
            note: "order as published; the factor is smaller here, as flows of 100 packets have \
                   two or three metered packets, and last no longer than the queue takes to change",
        },
        claim("realised load of the queue", "–", "load", Holds::Between(0.8, 0.9)),
        claim("packets lost", "0 %", "lost", Holds::AtMost(0.001)),
    ],
    figures,
};

const LOAD: f64 = 0.85;
const LINE_BITS: f64 = OFFERED_BITS / LOAD;

fn trial(setting: Setting) -> Trial {
    let config = config("sampling = 0.01");
    let run = Run::new(&queue(setting, DROPTAIL, LOAD), &config);
    let mut trial = Trial::default();
    trial.value("lost", run.lost_share);
    trial.value("load", load(&run, LINE_BITS));
    for (name, means) in ways(&run, &config, LINE_BITS) {
        for (suffix, least) in [("", 1), (", 100+", 100), (", 1000+", 1000)] {
            let errors = run.errors(&means, |flow| flow.size >= least && flow.metered >= 2);
            if least == 100 {
                trial.curves.insert(name.to_owned(), distribution(errors.clone()));
            }
            trial.value(format!("{name}{suffix}"), median(errors));
        }
    }
    let multiflow = run.means("multiflow");
    for (flow, mean_ns) in multiflow.iter().take(SCATTERED) {
        if let Some(&true_ns) = run.truth.get(flow) {
            trial.point("scatter", true_ns / 1e6, mean_ns / 1e6);
        }
    }
    let every = run.errors(&multiflow, |_| true);
    trial.value("multiflow, every metered flow", median(every));
    trial.value("active over multiflow, short bursts", short_bursts(setting, &config));
    for (over, under, suffix) in [
        ("endpoint", "multiflow", ", 1000+"),
        ("active", "multiflow", ""),
        ("multiflow", "interpolation", ", 100+"),
        ("trajectory", "multiflow", ", 100+"),
    ] {
        let name = format!("{over} over {under}{suffix}");
        ratio(&mut trial, &name, &format!("{over}{suffix}"), &format!("{under}{suffix}"));
    }
    trial
}

/// Flows that are drawn, in the order of their hashes: any.
const SCATTERED: usize = 1000;

/// Active test packets over Multiflow, where load varies within milliseconds only.
fn short_bursts(setting: Setting, config: &CnfConfig) -> Option<f64> {
    let run = Run::new(&bursty_queue(setting, DROPTAIL, LOAD, SHORT_BURSTS), config);
    let error = |name: &str| {
        let (_, means) = ways(&run, config, LINE_BITS).into_iter().find(|(way, _)| *way == name)?;
        median(run.errors(&means, |flow| flow.metered >= 2))
    };
    Some(error("active")? / error("multiflow")?)
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let names = ["multiflow", "interpolation", "trajectory", "active", "reference, static"];
    let series = names.map(|name| Curve::first_trial(summary, name, name));
    let scatter = Figure {
        name: "cnf-queue-scatter".to_owned(),
        title: "Mean delay of flows: Multiflow against the truth".to_owned(),
        x: Axis::logarithmic("true mean delay (ms)"),
        y: Axis::logarithmic("estimated mean delay (ms)"),
        series: vec![
            Curve { mark: Mark::Points, ..Curve::first_trial(summary, "scatter", "flows") },
            Curve {
                label: "exact".to_owned(),
                mark: Mark::Line,
                points: vec![(0.1, 0.1, 0.0), (100.0, 100.0, 0.0)],
            },
        ],
    };
    let distribution = Figure {
        name: "cnf-queue".to_owned(),
        title: "Flows of 100 packets and more by error of their mean delay, drop-tail at 85 % load"
            .to_owned(),
        x: Axis::logarithmic("relative error"),
        y: Axis::linear("share of flows"),
        series: series
            .into_iter()
            .chain([Curve::published(
                "published medians",
                &[(0.015, 0.5), (0.15, 0.5), (0.62, 0.5)],
            )])
            .collect(),
    };
    vec![distribution, scatter]
}
