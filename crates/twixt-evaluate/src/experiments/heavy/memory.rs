//! How many of the largest flows each algorithm keeps in how much memory, and how right it counts.

use super::{Stream, algorithm};
use crate::claim::{Claim, Holds};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Figure, Series};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "heavy-memory",
    algorithm: "Large flows",
    paper: "Randomized admission policy; Unbiased delay measurement, section 1.2",
    about: "Five algorithms in 16, 64 and 256 KiB on streams of 100 000 flows with Zipf exponents \
            0.8, 1.0 and 1.2: share of the 100 largest flows that have a counter, and the mean \
            relative error of those counters.",
    seeds: Seeds { quick: 2, full: 5 },
    trial,
    claims: &[
        Claim {
            claim: "16 KiB, exponent 1: share of the 100 largest flows that RAP has",
            published: "more than SpaceSaving",
            value: "rap 1, kept@16",
            holds: Holds::AtLeast(0.95),
            note: "",
        },
        Claim {
            claim: "16 KiB, exponent 1: SpaceSaving's share over RAP's",
            published: "below 1",
            value: "space-saving 1, kept@16 / rap 1, kept@16",
            holds: Holds::AtMost(0.8),
            note: "",
        },
        Claim {
            claim: "16 KiB, exponent 1: RAP's error over SpaceSaving's",
            published: "below 1",
            value: "rap 1, error@16 / space-saving 1, error@16",
            holds: Holds::AtMost(0.1),
            note: "",
        },
        Claim {
            claim: "16 KiB, exponent 1: share of the 100 largest flows that d-way RAP has",
            published: "near RAP",
            value: "rap-way 1, kept@16",
            holds: Holds::AtLeast(0.95),
            note: "in the same bytes it has more counters: it needs no heap and no index",
        },
        Claim {
            claim: "16 KiB, exponent 1: PRECISION's share over HashPipe's",
            published: "best of switches",
            value: "precision 1, kept@16 / hashpipe 1, kept@16",
            holds: Holds::Differs,
            note: "",
        },
        Claim {
            claim: "256 KiB, exponent 1: PRECISION's share over HashPipe's",
            published: "best of switches",
            value: "precision 1, kept@256 / hashpipe 1, kept@256",
            holds: Holds::AtLeast(1.0),
            note: "",
        },
    ],
    figures,
};

const ALGORITHMS: [&str; 5] = ["space-saving", "rap", "rap-way", "hashpipe", "precision"];
const EXPONENTS: [f64; 3] = [0.8, 1.0, 1.2];
const MEMORIES_KIB: [u64; 3] = [16, 64, 256];
const LARGEST: usize = 100;

fn trial(setting: Setting) -> Trial {
    let mut trial = Trial::default();
    for exponent in EXPONENTS {
        let stream = Stream::new(exponent, setting);
        for name in ALGORITHMS {
            for kib in MEMORIES_KIB {
                let algorithm = algorithm(name);
                let settings = (algorithm.sized)(kib << 10).expect("there is room for some flows");
                let (kept, error) = stream.judged(&stream.told(algorithm, &settings), LARGEST);
                for (what, value) in [("kept", Some(kept)), ("error", error)] {
                    trial.value(format!("{name} {exponent}, {what}@{kib}"), value);
                    trial.point(&format!("{name} {exponent}, {what}"), kib as f64, value);
                }
            }
        }
    }
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let figure = |what: &str, title: &str, y: Axis| Figure {
        name: format!("heavy-memory-{what}"),
        title: format!("The 100 largest flows (Zipf exponent 1): {title} by memory"),
        x: Axis::logarithmic("memory (KiB)"),
        y,
        series: ALGORITHMS
            .map(|name| Series::curve(summary, &format!("{name} 1, {what}"), name))
            .into(),
    };
    vec![
        figure("kept", "share that has a counter", Axis::linear("share of flows")),
        figure("error", "error of the counters", Axis::linear("relative error")),
    ]
}
