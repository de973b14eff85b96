//! LDA beside test packets that are sent at random times.

use std::collections::BTreeMap;

use twixt_synopsis::{Lda, LdaConfig, Synopsis, encode};

use super::{Law, MEAN_NS, compare, delays, episodes_of_loss, sent, tuned, uniform};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

const TOO_SMALL: &str = "a mean of so few delays cannot be that near: delays deviate by 1.76 of their \
     mean, and their number in Fig. 6(a) is what it is here. The published largest error is also below the \
     published average (0.2 to 4 %)";

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lda-test-packets",
    algorithm: "LDA",
    paper: "LDA and mPlane, section IV-C, Fig. 6",
    about: "A two-bank LDA tuned to 0.5 and 10 % loss compared with Poisson test packets at 1, 7, \
         144 (equal bandwidth) and 10 000 Hz, Weibull(0.6) delays, loss in episodes of 100 \
         packets: delays used, relative errors of mean and deviation, averages and largest of ten \
         runs on the same packets. Bandwidths of equal accuracy follow from mean squares of errors: that of \
         test packets is inverse to their number.",
    seeds: Seeds { quick: 2, full: 6 },
    trial,
    claims: &[
        claim(
            "delays used, 1 % loss: LDA over 144 Hz",
            "far larger",
            "LDA, used@0.01 / 144 Hz, used@0.01",
            Holds::AtLeast(10.0),
        ),
        claim(
            "delays used, 10 % loss: LDA over 144 Hz",
            "far larger",
            "LDA, used@0.1 / 144 Hz, used@0.1",
            Holds::AtLeast(10.0),
        ),
        claim(
            "delays used, 144 Hz: 10 % loss over 0.05 %",
            "a small decrease",
            "144 Hz, used@0.1 / 144 Hz, used@0.0005",
            Holds::Between(0.8, 1.0),
        ),
        claim(
            "delays used, LDA: 10 % loss over 0.05 %",
            "decreases more rapidly",
            "LDA, used@0.1 / LDA, used@0.0005",
            Holds::AtMost(0.5),
        ),
        claim(
            "144 Hz over LDA, 0.5 % loss: error of the mean",
            "at least an order of magnitude",
            "144 Hz@0.005 / LDA@0.005",
            Holds::AtLeast(10.0),
        ),
        claim("LDA, 0.05 % loss: mean off by", "0.2 to 4 %", "LDA@0.0005", Holds::AtMost(0.04)),
        claim("LDA, 10 % loss: mean off by", "0.2 to 4 %", "LDA@0.1", Holds::AtMost(0.04)),
        claim("LDA, 0.5 % loss: mean off by", "< 1 %", "LDA@0.005", Holds::AtMost(0.01)),
        claim("144 Hz, 0.5 % loss: mean off by", "11 %", "144 Hz@0.005", Holds::Between(0.07, 0.15)),
        claim("1 Hz, 0.5 % loss: mean off by", "almost 100 %", "1 Hz@0.005", Holds::AtLeast(0.7)),
        claim(
            "bandwidth of test packets that are as accurate, over that of LDA, losses to 0.5 %",
            "50 to 60 times",
            "144 Hz, square by bytes / LDA, square by bytes",
            Holds::AtLeast(50.0),
        ),
        claim(
            "LDA, 1 % loss: deviation off by",
            "3 to 9 %",
            "LDA, deviation@0.01",
            Holds::AtMost(0.09),
        ),
        claim(
            "144 Hz, 1 % loss: deviation off by",
            "15 %",
            "144 Hz, deviation@0.01",
            Holds::Between(0.1, 0.25),
        ),
        claim(
            "LDA, 0.16 % loss: largest error of ten runs",
            "0.17 %",
            "LDA, largest@0.0016",
            Holds::AtMost(0.0017),
        )
        .noting(TOO_SMALL),
        claim(
            "7 Hz, 0.16 % loss: largest error of ten runs",
            "87 %",
            "7 Hz, largest@0.0016",
            Holds::AtLeast(0.6),
        ),
        claim(
            "144 Hz, 0.16 % loss: largest error of ten runs",
            "13 %",
            "144 Hz, largest@0.0016",
            Holds::AtLeast(0.13),
        ),
        claim(
            "10 000 Hz, 0.16 % loss: largest error of ten runs",
            "0.15 %",
            "10000 Hz, largest@0.0016",
            Holds::AtMost(0.0015),
        )
        .noting(TOO_SMALL),
        claim(
            "10 000 Hz over LDA, 0.5 % loss: error of the mean",
            "about 1",
            "10000 Hz@0.005 / LDA@0.005",
            Holds::Between(0.3, 3.0),
        ),
        claim(
            "LDA, bytes of one end as written",
            "9216",
            "LDA, bytes",
            Holds::AtMost(9216.0),
        )
        .noting("1024 cells of 72 bits in the paper, which has no digest in its cells; ours have one"),
    ],
    figures,
};

