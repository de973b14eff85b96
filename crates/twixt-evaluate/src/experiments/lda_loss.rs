//! LDA, error of mean and deviation by loss: one bank tuned to the loss.

use twixt_model::{Observation, PacketDigest, Span, Timestamp, mix};
use twixt_synopsis::{Lda, LdaConfig, Pair, Question, Synopsis, TwoPoint};

use crate::claim::{Claim, Holds};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Figure, Series};
use crate::summary::Summary;

pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "lda-loss",
    algorithm: "LDA",
    paper: "LDA and mPlane, section V, Fig. 4",
    about: "One bank of 1024 rows, tuned to the loss, over Weibull(0.6) delays: how far mean and \
            deviation are off, from 0.1 to 20 % loss.",
    seeds: Seeds { quick: 8, full: 100 },
    trial,
    claims: &[
        Claim {
            claim: "mean off by under 0.3 % at 0.1 % loss",
            published: "< 0.3 %",
            value: "mean@0.001",
            holds: Holds::AtMost(0.003),
            note: "",
        },
        Claim {
            claim: "mean off by about 4 % at 20 % loss",
            published: "4 %",
            value: "mean@0.2",
            holds: Holds::AtMost(0.042),
            note: "",
        },
    ],
    figures,
};

const ROWS: u32 = 1024;
const LOSSES: [f64; 7] = [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2];

fn trial(setting: Setting) -> Trial {
    let packets = setting.size.pick(1_100_000, 1_100_000);
    let delays = weibull_delays(packets, setting.seed);
    let mut trial = Trial::default();
    for loss in LOSSES {
        let (mean, deviation) = errors(&delays, loss, setting.seed);
        trial.value(format!("mean@{loss}"), mean);
        trial.value(format!("deviation@{loss}"), deviation);
        trial.point("mean", loss, mean);
        trial.point("deviation", loss, deviation);
    }
    trial
}

/// Weibull delays of shape 0.6 and scale 0.133 ms, by inversion.
fn weibull_delays(packets: u64, seed: u64) -> Vec<i64> {
    let uniform = |packet: u64| (mix(packet ^ seed << 40) >> 11) as f64 / (1_u64 << 53) as f64;
    let delay = |packet| 133_000.0 * (-(1.0 - uniform(packet)).ln()).powf(1.0 / 0.6);
    (0..packets).map(|packet| delay(packet).round() as i64).collect()
}

/// Relative errors of mean and deviation.
fn errors(delays: &[i64], loss: f64, seed: u64) -> (Option<f64>, Option<f64>) {
    let config = LdaConfig::tuned(ROWS, (loss * delays.len() as f64) as u64)
        .expect("rows and losses are in range");
    let (mut upstream, mut downstream) = (Lda::new(&config), Lda::new(&config));
    let lose_below = (loss * u64::MAX as f64) as u64;
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for (packet, &delay) in delays.iter().enumerate() {
        let digest = mix(packet as u64 ^ seed << 32);
        let sent_ns = packet as i64 * 200;
        upstream.update(&seen(digest, sent_ns));
        if mix(digest ^ 0x6c6f_7373) >= lose_below {
            downstream.update(&seen(digest, sent_ns + delay));
            (count, sum, squares) =
                (count + 1.0, sum + delay as f64, squares + (delay as f64).powi(2));
        }
    }
    let (true_mean, true_square) = (sum / count, squares / count);
    let true_deviation = (true_square - true_mean.powi(2)).sqrt();
    let question = Question::about(Span::at(Timestamp::from_nanos(0)));
    let pair = Pair { upstream: &upstream, downstream: &downstream };
    let delay = Lda::estimate(pair, &question).first().and_then(|estimate| estimate.delay);
    let mean = delay.map(|delay| (delay.mean_ns() / true_mean - 1.0).abs());
    let deviation = delay.and_then(|delay| delay.deviation_ns);
    (mean, deviation.map(|deviation| (deviation / true_deviation - 1.0).abs()))
}

fn seen(digest: u64, time_ns: i64) -> Observation {
    Observation {
        time: Timestamp::from_nanos(time_ns),
        digest: PacketDigest(digest),
        length: 250,
        ..Observation::default()
    }
}

fn figures(summary: &Summary) -> Vec<Figure> {
    vec![Figure {
        name: "lda-loss".to_owned(),
        title: "LDA, one bank of 1024 rows: relative error by loss".to_owned(),
        x: Axis::logarithmic("loss (share of packets)"),
        y: Axis::logarithmic("relative error"),
        series: vec![
            Series::curve(summary, "mean", "mean"),
            Series::curve(summary, "deviation", "deviation"),
            Series::published("published: mean", &[(0.001, 0.003), (0.2, 0.04)]),
        ],
    }]
}
