//! The deviation of delays, and in which direction correlation moves it.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use twixt_model::{ClassId, Delay, FlowHash, Timestamp};
use twixt_synopsis::cnf::{Endpoints, Sums};

use super::ways::load;
use super::{OFFERED_BITS, RED, Run, config, distribution, median, queue, ratio};
use crate::claim::{Claim, Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure, Mark};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "cnf-deviation",
    algorithm: "Consistent NetFlow",
    paper: "Consistent NetFlow, sections III-G and IV-E, Fig. 13 and 14",
    about: "A RED queue that drains ever more slowly, 1 % of packets metered: error of the \
         deviation of flows above 100 packets of which two or more were metered, and the visible \
         share of the variance of delays.",
    seeds: Seeds { quick: 2, full: 3 },
    trial,
    claims: &[
        Claim {
            claim: "Multiflow, no loss",
            published: "< 20 %",
            value: "multiflow@0.85",
            holds: Holds::AtMost(0.25),
            note: "",
        },
        claim("Endpoint, no loss", "at least 50 %", "endpoint@0.85", Holds::AtLeast(0.5)),
        claim(
            "Endpoint over Multiflow, no loss",
            "above 1",
            "endpoint over multiflow",
            Holds::AtLeast(1.5),
        ),
        claim(
            "Multiflow, 1000 packets and more over 100 to 200",
            "falls with size",
            "multiflow, large over small",
            Holds::AtMost(0.8),
        ),
        Claim {
            claim: "Multiflow, error at the highest loss over error without loss",
            published: "falls with loss, and rises a little at 4 to 5 %",
            value: "multiflow, fullest over emptiest",
            holds: Holds::AtMost(1.0),
            note: "metered packets of these flows span a part of their time (below), and a full \
                 queue moves slowly: delays of a shorter time deviate less. On average the missing \
                 time is made up for; how long it is for each flow is not known. With the true \
                 times of flows, the error does fall, as published (below)",
        },
        claim(
            "the same if the first and the last packet of every flow were metered",
            "falls with loss",
            "whole flows, fullest over emptiest",
            Holds::AtMost(1.0),
        ),
        Claim {
            claim: "share of the time of flows between their metered packets, no loss",
            published: "not stated",
            value: "metered share@0.85",
            holds: Holds::AtMost(0.8),
            note: "",
        },
        Claim {
            claim: "ten delays with a correlation of 0.6: visible share of their variance",
            published: "above 1: conservative",
            value: "shown@0.6",
            holds: Holds::AtLeast(1.0),
            note: "the printed direction is reversed: E[s²] = Var (1 − r), so with r = 0.3, 0.6 \
                   and 0.9 it is 0.70, 0.40 and 0.10, and the deviation is no proof that a bound \
                   was kept",
        },
        Claim {
            claim: "variance of flows as estimated, of the variance of all delays",
            published: "above 1: conservative",
            value: "variance of flows over that of all",
            holds: Holds::AtLeast(1.0),
            note: "a flow sees the queue only for a short time, and its delays are similar",
        },
        Claim {
            claim: "WISC-R1 to R3",
            published: "falls with loss",
            value: "",
            holds: Holds::Cannot,
            note: "the traces of these routers are not available; the curve over loads replaces \
                 them",
        },
    ],
    figures,
};

const LOADS: [f64; 4] = [0.85, 1.0, 1.03, 1.06];
const ESTIMATORS: [&str; 2] = ["multiflow", "endpoint"];
const CORRELATIONS: [f64; 3] = [0.3, 0.6, 0.9];

fn trial(setting: Setting) -> Trial {
    let mut trial = Trial::default();
    for load in LOADS {
        at_load(&mut trial, setting, load);
    }
    ratio(&mut trial, "endpoint over multiflow", "endpoint@0.85", "multiflow@0.85");
    ratio(&mut trial, "multiflow, large over small", "multiflow, 1000+", "multiflow, 100-200");
    ratio(&mut trial, "multiflow, fullest over emptiest", "multiflow@1.06", "multiflow@0.85");
    ratio(&mut trial, "whole flows, fullest over emptiest", "whole flows@1.06", "whole flows@0.85");
    ratio(
        &mut trial,
        "deviation, fullest over emptiest",
        "true deviation in us@1.06",
        "true deviation in us@0.85",
    );
    for correlation in CORRELATIONS {
        trial.value(format!("shown@{correlation}"), shown(setting.seed, correlation));
    }
    trial
}

fn at_load(trial: &mut Trial, setting: Setting, offered: f64) {
    let run = Run::new(&queue(setting, RED, offered), &config("sampling = 0.01"));
    trial.value(format!("lost@{offered}"), run.lost_share);
    trial.value(format!("load@{offered}"), load(&run, OFFERED_BITS / offered));
    let truth = deviations(&run);
    for estimator in ESTIMATORS {
        let found = run.deviations(estimator);
        let errors = |from: u64, to: u64| -> Vec<f64> {
            let judged = found.iter().filter(|(flow, _)| {
                let counted = run.counted[*flow];
                counted.metered >= 2 && (from..=to).contains(&counted.size)
            });
            let error = |(flow, found_ns): (_, &f64)| {
                let true_ns = truth.get(flow).filter(|&&true_ns| true_ns > 0.0)?;
                Some((found_ns / true_ns - 1.0).abs())
            };
            judged.filter_map(error).collect()
        };
        let all = errors(101, u64::MAX);
        if estimator == "multiflow" {
            with_whole_flows(trial, &run, offered, &truth);
        }
        trial.value(format!("{estimator}@{offered}"), median(all.clone()));
        trial.curves.insert(format!("{estimator}@{offered}"), distribution(all));
        if offered == LOADS[0] && estimator == "multiflow" {
            trial.value("multiflow, 100-200", median(errors(100, 200)));
            trial.value("multiflow, 1000+", median(errors(1000, u64::MAX)));
            let large = found.iter().filter(|(flow, _)| run.counted[*flow].metered >= 2);
            trial.value("variance of flows over that of all", over_all(&run, large));
        }
    }
}

