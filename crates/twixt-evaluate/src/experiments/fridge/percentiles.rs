//! Percentiles of round trips by memory: a fridge, and a table with a limit of age.

use twixt_model::Histogram;
use twixt_synopsis::rtt::{FridgeStore, NewestRequests};

use super::{
    ANSWERED, REQUESTS, Trace, WeightedRoundTrip, plain, quantile_ns, tuned, weight_between,
};
use crate::claim::{Claim, Holds};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "fridge-percentiles",
    algorithm: "Round trips",
    paper: "Unbiased delay measurement, section 2.4.1, Fig. 2.2",
    about: "Fridges and expiry tables (limit: the true p99) of 256 to 16384 entries on the \
            synthetic trace, 500 000 requests, 40 or 13 % answered: |log₂(estimate / truth)| at p50, p95, p99, and the \
            largest of all percentiles from 5 to 95.",
    seeds: Seeds { quick: 12, full: 100 },
    trial,
    claims: &[
        claim("fridge of 1024: p95 off by (doublings)", "fridge, p95@1024", Holds::AtMost(0.11)),
        claim("fridge of 1024: p99 off by (doublings)", "fridge, p99@1024", Holds::AtMost(0.06)),
        claim(
            "fridge of 1024: worst of 5 to 95 % off by (doublings)",
            "fridge, worst@1024",
            Holds::AtMost(0.26),
        ),
        Claim {
            claim: "p99: error of the expiry table of 4096 over that of the fridge of 1024",
            published: "2 to 4 times less memory",
            value: "expiry table, p99@4096 / fridge, p99@1024",
            holds: Holds::AtLeast(1.0),
            note: "4 times less memory",
        },
        Claim {
            claim: "worst of 5 to 95 %: error of the expiry table of 1024 over that of the fridge",
            published: "2 to 4 times less memory",
            value: "expiry table, worst@1024 / fridge, worst@1024",
            holds: Holds::Differs,
            note: "the fridge gains in the tail; in the middle, where few requests are lost, the \
                 two are equal",
        },
        Claim {
            claim: "13 % answered, p95: error of the expiry table of 1024 over that of the fridge",
            published: "2 to 4 times less memory",
            value: "expiry table (13 % answered), p95@1024 / fridge (13 % answered), p95@1024",
            holds: Holds::Differs,
            note: "few answers leave few measured round trips, and p95 is noisy; at p99 the \
                 fridge is better here too",
        },
        Claim {
            claim: "traffic of an Internet provider: the CDF follows the truth",
            published: "Fig. 2.2",
            value: "",
            holds: Holds::Cannot,
            note: "the trace is not public; the figure here is of the synthetic trace",
        },
    ],
    figures,
};

const fn claim(claim: &'static str, value: &'static str, holds: Holds) -> Claim {
    Claim { claim, published: "close to the truth", value, holds, note: "" }
}

const ENTRIES: [u32; 7] = [256, 512, 1024, 2048, 4096, 8192, 16_384];
/// Entries of the tables whose distribution functions are drawn.
const ENTRIES_DRAWN: u32 = 1024;
/// As in the traffic of an Internet provider: most requests are never answered.
const ANSWERED_FEW: f64 = 0.13;
const FEW: &str = " (13 % answered)";
const NAMES: [&str; 2] = ["fridge", "expiry table"];

fn trial(setting: Setting) -> Trial {
    let mut trial = Trial::default();
    let trace = Trace::new(setting.seed, REQUESTS, ANSWERED);
    note(&mut trial, "", &trace);
    let overwriting = trace.through::<NewestRequests>(&plain(ENTRIES_DRAWN, false));
    note_distribution(&mut trial, "plain table", &overwriting);
    let truth = trace.truth_ns.iter().map(|&rtt_ns| WeightedRoundTrip { rtt_ns, weight: 1.0 });
    note_distribution(&mut trial, "truth", &truth.collect::<Vec<_>>());
    note(&mut trial, FEW, &Trace::new(setting.seed, REQUESTS, ANSWERED_FEW));
    trial
}

fn note(trial: &mut Trial, suffix: &str, trace: &Trace) {
    for entries in ENTRIES {
        let found = [
            trace.through::<FridgeStore>(&tuned(entries)),
            trace.through::<NewestRequests>(&plain(entries, true)),
        ];
        for (name, found) in NAMES.iter().zip(found) {
            for (what, error) in errors(trace, &found) {
                trial.value(format!("{name}{suffix}, {what}@{entries}"), error);
                trial.point(&format!("{name}{suffix}, {what}"), f64::from(entries), error);
            }
            if entries == ENTRIES_DRAWN && suffix.is_empty() {
                note_distribution(trial, name, &found);
            }
        }
    }
}

/// |log2(estimate/truth)| at percentiles, and the largest of 5 to 95 %.
pub(super) fn errors(
    trace: &Trace,
    found: &[WeightedRoundTrip],
) -> [(&'static str, Option<f64>); 4] {
    let mut histogram = Histogram::new(Histogram::BUCKETS_DEFAULT);
    found.iter().for_each(|found| histogram.add(found.rtt_ns, found.weight));
    let error = |percent: u32| {
        let share = f64::from(percent) / 100.0;
        let estimate_ns = histogram.percentile(share)? as f64;
        Some((estimate_ns / trace.percentile_ns(share)).log2().abs())
    };
    let worst = (5..=95).filter_map(error).reduce(f64::max);
    [("p50", error(50)), ("p95", error(95)), ("p99", error(99)), ("worst", worst)]
}

/// The share of round trips below each time, from 1 ms on: below, tables hardly differ.
fn note_distribution(trial: &mut Trial, name: &str, found: &[WeightedRoundTrip]) {
    const STEPS: u32 = 50;
    let total = weight_between(found, 0, i64::MAX);
    for step in 30..=STEPS {
        let limit_ns = quantile_ns(f64::from(step) / f64::from(STEPS)) as i64;
        let share = weight_between(found, 0, limit_ns) / total;
        trial.point(&format!("{name}, distribution"), limit_ns as f64 / 1e6, share);
    }
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let curve =
        |name: &str, what: &str| Curve::of_trials(summary, &format!("{name}, {what}"), name);
    let by_memory = |what: &str, title: &str| Figure {
        name: format!("fridge-percentiles-{what}"),
        title: format!("Round trips: {title} by memory"),
        x: Axis::logarithmic("entries"),
        y: Axis::linear("|log₂(estimate / truth)|"),
        series: ["", FEW]
            .iter()
            .flat_map(|suffix| NAMES.map(|name| curve(&format!("{name}{suffix}"), what)))
            .collect(),
    };
    vec![
        by_memory("p95", "error of p95"),
        by_memory("p99", "error of p99"),
        by_memory("worst", "worst error of p5 to p95"),
        Figure {
            name: "fridge-percentiles-distribution".to_owned(),
            title: "Round trips: distribution in tables of 1024 entries".to_owned(),
            x: Axis::logarithmic("round trip (ms)"),
            y: Axis::linear("share of round trips"),
            series: ["truth", NAMES[0], NAMES[1], "plain table"]
                .map(|name| curve(name, "distribution"))
                .into(),
        },
    ]
}
