//! The deviation of delays, and in which direction correlation moves it.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use twixt_model::{Delay, FlowHash};
use twixt_synopsis::cnf::Sums;

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
    seeds: Seeds { quick: 1, full: 3 },
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
            note: "a full queue hardly moves: flows then deviate little, and a small deviation is \
                 harder to estimate, as published for 4 to 5 %; the error of the mean does fall \
                 (cnf-loss)",
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
    let [fullest, emptiest] = ["1.06", "0.85"];
    for (name, of) in [
        ("error in us, fullest over emptiest", "multiflow, error in us"),
        ("true deviation, fullest over emptiest", "true deviation in us"),
    ] {
        ratio(&mut trial, name, &format!("{of}@{fullest}"), &format!("{of}@{emptiest}"));
    }
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
            in_microseconds(trial, &run, offered, &found, &truth);
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

/// The same error without dividing it by the deviation, and that deviation.
fn in_microseconds(
    trial: &mut Trial,
    run: &Run,
    offered: f64,
    found: &BTreeMap<FlowHash, f64>,
    truth: &BTreeMap<FlowHash, f64>,
) {
    let judged = found.iter().filter_map(|(flow, found_ns)| {
        let counted = run.counted[flow];
        let true_ns = truth.get(flow).filter(|&&true_ns| true_ns > 0.0)?;
        (counted.metered >= 2 && counted.size > 100).then_some((*found_ns, *true_ns))
    });
    let (errors, deviations): (Vec<f64>, Vec<f64>) = judged
        .map(|(found_ns, true_ns)| ((found_ns - true_ns).abs() / 1e3, true_ns / 1e3))
        .unzip();
    trial.value(format!("multiflow, error in us@{offered}"), median(errors));
    trial.value(format!("true deviation in us@{offered}"), median(deviations));
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
