//! Whether a plan keeps its promise: planned, measured exactly as planned, and counted.

use twixt_synopsis::rtt::{FridgeNeed, FridgePlan, FridgeStore};

use super::{ANSWERED, GAP_NS, LONGEST_NS, REQUESTS, Trace, WeightedRoundTrip, fridge};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

const HOLDS: Holds = Holds::Promised(0.95, 1);

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "fridge-plan",
    algorithm: "Round trips",
    paper: "Unbiased delay measurement, section 2.3: a fridge for the longest round trip of interest",
    about: "`twixt plan fridge` for the synthetic trace with 16, 64 and 256 KiB; then epochs of 500 000 \
            requests through a fridge as planned. Share of epochs whose percentile is within the 95 % interval \
            that the plan expects.",
    seeds: Seeds { quick: 12, full: 120 },
    trial,
    claims: &[
        claim("16 KiB, p50", "95 %", "p50@16", HOLDS),
        claim("16 KiB, p95", "95 %", "p95@16", HOLDS),
        claim("16 KiB, p99", "95 %", "p99@16", HOLDS),
        claim("64 KiB, p50", "95 %", "p50@64", HOLDS),
        claim("64 KiB, p95", "95 %", "p95@64", HOLDS),
        claim("64 KiB, p99", "95 %", "p99@64", HOLDS),
        claim("256 KiB, p50", "95 %", "p50@256", HOLDS),
        claim("256 KiB, p95", "95 %", "p95@256", HOLDS),
        claim("256 KiB, p99", "95 %", "p99@256", HOLDS),
    ],
    figures,
};

const KIBIBYTES: [u64; 3] = [16, 64, 256];

fn trial(setting: Setting) -> Trial {
    let trace = Trace::new(setting.seed, REQUESTS, ANSWERED);
    let mut trial = Trial::default();
    for kibibytes in KIBIBYTES {
        let plan = planned(kibibytes << 10);
        let config = fridge(plan.fridge.entries, plan.fridge.probability);
        let mut found = trace.through::<FridgeStore>(&config);
        found.sort_unstable_by_key(|found| found.rtt_ns);
        for (share, expected) in plan.expected {
            let truth_ns = trace.percentile_ns(share);
            let off =
                percentile_ns(&found, share).map(|found_ns| (found_ns / truth_ns - 1.0).abs());
            let is_near = off.is_some_and(|off| off <= expected);
            let name = format!("p{}", (share * 1000.0).round() / 10.0);
            trial.value(format!("{name}@{kibibytes}"), f64::from(u8::from(is_near)));
            trial.point(&name, kibibytes as f64, f64::from(u8::from(is_near)));
        }
    }
    trial
}

fn planned(memory_bytes: u64) -> FridgePlan {
    let need = FridgeNeed {
        memory_bytes,
        rate: 1e9 / GAP_NS as f64,
        longest_ns: LONGEST_NS,
        epoch_ns: (REQUESTS as i64 * GAP_NS) as f64,
        answered: ANSWERED,
    };
    need.plan().expect("there is memory for a fridge")
}

/// Of round trips in order.
fn percentile_ns(found: &[WeightedRoundTrip], share: f64) -> Option<f64> {
    let all: f64 = found.iter().map(|found| found.weight).sum();
    let mut below = 0.0;
    let at = found.iter().find(|found| {
        below += found.weight;
        below >= share * all
    });
    at.map(|found| found.rtt_ns as f64)
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let names = ["p50", "p95", "p99"];
    let mut series: Vec<Curve> =
        names.into_iter().map(|name| Curve::of_trials(summary, name, name)).collect();
    let promised = KIBIBYTES.map(|kibibytes| (kibibytes as f64, 0.95));
    series.push(Curve::published("promised", &promised));
    vec![Figure {
        name: "fridge-plan".to_owned(),
        title: "Fridge: share of epochs as near as planned".to_owned(),
        x: Axis::logarithmic("memory (KiB)"),
        y: Axis::linear("share of epochs"),
        series,
    }]
}
