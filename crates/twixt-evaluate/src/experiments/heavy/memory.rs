//! How many of the largest flows each algorithm keeps in how much memory, and how right it counts.

use super::{Stream, algorithm};
use crate::claim::{Claim, Holds};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "heavy-memory",
    algorithm: "Large flows",
    paper: "Randomized admission policy; Unbiased delay measurement, section 1.2",
    about: "Algorithms in 8 to 256 KiB on streams of 100 000 flows with Zipf exponents \
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
            note: "the default of 2 ways against 6 stages of HashPipe: with few counters the \
                 number of places that a flow may take matters most; see the next line",
        },
        Claim {
            claim: "16 KiB, exponent 1: share of PRECISION with 6 ways over HashPipe's",
            published: "best of switches",
            value: "precision 6-way 1, kept@16 / hashpipe 1, kept@16",
            holds: Holds::AtLeast(1.0),
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

/// Names here, those of the registry, and how many ways or stages if not as by default.
const ALGORITHMS: [(&str, &str, Option<u32>); 6] = [
    ("space-saving", "space-saving", None),
    ("rap", "rap", None),
    ("rap-way", "rap-way", None),
    ("hashpipe", "hashpipe", None),
    ("precision", "precision", None),
    ("precision 6-way", "precision", Some(6)),
];
const EXPONENTS: [f64; 3] = [0.8, 1.0, 1.2];
const MEMORIES_KIB: [u64; 6] = [8, 16, 32, 64, 128, 256];
const LARGEST: usize = 100;

fn trial(setting: Setting) -> Trial {
    let mut trial = Trial::default();
    for exponent in EXPONENTS {
        let stream = Stream::new(exponent, setting);
        for (name, registered, ways) in ALGORITHMS {
            let algorithm = algorithm(registered);
            for kib in MEMORIES_KIB {
                let sized = (algorithm.sized)(kib << 10);
                let mut settings = sized.expect("there is room for some flows");
                let ways = ways.map(|ways| ("ways".to_owned(), toml::Value::from(ways)));
                settings.extend(ways);
                let (kept, error) = stream.judged(&stream.reported(algorithm, &settings), LARGEST);
                for (what, value) in [("kept", Some(kept)), ("error", error)] {
                    trial.value(format!("{name} {exponent}, {what}@{kib}"), value);
                    // What is zero has no place on an axis of powers of ten.
                    let drawn = value.filter(|&value| value > 0.0);
                    trial.point(&format!("{name} {exponent}, {what}"), kib as f64, drawn);
                }
            }
        }
    }
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let figure = |what: &str, title: &str, y: Axis| Figure {
        name: format!("heavy-memory-{what}"),
        title: format!("The 100 largest flows, exponent 1: {title} by memory"),
        x: Axis::logarithmic("memory (KiB)"),
        y,
        series: ALGORITHMS
            .map(|(name, ..)| Curve::of_trials(summary, &format!("{name} 1, {what}"), name))
            .into(),
    };
    vec![
        figure("kept", "share kept", Axis::linear("share of flows")),
        figure("error", "error", Axis::logarithmic("relative error")),
    ]
}
