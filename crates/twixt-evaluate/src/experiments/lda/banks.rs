//! Several banks for unknown loss, beside one that knows it.

use twixt_synopsis::LdaConfig;

use super::{LOSSES, Law, ROWS, compare, delays, tuned, uniform_losses};
use crate::claim::{Claim, Holds};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lda-banks",
    algorithm: "LDA",
    paper: "LDA and mPlane, section IV-B, Fig. 5",
    about: "1024 rows in one bank tuned to the loss, and in two, three and four banks tuned to \
         fixed losses: packets used and error, Weibull(0.6) delays, uniform loss.",
    seeds: Seeds { quick: 4, full: 10 },
    trial,
    claims: &[
        Claim {
            claim: "two banks, 0.5 % loss: error over that of the tuned bank",
            published: "comparable",
            value: "two, mean@0.005 / tuned, mean@0.005",
            holds: Holds::AtMost(3.0),
            note: "",
        },
        Claim {
            claim: "20 % loss: four banks use fewer packets than two (ratio)",
            published: "worst of the three",
            value: "four, used@0.2 / two, used@0.2",
            holds: Holds::AtMost(1.0),
            note: "beyond 10 %, to which the last bank of each is tuned, both keep the same few",
        },
        Claim {
            claim: "three banks over two, 1 % loss: error of the mean",
            published: "comparable",
            value: "three, mean@0.01 / two, mean@0.01",
            holds: Holds::Between(0.4, 2.5),
            note: "",
        },
        Claim {
            claim: "four banks over two, 1 % loss: error of the mean",
            published: "comparable",
            value: "four, mean@0.01 / two, mean@0.01",
            holds: Holds::Between(0.4, 2.5),
            note: "",
        },
    ],
    figures,
};

/// Losses that the banks are tuned to.
const CONFIGURATIONS: [(&str, &[f64]); 3] =
    [("two", &[0.005, 0.1]), ("three", &[0.001, 0.01, 0.1]), ("four", &[0.001, 0.01, 0.05, 0.1])];

fn trial(setting: Setting) -> Trial {
    let delays = delays(Law::Weibull { shape: 0.6 }, setting);
    let count = delays.len() as f64;
    let mut trial = Trial::default();
    for loss in LOSSES {
        let lost = uniform_losses(delays.len(), loss, setting.seed);
        let single = LdaConfig::new(ROWS, &[tuned(ROWS, loss * count, 0.5)]);
        let several = CONFIGURATIONS.map(|(name, targets)| {
            let rows = ROWS / targets.len() as u32;
            // Banks have disjoint packets: shares must not add up to more than all.
            let rates: Vec<f64> =
                targets.iter().map(|target| tuned(rows, target * count, 0.5)).collect();
            (name, LdaConfig::new(rows, &rates))
        });
        for (name, config) in [("tuned", single)].into_iter().chain(several) {
            let Ok(config) = config else { continue };
            let compared = compare(&config, &delays, &lost, setting.seed);
            let used = compared.centred.map(|delay| delay.count as f64);
            for (what, value) in [
                ("used", used),
                ("mean", compared.mean_error()),
                ("deviation", compared.deviation_error()),
            ] {
                trial.value(format!("{name}, {what}@{loss}"), value);
                trial.point(&format!("{name}, {what}"), loss, value);
            }
        }
    }
    trial
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let figure = |what: &str, title: &str, y: Axis| Figure {
        name: format!("lda-banks-{what}"),
        title: format!("LDA, 1024 rows in one to four banks: {title} by loss"),
        x: Axis::logarithmic("loss (share of packets)"),
        y,
        series: ["tuned", "two", "three", "four"]
            .map(|name| Curve::of_trials(summary, &format!("{name}, {what}"), name))
            .into(),
    };
    vec![
        figure("used", "packets used", Axis::logarithmic("packets used")),
        figure("mean", "error of the mean", Axis::logarithmic("relative error")),
        figure("deviation", "error of the deviation", Axis::logarithmic("relative error")),
    ]
}
