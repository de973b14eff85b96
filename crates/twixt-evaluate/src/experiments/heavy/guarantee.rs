//! What is promised of RAP: of k heavy flows of a skewed stream, k counters keep a constant
//! fraction.

use super::{Stream, algorithm};
use crate::claim::{Claim, Holds};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "heavy-rap",
    algorithm: "Large flows",
    paper: "Unbiased delay measurement, chapter 4",
    about: "Fraction of the k largest flows that RAP and SpaceSaving have with k counters, for k \
            of 64, 256 and 1024, on streams of 100 000 flows with Zipf exponents 0.8 to 1.5.",
    seeds: Seeds { quick: 2, full: 5 },
    trial,
    claims: &[
        claim("k = 64, exponent 1.2: fraction that RAP has", "rap, 1.2@64", 0.8),
        claim("k = 256, exponent 1.2: fraction that RAP has", "rap, 1.2@256", 0.8),
        claim("k = 1024, exponent 1.2: fraction that RAP has", "rap, 1.2@1024", 0.6),
        claim("least of all k and exponents: fraction that RAP has", "rap, least", 0.5),
        Claim {
            claim: "k = 64, exponent 1.2: SpaceSaving's fraction over RAP's",
            published: "no such promise",
            value: "space-saving, 1.2@64 / rap, 1.2@64",
            holds: Holds::AtMost(0.7),
            note: "",
        },
    ],
    figures,
};

const fn claim(claim: &'static str, value: &'static str, least: f64) -> Claim {
    let note = "the text says O(k), and means Ω(k)";
    let published = "a constant fraction";
    Claim { claim, published, value, holds: Holds::AtLeast(least), note }
}

const ALGORITHMS: [&str; 2] = ["rap", "space-saving"];
const EXPONENTS: [f64; 4] = [0.8, 1.0, 1.2, 1.5];
/// More curves would have the same colours.
const DRAWN: [f64; 3] = [0.8, 1.2, 1.5];
const COUNTERS: [usize; 3] = [64, 256, 1024];

fn trial(setting: Setting) -> Trial {
    let mut trial = Trial::default();
    let mut least = f64::INFINITY;
    for exponent in EXPONENTS {
        let stream = Stream::new(exponent, setting);
        for name in ALGORITHMS {
            for counters in COUNTERS {
                let entries = toml::Value::from(counters as i64);
                let settings = toml::Table::from_iter([("entries".to_owned(), entries)]);
                let (kept, _) =
                    stream.judged(&stream.reported(algorithm(name), &settings), counters);
                trial.value(format!("{name}, {exponent}@{counters}"), kept);
                trial.point(&format!("{name}, {exponent}"), counters as f64, kept);
                if name == ALGORITHMS[0] {
                    least = least.min(kept);
                }
            }
        }
    }
    trial.value("rap, least", least);
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let series = ALGORITHMS.iter().flat_map(|name| {
        DRAWN.map(|exponent| {
            let label = format!("{name}, exponent {exponent}");
            Curve::of_trials(summary, &format!("{name}, {exponent}"), label)
        })
    });
    vec![Figure {
        name: "heavy-rap".to_owned(),
        title: "Fraction of the k largest flows with k counters".to_owned(),
        x: Axis::logarithmic("counters k"),
        y: Axis::linear("fraction of flows"),
        series: series.collect(),
    }]
}
