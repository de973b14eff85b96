//! The deviation: virtual repetitions have a closed form, and neither gets below a floor.

use twixt_model::mix;

use super::{LARGE, MANY, PER_FLOW, ask, packets, scaled, segment, vector};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::experiments::segment::median;
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

const FLOOR: &str = "twenty counters are twenty numbers: their variance has a relative error of \
     sqrt(2 / 19) = 32 %, the deviation half of that, however often they are paired again";

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "colate-deviation",
    algorithm: "COLATE",
    paper: "COLATE, section 4.3 and 6.2.2, Fig. 7 and 9",
    about: "Counters of one flow without any noise, paired at random 1 to 1000 times and in all \
            ways at once (closed form): relative error (root mean square) of the sum of squares; \
            and the deviation of flows of 1000 packets and more in 455 334 counters.",
    seeds: Seeds { quick: 2, full: 4 },
    trial,
    claims: &[
        claim("m = 20, 1 repetition: off by", "–", "repeated@1", Holds::Between(0.40, 0.48)),
        claim("m = 20, 10 repetitions: off by", "–", "repeated@10", Holds::Between(0.30, 0.36)),
        claim(
            "m = 20, 1000 repetitions: off by",
            "falls with repetitions",
            "repeated@1000",
            Holds::Differs,
        )
        .noting(FLOOR),
        claim("m = 20, closed form: off by", "–", "closed@20", Holds::Between(0.30, 0.35))
            .noting(FLOOR),
        claim("m = 800, closed form: off by", "–", "closed@800", Holds::Between(0.045, 0.055)),
        claim("closed form for 10, 14, 9, 19", "–", "four", Holds::Between(82.666_6, 82.666_7)),
        claim(
            "flows of 1000+, deviation within 5 %",
            "91 % (1000 repetitions), 98 % (100 000)",
            "within 5 %",
            Holds::Differs,
        )
        .noting(FLOOR),
        claim("flows of 1000+: deviation off by (median)", "–", "median", Holds::AtMost(0.2)),
    ],
    figures,
};

const REPETITIONS: [u32; 4] = [1, 10, 100, 1000];
const COUNTERS: [usize; 4] = [20, 100, 400, 800];

fn trial(setting: Setting) -> Trial {
    let runs = setting.size.pick(1000, 4000) as usize;
    let mut random = Random(mix(setting.seed));
    let mut trial = Trial::default();
    for repetitions in REPETITIONS {
        let error =
            relative_error(runs, 20, &mut random, |x, random| repeated(x, repetitions, random));
        trial.value(format!("repeated@{repetitions}"), error);
        trial.point("repeated", f64::from(repetitions), error);
        trial.point("floor", f64::from(repetitions), (2.0_f64 / 19.0).sqrt());
    }
    for counters in COUNTERS {
        let error = relative_error(runs, counters, &mut random, |x, _| all_pairings(x));
        trial.value(format!("closed@{counters}"), error);
        trial.point("closed", counters as f64, error);
        trial.point("formula", counters as f64, (2.0 / (counters as f64 - 1.0)).sqrt());
    }
    trial.value("four", all_pairings(&[10.0, 14.0, 9.0, 19.0]));
    note_flows(&mut trial, setting);
    trial
}

fn note_flows(trial: &mut Trial, setting: Setting) {
    let segment = segment(setting);
    let ends = segment.ends(&vector(scaled(MANY, packets(setting)), PER_FLOW));
    let errors = ask(&segment, &ends, "joint").deviation_errors(LARGE);
    let within = errors.iter().filter(|error| **error <= 0.05).count();
    trial.value("within 5 %", within as f64 / errors.len() as f64);
    trial.value("median", median(errors));
}

/// Root mean square error of an estimate of the sum of squares behind normal counters, each of
/// which has variance 1.
fn relative_error(
    runs: usize,
    counters: usize,
    random: &mut Random,
    estimate: impl Fn(&[f64], &mut Random) -> f64,
) -> f64 {
    let truth = counters as f64;
    let squares = (0..runs).map(|_| {
        let values: Vec<f64> = (0..counters).map(|_| random.normal()).collect();
        (estimate(&values, random) / truth - 1.0).powi(2)
    });
    (squares.sum::<f64>() / runs as f64).sqrt()
}

/// The paper's: pair counters at random, add up squared differences, and take the mean of that.
fn repeated(values: &[f64], repetitions: u32, random: &mut Random) -> f64 {
    let mut values = values.to_vec();
    let mut sum = 0.0;
    for _ in 0..repetitions {
        for last in (1..values.len()).rev() {
            values.swap(last, random.below(last as u64 + 1) as usize);
        }
        sum += values.chunks_exact(2).map(|pair| (pair[0] - pair[1]).powi(2)).sum::<f64>();
    }
    sum / f64::from(repetitions)
}

/// The mean of that over all pairings: counters times their sample variance.
fn all_pairings(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares * count / (count - 1.0)
}

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// By Box and Muller.
    fn normal(&mut self) -> f64 {
        let mut uniform = || ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        let (radius, angle) = (uniform(), uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}

fn figures(summary: &Summary) -> Vec<Figure> {
    vec![
        Figure {
            name: "colate-deviation-repetitions".to_owned(),
            title: "20 counters paired at random: error of the sum of squares".to_owned(),
            x: Axis::logarithmic("virtual repetitions"),
            y: Axis::linear("relative error (root mean square)"),
            series: vec![
                Curve::of_trials(summary, "repeated", "pairings at random"),
                Curve::of_trials(summary, "floor", "all pairings: sqrt(2 / (m - 1))"),
            ],
        },
        Figure {
            name: "colate-deviation-counters".to_owned(),
            title: "All pairings at once: error of the sum of squares".to_owned(),
            x: Axis::logarithmic("counters of a flow"),
            y: Axis::logarithmic("relative error (root mean square)"),
            series: vec![
                Curve::of_trials(summary, "closed", "measured"),
                Curve::of_trials(summary, "formula", "sqrt(2 / (m - 1))"),
            ],
        },
    ]
}
