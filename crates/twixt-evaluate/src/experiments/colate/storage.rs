//! Bits per packet in storage, and what fewer of them cost.

use twixt_synopsis::{Stored, encode};

use super::{LARGE, MEDIUM, PER_FLOW, ask, packets, segment, vector};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "colate-storage",
    algorithm: "COLATE",
    paper: "COLATE, section 6.3, Fig. 10",
    about: "2 to 1000 packets per counter, stored as they are (1 ns, sums and digests of 64 bits) \
            and narrow (1 us, sums of 24 and digests of 8 bits): bits per packet and point as \
            written, and median error of the mean delay (joint, sizes known).",
    seeds: Seeds { quick: 2, full: 3 },
    trial,
    claims: &[
        claim(
            "narrow, 458 packets per counter (an hour at 500 000 per second, minutes of 65 536 \
             counters): bits per packet",
            "< 0.1",
            "bits, narrow@458",
            Holds::AtMost(0.1),
        ),
        claim(
            "the same: mean of flows of 1000+ off by",
            "within 1 % for 99 % of flows",
            "error, narrow@458",
            Holds::Differs,
        )
        .noting(
            "a median, and above 1 %: few counters are cheap because they hold little \
             information. The paper's own parameters give 0.31 bit per packet, not 0.1: 455 334 \
             counters of 19 bits, filled once per 24.6 of 41.1 hours, for 46.9 million packets",
        ),
        claim(
            "narrow, 22 packets per counter: bits per packet",
            "< 0.1",
            "bits, narrow@22",
            Holds::Differs,
        )
        .noting(
            "here large flows are within 1 %; a counter takes some 32 bits whatever its \
             content",
        ),
        claim(
            "the same: mean of flows of 1000+ off by",
            "within 1 % for 99 % of flows",
            "error, narrow@22",
            Holds::AtMost(0.01),
        )
        .noting("a median"),
        claim(
            "error for narrow sums over that for whole ones, 22 packets per counter",
            "–",
            "error, narrow@22 / error, whole@22",
            Holds::Between(0.9, 1.1),
        ),
    ],
    figures,
};

const LOADS: [u64; 5] = [2, 22, 88, 458, 1000];
const NARROW: Stored = Stored { resolution_ns: 1000, time_bits: 24, digest_bits: 8 };

fn trial(setting: Setting) -> Trial {
    let segment = segment(setting);
    let mut trial = Trial::default();
    for load in LOADS {
        let counters = (packets(setting) / load) as u32;
        for (name, stored) in [("whole", Stored::default()), ("narrow", NARROW)] {
            let config = vector(counters, PER_FLOW).with_stored(stored);
            let ends = segment.ends(&config.expect("widths are in range"));
            let bits = encode(&ends.0).len() as f64 * 8.0 / packets(setting) as f64;
            let answers = ask(&segment, &ends, "joint");
            for (what, value) in [
                ("bits", Some(bits)),
                ("error", answers.median_error(LARGE)),
                ("error of 100 to 999", answers.median_error(MEDIUM)),
            ] {
                trial.value(format!("{what}, {name}@{load}"), value);
                trial.point(&format!("{what}, {name}"), load as f64, value);
            }
        }
    }
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let figure = |name: &str, title: &str, label, series| Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        x: Axis::logarithmic("packets per counter"),
        y: Axis::logarithmic(label),
        series,
    };
    let curve = |name: &str, label: &str| Curve::of_trials(summary, name, label);
    let bits = vec![
        curve("bits, whole", "1 ns, 64 bits, digest 64 bits"),
        curve("bits, narrow", "1 us, 24 bits, digest 8 bits"),
        Curve::published("published: 0.1", &LOADS.map(|load| (load as f64, 0.1))),
    ];
    let errors = vec![
        curve("error, narrow", "flows of 1000+ packets"),
        curve("error of 100 to 999, narrow", "flows of 100 to 999"),
    ];
    vec![
        figure("colate-storage-bits", "COLATE: bits per packet", "bits per packet", bits),
        figure(
            "colate-storage-error",
            "COLATE: what few counters cost (narrow sums)",
            "median relative error",
            errors,
        ),
    ]
}
