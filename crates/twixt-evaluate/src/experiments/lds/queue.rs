//! A queue, whose losses come when delays are longest.

use twixt_sim::Config;
use twixt_synopsis::LdsConfig;

use super::{LARGE, WAYS, ask, by_size, note_classes};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::experiments::segment::TestSegment;
use crate::figure::Figure;
use crate::summary::Summary;

const RESTLESS: &str = "intervals assume that the packets of all flows vary equally, which they \
     do not in a queue that fills and drains";

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lds-queue",
    algorithm: "LDS",
    paper: "Sketching the delay, section 5.2 (losses are drawn at random there)",
    about: "20 000 flows through a drop-tail queue, 4 rows of 12 500 cells, 5 to a flow, that \
            sample 1, 10, 50 and 100 %: share of packets lost, error of the mean delay by size \
            of the flow, intervals that hold, and flows without an answer.",
    seeds: Seeds { quick: 1, full: 5 },
    trial,
    claims: &[
        claim("packets lost", "–", "lost", Holds::Between(0.01, 0.1)).noting("chosen by us"),
        claim(
            "joint over paper, 1000 and more",
            "–",
            "joint, 1000+ / paper, 1000+",
            Holds::AtMost(1.0),
        ),
        claim("joint over paper, 1 to 9", "–", "joint, 1-9 / paper, 1-9", Holds::AtMost(1.0))
            .noting("delays hardly differ between flows here, so there is nothing to separate"),
        claim(
            "joint, 1 to 9: 95 % intervals that hold",
            "–",
            "joint, 1-9, covered",
            Holds::AtLeast(0.9),
        )
        .noting(RESTLESS),
        claim(
            "joint, 1000 and more: 95 % intervals that hold",
            "–",
            "joint, 1000+, covered",
            Holds::AtLeast(0.9),
        )
        .noting(RESTLESS),
        claim(
            "flows of 1000 and more without an answer",
            "–",
            "joint, unanswered",
            Holds::AtMost(0.05),
        )
        .noting("a drop-tail queue drops many packets of one flow"),
    ],
    figures,
};

fn trial(setting: Setting) -> Trial {
    let segment = TestSegment::new(&Config {
        seed: setting.seed,
        flows: 20_000,
        packets: Some(600_000),
        delay: "droptail:drain=1300mbit,queue=2000".parse().expect("a delay is well-formed"),
        ..Config::default()
    });
    let config = LdsConfig::new(12_500, 5, &[0.01, 0.1, 0.5, 1.0])
        .and_then(|config| config.with_alpha(0.1))
        .expect("cells and rates are in range");
    let ends = segment.ends(&config);
    let mut trial = Trial::default();
    trial.value("lost", segment.share_lost());
    for (name, estimator, sizes) in WAYS {
        let answers = ask(&segment, &ends, estimator, sizes);
        note_classes(&mut trial, name, &answers);
        trial.value(format!("{name}, unanswered"), answers.unanswered(LARGE));
    }
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let title = "LDS behind a queue that drops: error of the mean by flow size";
    vec![by_size(summary, "lds-queue", title)]
}
