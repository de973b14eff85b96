//! Several fridges of different lifetimes against one, and against tables that keep what has not expired.

use twixt_synopsis::rtt::{
    Compartment, FridgeStore, FridgesConfig, FridgesStore, NewestRequests, Watch,
};

use super::percentiles::errors;
use super::{LIFETIME_REQUESTS, REQUESTS, Trace, WeightedRoundTrip, plain, tuned};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

const LONG_ONLY: &str = "times are equally likely on every scale here, so that many are near the longest: what \
     one fridge is tuned to. The figure of the paper, on traffic that is not public, is not in our copy";

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "fridge-several",
    algorithm: "Round trips",
    paper: "Unbiased delay measurement, sections 2.3.2 and 2.4.3 (its figures are not in our copy)",
    about: "13 % of requests answered, as in the traffic of an Internet provider, on the synthetic trace: two and \
            four fridges with 256 to 4096 entries together, of lifetimes from half of the longest round trip down \
            by factors of 16 and 4, one fridge, and an expiry table (limit: the true p99). \
            |log₂(estimate / truth)| at p50, p95, p99, and the largest of all percentiles from 5 to 95.",
    seeds: Seeds { quick: 8, full: 60 },
    trial,
    claims: &[
        claim(
            "256 entries: worst percentile, two fridges over one",
            "more accurate when memory is limited",
            "two fridges, worst@256 / one fridge, worst@256",
            Holds::AtMost(1.0),
        )
        .noting(LONG_ONLY),
        claim(
            "1024 entries: worst percentile, two fridges over one",
            "more accurate when memory is limited",
            "two fridges, worst@1024 / one fridge, worst@1024",
            Holds::AtMost(1.0),
        )
        .noting(LONG_ONLY),
        claim(
            "256 entries: worst percentile, four fridges over one",
            "more accurate when memory is limited",
            "four fridges, worst@256 / one fridge, worst@256",
            Holds::AtMost(1.0),
        )
        .noting(LONG_ONLY),
        claim(
            "256 entries: p50, two fridges over one",
            "more accurate when memory is limited",
            "two fridges, p50@256 / one fridge, p50@256",
            Holds::AtMost(1.0),
        )
        .noting(LONG_ONLY),
        claim(
            "1024 entries: p99, two fridges over the expiry table",
            "below 1",
            "two fridges, p99@1024 / expiry table, p99@1024",
            Holds::AtMost(1.0),
        ),
    ],
    figures,
};

const ENTRIES: [u32; 5] = [256, 512, 1024, 2048, 4096];
/// As in the traffic of an Internet provider.
const ANSWERED: f64 = 0.13;
const NAMES: [&str; 4] = ["one fridge", "two fridges", "four fridges", "expiry table"];

fn trial(setting: Setting) -> Trial {
    let trace = Trace::new(setting.seed, REQUESTS, ANSWERED);
    let mut trial = Trial::default();
    for entries in ENTRIES {
        let found: [Vec<WeightedRoundTrip>; 4] = [
            trace.through::<FridgeStore>(&tuned(entries)),
            trace.through::<FridgesStore>(&several(entries, 2, 16.0)),
            trace.through::<FridgesStore>(&several(entries, 4, 4.0)),
            trace.through::<NewestRequests>(&plain(entries, true)),
        ];
        for (name, found) in NAMES.iter().zip(&found) {
            for (what, error) in errors(&trace, found) {
                trial.value(format!("{name}, {what}@{entries}"), error);
                trial.point(&format!("{name}, {what}"), f64::from(entries), error);
            }
        }
    }
    trial
}

/// So many fridges of equal size, each of a lifetime that is so much shorter than the one before.
fn several(entries: u32, fridges: u32, factor: f64) -> FridgesConfig {
    let entries = entries / fridges;
    let compartments: Vec<Compartment> = (0..fridges)
        .map(|fridge| {
            let lifetime = LIFETIME_REQUESTS / factor.powi(fridge as i32);
            // Each request is sent to one of them.
            let most = 1.0 / f64::from(fridges);
            Compartment { entries, probability: (f64::from(entries) / lifetime).min(most) }
        })
        .collect();
    FridgesConfig::new(Watch::default(), &compartments).expect("sizes are in range")
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let figure = |what: &str, title: &str| Figure {
        name: format!("fridge-several-{what}"),
        title: format!("Several fridges: {title} by memory, 13 % answered"),
        x: Axis::logarithmic("entries"),
        y: Axis::logarithmic("|log₂(estimate / truth)|"),
        series: NAMES
            .map(|name| Curve::of_trials(summary, &format!("{name}, {what}"), name))
            .into(),
    };
    vec![
        figure("p50", "error of p50"),
        figure("worst", "worst error of p5 to p95"),
        figure("p99", "error of p99"),
    ]
}
