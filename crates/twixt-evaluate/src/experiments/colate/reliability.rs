//! Whether what was asked for is reached: three requirements, three memories.

use twixt_synopsis::encode;

use super::{ALL, LARGE, MEDIUM, PER_FLOW, ask, packets, segment, vector};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

const SMALL_FLOWS: &str = "a flow of a few hundred packets has too small a part of its counters; \
     the paper's smallest flow comes from traces that are not available";
const CROWDED: &str = "for flows of little more than 1000 packets, the noise of other flows in \
     their counters exceeds that; `twixt plan colate` predicts what can be reached";

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "colate-reliability",
    algorithm: "COLATE",
    paper: "COLATE, section 6.2.1, Fig. 6",
    about: "Memories of 1, 10 and 100 MB that take all of a trace of 37.3 million packets in one \
            epoch, to scale: 82, 8.2 and 0.82 packets per counter. A megabyte is that of the paper, 455 334 \
            counters of 19 bits; what ours take is below. \
            Share of flows whose mean (joint, sizes known) is within 10, 5 and 1 %: low, medium \
            and high accuracy.",
    seeds: Seeds { quick: 2, full: 6 },
    trial,
    claims: &[
        claim("low, 1 MB, flows of 1000+", "90 %", "0.1@1", Holds::AtLeast(0.9)),
        claim("low, 10 MB, flows of 1000+", "90 %", "0.1@10", Holds::AtLeast(0.9)),
        claim("low, 100 MB, flows of 1000+", "90 %", "0.1@100", Holds::AtLeast(0.9)),
        claim("medium, 1 MB, flows of 1000+", "95 %", "0.05@1", Holds::AtLeast(0.95))
            .noting(CROWDED),
        claim("medium, 10 MB, flows of 1000+", "95 %", "0.05@10", Holds::AtLeast(0.95)),
        claim("medium, 100 MB, flows of 1000+", "95 %", "0.05@100", Holds::AtLeast(0.95)),
        claim("high, 1 MB, flows of 1000+", "99 %", "0.01@1", Holds::AtLeast(0.99)).noting(CROWDED),
        claim("high, 10 MB, flows of 1000+", "99 %", "0.01@10", Holds::AtLeast(0.99))
            .noting(CROWDED),
        claim("high, 100 MB, flows of 1000+", "99 %", "0.01@100", Holds::AtLeast(0.99))
            .noting(CROWDED),
        claim(
            "medium, 10 MB, flows of 100 to 999",
            "95 %",
            "0.05@10, medium",
            Holds::AtLeast(0.95),
        )
        .noting(SMALL_FLOWS),
        claim("455 334 counters as written at one point, 8.2 packets to each: megabytes", "1.08", "megabytes", Holds::AtMost(1.1))
            .noting("a counter has a count and a digest besides its sum, without which a lost packet would spoil it unseen"),
        claim("medium, 10 MB, all flows", "95 %", "0.05@10, all", Holds::AtLeast(0.95))
            .noting(SMALL_FLOWS),
    ],
    figures,
};

const MEGABYTES: [u32; 3] = [1, 10, 100];
const INTERVALS: [f64; 3] = [0.1, 0.05, 0.01];
/// Counters of 19 bits in a megabyte.
const PER_MEGABYTE: u64 = 455_334;
/// Packets of the paper's CHIC trace.
const TRACE_PACKETS: u64 = 37_300_000;

fn trial(setting: Setting) -> Trial {
    let segment = segment(setting);
    let packets = packets(setting);
    let mut trial = Trial::default();
    for megabytes in MEGABYTES {
        let ends = segment.ends(&vector(counters_of(megabytes, packets), PER_FLOW));
        if megabytes == 10 {
            let bytes = encode(&ends.0).len() as f64 / f64::from(counters_of(10, packets));
            trial.value("megabytes", bytes * PER_MEGABYTE as f64 / 1e6);
        }
        let answers = ask(&segment, &ends, "joint");
        for interval in INTERVALS {
            let large = answers.share_within(LARGE, interval);
            trial.value(format!("{interval}@{megabytes}"), large);
            trial.value(
                format!("{interval}@{megabytes}, medium"),
                answers.share_within(MEDIUM, interval),
            );
            trial
                .value(format!("{interval}@{megabytes}, all"), answers.share_within(ALL, interval));
            trial.point(&interval.to_string(), f64::from(megabytes), large);
        }
    }
    trial
}

/// As many for so many packets as the paper has in that memory for its trace.
pub(super) const fn counters_of(megabytes: u32, packets: u64) -> u32 {
    (megabytes as u64 * PER_MEGABYTE * packets / TRACE_PACKETS) as u32
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let names = [("0.1", "within 10 %"), ("0.05", "within 5 %"), ("0.01", "within 1 %")];
    let mut series: Vec<Curve> =
        names.into_iter().map(|(name, label)| Curve::of_trials(summary, name, label)).collect();
    let published = MEGABYTES.map(|megabytes| (f64::from(megabytes), 0.95));
    series.push(Curve::published("required: 95 % within 5 %", &published));
    vec![Figure {
        name: "colate-reliability".to_owned(),
        title: "COLATE: share of flows of 1000+ packets that are near enough".to_owned(),
        x: Axis::logarithmic("memory for 37.3 million packets (MB)"),
        y: Axis::linear("share of flows"),
        series,
    }]
}
