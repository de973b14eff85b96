//! LDA beside test packets that are sent at random times.

use twixt_synopsis::LdaConfig;

use super::{Law, MEAN_NS, compare, delays, episodes_of_loss, tuned, uniform};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lda-test-packets",
    algorithm: "LDA",
    paper: "LDA and mPlane, section IV-C, Fig. 6",
    about: "A two-bank LDA tuned to 0.5 and 10 % loss compared with Poisson test packets at 1, 7, \
         144 (equal bandwidth) and 10 000 Hz, Weibull(0.6) delays, loss in episodes of 100 \
         packets: relative error of the mean.",
    seeds: Seeds { quick: 20, full: 20 },
    trial,
    claims: &[
        claim(
            "144 Hz over LDA, 1 % loss",
            "an order of magnitude",
            "144 Hz@0.01 / LDA@0.01",
            Holds::AtLeast(8.0),
        ),
        claim("LDA, 1 % loss: mean off by", "< 1 %", "LDA@0.01", Holds::AtMost(0.01)),
        claim("144 Hz, 1 % loss: mean off by", "11 %", "144 Hz@0.01", Holds::Between(0.07, 0.15)),
        claim(
            "7 Hz, 1 % loss: mean off by",
            "almost 100 % at most",
            "7 Hz@0.01",
            Holds::AtLeast(0.3),
        ),
        claim(
            "10 000 Hz over LDA, 1 % loss",
            "about 1",
            "10000 Hz@0.01 / LDA@0.01",
            Holds::Between(0.3, 3.0),
        ),
    ],
    figures,
};

const LOSSES: [f64; 6] = [0.0005, 0.001, 0.005, 0.01, 0.05, 0.1];
const RATES_HZ: [u64; 4] = [1, 7, 144, 10_000];

fn trial(setting: Setting) -> Trial {
    let law = Law::Weibull { shape: 0.6 };
    let delays = delays(law, setting);
    let count = delays.len() as f64;
    let rates = [0.005, 0.1].map(|target| tuned(512, target * count, 0.5));
    let config = LdaConfig::new(512, &rates).expect("two banks are in range");
    let mut trial = Trial::default();
    for loss in LOSSES {
        let lost = episodes_of_loss(delays.len(), loss, setting.seed);
        let compared = compare(&config, &delays, &lost, setting.seed);
        let error = compared.mean_error();
        trial.value(format!("LDA@{loss}"), error);
        trial.point("LDA", loss, error);
        for hertz in RATES_HZ {
            let error = sent_at(hertz, law, &lost, setting.seed)
                .map(|mean_ns| (mean_ns / MEAN_NS - 1.0).abs());
            trial.value(format!("{hertz} Hz@{loss}"), error);
            trial.point(&format!("{hertz} Hz"), loss, error);
        }
    }
    trial
}

/// Mean of the test packets of a second that arrived; they meet the losses and the law of delay
/// of the traffic, and nobody else's delay.
fn sent_at(hertz: u64, law: Law, lost: &[bool], seed: u64) -> Option<f64> {
    let (mut sum, mut arrived, mut at) = (0.0, 0.0, 0.0);
    let mut number = 0;
    loop {
        number += 1;
        let draw = |purpose: u64| uniform(number << 8 | purpose, seed ^ hertz << 32);
        at += -(1.0 - draw(1)).ln() / hertz as f64;
        let place = (at * lost.len() as f64) as usize;
        match lost.get(place) {
            None => break,
            Some(true) => {}
            Some(false) => (sum, arrived) = (sum + law.quantile(draw(2)), arrived + 1.0),
        }
    }
    (arrived > 0.0).then(|| sum / arrived)
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let names = ["LDA", "1 Hz", "7 Hz", "144 Hz", "10000 Hz"];
    let mut series: Vec<Curve> =
        names.into_iter().map(|name| Curve::of_trials(summary, name, name)).collect();
    series.push(Curve::published("published: 144 Hz", &[(0.01, 0.11)]));
    vec![Figure {
        name: "lda-test-packets".to_owned(),
        title: "A two-bank LDA beside test packets: error of the mean by loss".to_owned(),
        x: Axis::logarithmic("loss (share of packets)"),
        y: Axis::logarithmic("relative error"),
        series,
    }]
}
