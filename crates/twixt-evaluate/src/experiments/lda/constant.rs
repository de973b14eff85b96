//! A constant delay drowns the printed estimator of the deviation, and not the centred one.

use twixt_synopsis::LdaConfig;

use super::{Law, MEAN_NS, ROWS, compare, delays, tuned, uniform_losses};
use crate::claim::{Claim, Holds};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lda-constant",
    algorithm: "LDA",
    paper: "LDA and mPlane, section III, equations (3) to (5)",
    about: "One bank of 1024 rows at 2 % loss with a constant delay of 0 to 20 times the mean \
            added, as propagation or a clock offset is: error of the deviation, printed and \
            centred estimator.",
    seeds: Seeds { quick: 6, full: 20 },
    trial,
    claims: &[
        Claim {
            claim: "printed, no constant delay: deviation off by",
            published: "< 10 %",
            value: "printed@0",
            holds: Holds::AtMost(0.1),
            note: "",
        },
        Claim {
            claim: "printed, constant of 20 means: deviation off by",
            published: "not considered",
            value: "printed@20",
            holds: Holds::Differs,
            note: "E[w²] − mean² subtracts two large numbers as soon as the constant is a few \
                   times the deviation; runs with a negative variance count as 100 % off",
        },
        Claim {
            claim: "centred, constant of 20 means: deviation off by",
            published: "–",
            value: "centred@20",
            holds: Holds::AtMost(0.08),
            note: "the default: the mean is subtracted from each row before squaring",
        },
    ],
    figures,
};

const CONSTANTS: [u32; 5] = [0, 2, 5, 10, 20];

fn trial(setting: Setting) -> Trial {
    const LOSS: f64 = 0.02;
    let delays = delays(Law::Weibull { shape: 0.6 }, setting);
    let lost = uniform_losses(delays.len(), LOSS, setting.seed);
    let sampling = tuned(ROWS, LOSS * delays.len() as f64, 1.0);
    let config = LdaConfig::new(ROWS, &[sampling]).expect("one bank is in range");
    let mut trial = Trial::default();
    for constant in CONSTANTS {
        let added_ns = (f64::from(constant) * MEAN_NS) as i64;
        let later: Vec<i64> = delays.iter().map(|delay| delay + added_ns).collect();
        let compared = compare(&config, &later, &lost, setting.seed);
        for (name, error) in [
            ("centred", compared.deviation_error()),
            ("printed", compared.printed_deviation_error()),
        ] {
            trial.value(format!("{name}@{constant}"), error);
            trial.point(name, f64::from(constant), error);
        }
    }
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    vec![Figure {
        name: "lda-constant".to_owned(),
        title: "LDA: error of the deviation by constant delay".to_owned(),
        x: Axis::linear("constant delay (multiples of the mean)"),
        y: Axis::logarithmic("relative error of the deviation"),
        series: ["centred", "printed"].map(|name| Curve::of_trials(summary, name, name)).into(),
    }]
}
