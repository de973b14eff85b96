//! Whether a plan keeps its promise: planned for a range of losses, recorded as planned, and counted.

use twixt_synopsis::LdaConfig;

use super::{Law, compare, uniform, uniform_losses};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

const HOLDS: Holds = Holds::Promised(0.95, EPOCHS);

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lda-plan",
    algorithm: "LDA",
    paper: "LDA and mPlane, section III-B: sized for a range of losses",
    about: "`twixt plan lda` for epochs of 200 000 packets and losses of 0.1 to 10 %, with 9, 24 and 96 KiB; \
            then epochs of that traffic, exponential delays. Share of epochs whose mean is within the 95 % \
            interval that the plan expects.",
    seeds: Seeds { quick: 2, full: 20 },
    trial,
    claims: &[
        claim("9 KiB, 0.1 % lost", "95 %", "9@0.001", HOLDS),
        claim("9 KiB, 1 % lost", "95 %", "9@0.01", HOLDS),
        claim("9 KiB, 10 % lost", "95 %", "9@0.1", HOLDS),
        claim("24 KiB, 0.1 % lost", "95 %", "24@0.001", HOLDS),
        claim("24 KiB, 1 % lost", "95 %", "24@0.01", HOLDS),
        claim("24 KiB, 10 % lost", "95 %", "24@0.1", HOLDS),
        claim("96 KiB, 0.1 % lost", "95 %", "96@0.001", HOLDS),
        claim("96 KiB, 1 % lost", "95 %", "96@0.01", HOLDS),
        claim("96 KiB, 10 % lost", "95 %", "96@0.1", HOLDS),
    ],
    figures,
};

const PACKETS: u64 = 200_000;
const KIBIBYTES: [u64; 3] = [9, 24, 96];
const LOSSES: [f64; 3] = [0.001, 0.01, 0.1];
/// Epochs of one trial: 25 of each loss.
const EPOCHS: u32 = 25;
/// The deviation of exponential delays is their mean.
const VARIATION: f64 = 1.0;

fn trial(setting: Setting) -> Trial {
    let mut trial = Trial::default();
    for loss in LOSSES {
        let mut near = [0.0; KIBIBYTES.len()];
        for epoch in 0..EPOCHS {
            let seed = setting.seed << 8 | u64::from(epoch);
            let near_epoch = epoch_is_near(seed, loss);
            near.iter_mut()
                .zip(near_epoch)
                .for_each(|(sum, near)| *sum += f64::from(u8::from(near)));
        }
        for (kibibytes, near) in KIBIBYTES.into_iter().zip(near) {
            let share = near / f64::from(EPOCHS);
            trial.value(format!("{kibibytes}@{loss}"), share);
            trial.point(&format!("{kibibytes} KiB"), loss, share);
        }
    }
    trial
}

/// Whether the mean of an epoch is as near as expected, with each memory.
fn epoch_is_near(seed: u64, loss: f64) -> [bool; KIBIBYTES.len()] {
    let law = Law::Weibull { shape: 1.0 };
    let delay = |packet| law.quantile(uniform(packet, seed)).round() as i64;
    let delays: Vec<i64> = (0..PACKETS).map(delay).collect();
    let lost = uniform_losses(delays.len(), loss, seed);
    let lost_packets = lost.iter().filter(|lost| **lost).count() as u64;
    KIBIBYTES.map(|kibibytes| {
        let [low, .., high] = LOSSES;
        let config = LdaConfig::for_loss(kibibytes << 10, PACKETS, low, high)
            .expect("there is memory for a cell");
        let compared = compare(&config, &delays, &lost, seed);
        let expected = config.expected_half_width(PACKETS - lost_packets, lost_packets, VARIATION);
        compared.centred.is_some_and(|delay| {
            (delay.mean_ns() - compared.mean_ns).abs() <= expected * compared.mean_ns
        })
    })
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let names = KIBIBYTES.map(|kibibytes| format!("{kibibytes} KiB"));
    let mut series: Vec<Curve> =
        names.iter().map(|name| Curve::of_trials(summary, name, name)).collect();
    series.push(Curve::published("promised", &LOSSES.map(|loss| (loss, 0.95))));
    vec![Figure {
        name: "lda-plan".to_owned(),
        title: "LDA: share of epochs as near as planned".to_owned(),
        x: Axis::logarithmic("share of packets lost"),
        y: Axis::linear("share of epochs"),
        series,
    }]
}