const LOSSES: [f64; 7] = [0.0005, 0.001, 0.0016, 0.005, 0.01, 0.05, 0.1];
/// Up to this loss, the bandwidths of equal error are compared: "at loss rates less than 1 %".
const LOSS_COMPARED: f64 = 0.005;
/// 144 of these are as much as 1024 cells of 72 bits.
const TEST_PACKET_BYTES: f64 = 64.0;
const RATES_HZ: [u64; 4] = [1, 7, 144, 10_000];
/// Every point of the paper's figures is an average of so many.
const RUNS: u64 = 10;
const LAW: Law = Law::Weibull { shape: 0.6 };
/// Deviation of that law over its mean.
const VARIATION: f64 = 1.757_9;

/// What one run found.
#[derive(Clone, Copy)]
struct Run {
    /// Delays that the answer rests on.
    used: f64,
    /// Relative.
    mean_error: Option<f64>,
    /// Relative.
    deviation_error: Option<f64>,
}

fn trial(setting: Setting) -> Trial {
    let delays = delays(LAW, setting);
    let count = delays.len() as f64;
    let rates = [0.005, 0.1].map(|target| tuned(512, target * count, 0.5));
    let config = LdaConfig::new(512, &rates).expect("two banks are in range");
    let mut trial = Trial::default();
    let mut squares = Squares::default();
    for (place, loss) in (0..).zip(LOSSES) {
        let lost = episodes_of_loss(delays.len(), loss, setting.seed);
        let seeds = (0..RUNS).map(|run| setting.seed << 16 | place << 8 | run);
        let runs = seeds.clone().map(|seed| of_lda(&config, &delays, &lost, seed));
        note(&mut trial, "LDA", loss, &runs.collect::<Vec<_>>(), &mut squares);
        for hertz in RATES_HZ {
            let runs: Vec<Run> = seeds.clone().map(|seed| sent_at(hertz, &lost, seed)).collect();
            note(&mut trial, &format!("{hertz} Hz"), loss, &runs, &mut squares);
        }
    }
    let bytes = bytes_written(&config, delays.len());
    trial.value("LDA, bytes", bytes);
    squares.note(&mut trial, "LDA", bytes);
    for hertz in RATES_HZ {
        squares.note(&mut trial, &format!("{hertz} Hz"), hertz as f64 * TEST_PACKET_BYTES);
    }
    trial
}

fn of_lda(config: &LdaConfig, delays: &[i64], lost: &[bool], seed: u64) -> Run {
    let compared = compare(config, delays, lost, seed);
    Run {
        used: compared.centred.map_or(0.0, |delay| delay.count as f64),
        mean_error: compared.mean_error(),
        deviation_error: compared.deviation_error(),
    }
}

