//! How much the entry probability matters.

use twixt_synopsis::rtt::FridgeStore;

use super::percentiles::errors;
use super::{ANSWERED, GAP_NS, REQUESTS, Trace, fridge};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "fridge-probability",
    algorithm: "Round trips",
    paper: "Unbiased delay measurement, sections 2.2.3 and 2.4.2 (its figures are not in our copy)",
    about: "Fridges of 256, 1024 and 4096 entries on the synthetic trace, round trips of up to 10 and up to 100 ms: \
            |log₂(estimate / truth)| at p95, p99, and the largest of all percentiles from 5 to 95, for average \
            lifetimes M/p from 1/64 to 16 times the requests that pass in the longest round trip.",
    seeds: Seeds { quick: 4, full: 24 },
    trial,
    claims: &[
        claim(
            "1024 entries, 100 ms: worst percentile, lifetime of 1/4 over that of 1",
            "some tolerance",
            "1024, 100 ms, worst@0.25 / 1024, 100 ms, worst@1",
            Holds::Between(0.5, 2.0),
        ),
        claim(
            "4096 entries, 100 ms: worst percentile, lifetime of 1/4 over that of 1",
            "some tolerance",
            "4096, 100 ms, worst@0.25 / 4096, 100 ms, worst@1",
            Holds::Between(0.5, 2.0),
        ),
        claim(
            "1024 entries, 10 ms: worst percentile, lifetime of 1/4 over that of 1",
            "some tolerance",
            "1024, 10 ms, worst@0.25 / 1024, 10 ms, worst@1",
            Holds::Between(0.5, 2.0),
        ),
        claim(
            "1024 entries, 100 ms: p99, lifetime of 1/64 over that of 1/2",
            "oversubscribed: an enormous variance",
            "1024, 100 ms, p99@0.015625 / 1024, 100 ms, p99@0.5",
            Holds::AtLeast(3.0),
        ),
        claim(
            "1024 entries, 100 ms: worst percentile, lifetime of 16 over that of 1/2",
            "memory is underutilised",
            "1024, 100 ms, worst@16 / 1024, 100 ms, worst@0.5",
            Holds::AtLeast(1.5),
        ),
        claim(
            "4096 entries, 100 ms: worst percentile, lifetime of 16 over that of 1/2",
            "memory is underutilised",
            "4096, 100 ms, worst@16 / 4096, 100 ms, worst@0.5",
            Holds::AtLeast(1.5),
        ),
    ],
    figures,
};

const ENTRIES: [u32; 3] = [256, 1024, 4096];
const LONGEST: [(&str, f64); 2] = [("10 ms", 1e7), ("100 ms", 1e8)];
/// Lifetimes over the longest round trip.
const LIFETIMES: [f64; 11] =
    [1.0 / 64.0, 1.0 / 32.0, 1.0 / 16.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0];

fn trial(setting: Setting) -> Trial {
    let mut trial = Trial::default();
    for (name, longest_ns) in LONGEST {
        let trace = Trace::with_longest(setting.seed, REQUESTS, ANSWERED, longest_ns);
        let longest_requests = longest_ns / GAP_NS as f64;
        for entries in ENTRIES {
            for lifetime in LIFETIMES {
                let probability = f64::from(entries) / (lifetime * longest_requests);
                // Nothing enters with a probability above 1.
                if probability > 1.0 {
                    continue;
                }
                let found = trace.through::<FridgeStore>(&fridge(entries, probability));
                for (what, error) in errors(&trace, &found) {
                    let name = format!("{entries}, {name}, {what}");
                    trial.value(format!("{name}@{lifetime}"), error);
                    trial.point(&name, lifetime, error);
                }
            }
        }
    }
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let figure = |what: &str, title: &str| {
        let curve = |entries: u32, name: &str| {
            let label = format!("{entries} entries, up to {name}");
            Curve::of_trials(summary, &format!("{entries}, {name}, {what}"), label)
        };
        let series =
            LONGEST.iter().flat_map(|(name, _)| ENTRIES.map(|entries| curve(entries, name)));
        Figure {
            name: format!("fridge-probability-{what}"),
            title: format!("Fridges: {title} by average lifetime"),
            x: Axis::logarithmic("average lifetime M/p over the longest round trip"),
            y: Axis::logarithmic("|log₂(estimate / truth)|"),
            series: series.collect(),
        }
    };
    vec![figure("worst", "worst error of p5 to p95"), figure("p99", "error of p99")]
}
