//! Error of the mean by counters and estimator, with and without a delay that all have in common.

use twixt_model::quantity::Nanoseconds;
use twixt_sim::Config;

use super::{FEW, LARGE, MANY, MEDIUM, PER_FLOW, ask, packets, scaled, traffic, vector};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::experiments::segment::TestSegment;
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "colate-accuracy",
    algorithm: "COLATE",
    paper: "COLATE, section 6.2.1",
    about: "A million packets of flows of very unequal size in 11 383 to 455 334 counters, 20 per \
         flow, sizes known, also with 20 ms added to all packets: median error of the mean delay \
         of flows of 1000 packets and more, relative to the variable part.",
    seeds: Seeds { quick: 2, full: 6 },
    trial,
    claims: &[
        claim("joint, n = 45 533: mean off by", "–", "joint@45533", Holds::AtMost(0.008)),
        claim("median, n = 45 533: mean off by", "–", "median@45533", Holds::AtMost(0.035)),
        claim("joint, n = 455 334: mean off by", "–", "joint@455334", Holds::AtMost(0.003)),
        claim(
            "joint over paper (equation 4 on differences), n = 45 533",
            "–",
            "joint@45533 / paper@45533",
            Holds::AtMost(0.5),
        ),
        claim(
            "joint over paper, n = 45 533, flows of 100 to 999",
            "–",
            "joint@45533, medium / paper@45533, medium",
            Holds::AtMost(0.5),
        ),
        claim(
            "joint, n = 45 533: with 20 ms added, over without",
            "–",
            "joint@45533 + 20 ms / joint@45533",
            Holds::Between(0.9, 1.1),
        )
        .noting("everything is relative to the mean of all packets"),
        claim(
            "paper, n = 45 533: with 20 ms added, over without",
            "not considered",
            "paper@45533 + 20 ms / paper@45533",
            Holds::Between(0.9, 1.1),
        )
        .noting("centred like the others; as printed, a common delay of other flows would leak in"),
    ],
    figures,
};

const ESTIMATORS: [&str; 3] = ["joint", "median", "paper"];
const COUNTERS: [u32; 4] = [11_383, FEW, 136_600, MANY];
const COMMON: Nanoseconds = Nanoseconds(20_000_000);

fn trial(setting: Setting) -> Trial {
    let packets = packets(setting);
    let alone = traffic(setting.seed, packets);
    let common = Config { propagation: COMMON, ..alone.clone() };
    let mut trial = Trial::default();
    for (config, added, choices) in
        [(alone, "", COUNTERS.as_slice()), (common, " + 20 ms", &[FEW, MANY])]
    {
        let segment = TestSegment::new(&config);
        for &counters in choices {
            let ends = segment.ends(&vector(scaled(counters, packets), PER_FLOW));
            for estimator in ESTIMATORS {
                let answers = ask(&segment, &ends, estimator);
                let large = answers.median_error(LARGE);
                trial.value(format!("{estimator}@{counters}{added}"), large);
                let medium = answers.median_error(MEDIUM);
                trial.value(format!("{estimator}@{counters}{added}, medium"), medium);
                if added.is_empty() {
                    trial.point(estimator, f64::from(counters), large);
                }
            }
        }
    }
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    vec![Figure {
        name: "colate-accuracy".to_owned(),
        title: "COLATE, a million packets: error of the mean of flows of 1000+ packets".to_owned(),
        x: Axis::logarithmic("counters"),
        y: Axis::logarithmic("median relative error"),
        series: ESTIMATORS.map(|name| Curve::of_trials(summary, name, name)).into(),
    }]
}