/// What the error would be if it were known when flows begin and end, and not only when their metered
/// packets passed; and the share of their time that lies between these.
fn with_whole_flows(trial: &mut Trial, run: &Run, offered: f64, truth: &BTreeMap<FlowHash, f64>) {
    let pairs = run.upstream.associated_with(&run.downstream);
    let endpoints = Endpoints::new(&pairs, 0.0);
    let mut times: BTreeMap<FlowHash, (Timestamp, Timestamp)> = BTreeMap::new();
    for packet in &run.packets {
        let (_, last) = times.entry(packet.flow).or_insert((packet.sent, packet.sent));
        *last = packet.sent;
    }
    let (mut errors, mut deviations, mut shares) = (Vec::new(), Vec::new(), Vec::new());
    for pair in &pairs {
        let Some(flow) = run.hashes.get(&pair.upstream.key) else { continue };
        let (Some(&true_ns), Some(&(first, last))) = (truth.get(flow), times.get(flow)) else {
            continue;
        };
        let counted = run.counted[flow];
        if counted.metered < 2 || counted.size <= 100 || true_ns <= 0.0 {
            continue;
        }
        let found = endpoints.between(ClassId::default(), first, last).deviation_ns();
        errors.extend(found.map(|found_ns| (found_ns / true_ns - 1.0).abs()));
        deviations.push(true_ns / 1e3);
        let metered = (pair.upstream.last - pair.upstream.first).as_nanos() as f64;
        shares.push(metered / ((last - first).as_nanos() as f64).max(1.0));
    }
    trial.value(format!("whole flows@{offered}"), median(errors));
    trial.value(format!("true deviation in us@{offered}"), median(deviations));
    trial.value(format!("metered share@{offered}"), median(shares));
}

/// Mean variance of flows over the variance of all delays.
fn over_all<'a>(run: &Run, found: impl Iterator<Item = (&'a FlowHash, &'a f64)>) -> Option<f64> {
    let variances: Vec<f64> = found.map(|(_, deviation_ns)| deviation_ns.powi(2)).collect();
    let mean = variances.iter().sum::<f64>() / variances.len().max(1) as f64;
    let all = Sums::of(run.packets.iter().map(|packet| packet.delay)).deviation_ns()?;
    Some(mean / all.powi(2))
}

/// The true deviation of flows.
fn deviations(run: &Run) -> BTreeMap<FlowHash, f64> {
    let mut delays: BTreeMap<FlowHash, Vec<Delay>> = BTreeMap::new();
    for packet in &run.packets {
        delays.entry(packet.flow).or_default().push(packet.delay);
    }
    let deviation =
        |(flow, delays): (FlowHash, Vec<Delay>)| Some((flow, Sums::of(delays).deviation_ns()?));
    delays.into_iter().filter_map(deviation).collect()
}

/// The mean variance that ten delays of variance 1 show, each two of them with that correlation.
fn shown(seed: u64, correlation: f64) -> f64 {
    const ROUNDS: usize = 4_000;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
    let variance = |_| {
        let shared = normal() * correlation.sqrt();
        let values: [f64; 10] =
            std::array::from_fn(|_| shared + normal() * (1.0 - correlation).sqrt());
        let mean = values.iter().sum::<f64>() / 10.0;
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 9.0
    };
    (0..ROUNDS).map(variance).sum::<f64>() / ROUNDS as f64
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let by_loss = |name: &str| {
        let point = |load: &f64| {
            let lost = summary.value(&format!("lost@{load}"))?.mean;
            let error = summary.value(&format!("{name}@{load}"))?;
            Some((lost, error.mean, error.spread))
        };
        let points = LOADS.iter().filter_map(point).collect();
        Curve { label: name.to_owned(), mark: Mark::Line, points }
    };
    let flows = LOADS.map(|load| {
        Curve::first_trial(summary, &format!("multiflow@{load}"), format!("load {load}"))
    });
    vec![
        Figure {
            name: "cnf-deviation".to_owned(),
            title: "Error of the deviation by loss of a RED queue, flows above 100 packets"
                .to_owned(),
            x: Axis::linear("loss (share of packets)"),
            y: Axis::logarithmic("median relative error"),
            series: ESTIMATORS.map(by_loss).into(),
        },
        Figure {
            name: "cnf-deviation-flows".to_owned(),
            title: "Flows above 100 packets by error of their deviation, Multiflow".to_owned(),
            x: Axis::logarithmic("relative error"),
            y: Axis::linear("share of flows"),
            series: flows.into(),
        },
    ]
}