/// What test packets of a second find, of which those arrive that meet no loss of the traffic; their
/// delays follow its law, and nobody else's delay.
fn sent_at(hertz: u64, lost: &[bool], seed: u64) -> Run {
    let (mut sum, mut squares, mut arrived, mut at) = (0.0, 0.0, 0.0, 0.0);
    let mut number = 0;
    loop {
        number += 1;
        let draw = |purpose: u64| uniform(number << 8 | purpose, seed ^ hertz << 32);
        at += -(1.0 - draw(1)).ln() / hertz as f64;
        let place = (at * lost.len() as f64) as usize;
        match lost.get(place) {
            None => break,
            Some(true) => {}
            Some(false) => {
                let delay = LAW.quantile(draw(2)) / MEAN_NS;
                (sum, squares, arrived) = (sum + delay, squares + delay * delay, arrived + 1.0);
            }
        }
    }
    let mean = sum / arrived;
    let deviation = || ((squares - arrived * mean * mean).max(0.0) / (arrived - 1.0)).sqrt();
    Run {
        used: arrived,
        mean_error: (arrived > 0.0).then(|| (mean - 1.0).abs()),
        deviation_error: (arrived > 1.0).then(|| (deviation() / VARIATION - 1.0).abs()),
    }
}

/// Notes averages, and the largest error of the mean.
fn note(trial: &mut Trial, name: &str, loss: f64, runs: &[Run], squares: &mut Squares) {
    let average =
        |all: &[f64]| (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64);
    let used: Vec<f64> = runs.iter().map(|run| run.used).collect();
    let errors: Vec<f64> = runs.iter().filter_map(|run| run.mean_error).collect();
    let deviations: Vec<f64> = runs.iter().filter_map(|run| run.deviation_error).collect();
    trial.value(format!("{name}@{loss}"), average(&errors));
    trial.value(format!("{name}, largest@{loss}"), errors.iter().copied().reduce(f64::max));
    trial.value(format!("{name}, used@{loss}"), average(&used));
    trial.value(format!("{name}, deviation@{loss}"), average(&deviations));
    trial.point(name, loss, average(&errors));
    trial.point(&format!("{name}, used"), loss, average(&used));
    trial.point(&format!("{name}, deviation"), loss, average(&deviations));
    if loss <= LOSS_COMPARED {
        squares.add(name, &errors);
    }
}

/// Mean squares of errors at the losses that are compared, by name.
#[derive(Default)]
struct Squares(BTreeMap<String, (f64, f64)>);

impl Squares {
    fn add(&mut self, name: &str, errors: &[f64]) {
        let (sum, count) = self.0.entry(name.to_owned()).or_default();
        *sum += errors.iter().map(|error| error * error).sum::<f64>();
        *count += errors.len() as f64;
    }

    /// Times what is sent: the same for any number of test packets.
    fn note(&self, trial: &mut Trial, name: &str, bytes: f64) {
        let (sum, count) = self.0[name];
        trial.value(format!("{name}, square by bytes"), sum / count * bytes);
    }
}

/// What one end sends.
fn bytes_written(config: &LdaConfig, packets: usize) -> f64 {
    let mut upstream = Lda::new(config);
    (0..packets).for_each(|packet| upstream.update(&sent(packet, 0)));
    encode(&upstream).len() as f64
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let names = ["LDA", "1 Hz", "7 Hz", "144 Hz", "10000 Hz"];
    let figure = |suffix: &str, title: &str, label, published: &[(f64, f64)]| {
        let what = suffix.replace('-', ", ");
        let curve = |name| Curve::of_trials(summary, &format!("{name}{what}"), name);
        let mut series: Vec<Curve> = names.into_iter().map(curve).collect();
        series.push(Curve::published("published: 144 Hz", published));
        Figure {
            name: format!("lda-test-packets{suffix}"),
            title: format!("A two-bank LDA beside test packets: {title} by loss"),
            x: Axis::logarithmic("loss (share of packets)"),
            y: Axis::logarithmic(label),
            series,
        }
    };
    vec![
        figure("-used", "delays used", "delays used", &[]),
        figure("", "error of the mean", "relative error", &[(0.005, 0.11)]),
        figure("-deviation", "error of the deviation", "relative error", &[(0.01, 0.15)]),
    ]
}
