//! How much to sample for a known loss: alpha of 0.5, as printed, or of 1.

use twixt_synopsis::LdaConfig;

use super::{Law, ROWS, compare, delays, tuned, uniform_losses};
use crate::claim::{Claim, Holds};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lda-sampling",
    algorithm: "LDA",
    paper: "LDA and mPlane, section III-B (alpha = 0.5)",
    about: "One bank of 1024 rows at 2 % loss, p = alpha m / (L + 1): packets used by alpha.",
    seeds: Seeds { quick: 4, full: 20 },
    trial,
    claims: &[
        Claim {
            claim: "packets used with alpha 1 over those with 0.5",
            published: "0.5 is best",
            value: "used@1 / used@0.5",
            holds: Holds::Differs,
            note: "0.5 maximises a lower bound; p R (1 − p/m)^L itself is largest at alpha 1, by \
                   21 % here",
        },
        Claim {
            claim: "the same, by the exact expectation",
            published: "1.213",
            value: "used@1 / used@0.5",
            holds: Holds::Between(1.15, 1.28),
            note: "",
        },
    ],
    figures,
};

const ALPHAS: [f64; 6] = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0];

fn trial(setting: Setting) -> Trial {
    const LOSS: f64 = 0.02;
    let delays = delays(Law::Weibull { shape: 0.6 }, setting);
    let lost = uniform_losses(delays.len(), LOSS, setting.seed);
    let mut trial = Trial::default();
    for alpha in ALPHAS {
        let sampling = tuned(ROWS, LOSS * delays.len() as f64, alpha);
        let config = LdaConfig::new(ROWS, &[sampling]).expect("one bank is in range");
        let compared = compare(&config, &delays, &lost, setting.seed);
        let used = compared.centred.map(|delay| delay.count as f64);
        trial.value(format!("used@{alpha}"), used);
        trial.point("measured", alpha, used);
        let received = lost.iter().filter(|lost| !**lost).count() as u64;
        let expected = config.expected_used(received, lost.len() as u64 - received);
        trial.point("expected", alpha, expected);
    }
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    vec![Figure {
        name: "lda-sampling".to_owned(),
        title: "LDA, one bank of 1024 rows at 2 % loss: packets used by sampling".to_owned(),
        x: Axis::logarithmic("alpha"),
        y: Axis::linear("packets used"),
        series: ["measured", "expected"].map(|name| Curve::of_trials(summary, name, name)).into(),
    }]
}
