//! Why a fridge has one stage: how long requests live in tables of several.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::claim::{Claim, Holds};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "fridge-stages",
    algorithm: "Round trips",
    paper: "Unbiased delay measurement, section 2.3.1, equation (2.4)",
    about: "256 entries in 1, 2, 4 and 8 stages, each of which passes on what it evicts to the \
         next: share of requests that survive at least this many average lifetimes.",
    seeds: Seeds { quick: 2, full: 10 },
    trial,
    claims: &[
        claim("mean life in 8 stages, in lifetimes M/p", "1", "8, mean", 0.98, 1.02),
        claim("1 stage: share that survive 3 M/p", "e⁻³ = 5.0 %", "1, long", 0.047, 0.053),
        claim(
            "2 stages: share that survive 3 M/p",
            "less (7 e⁻⁶ = 1.7 %)",
            "2, long",
            0.016,
            0.019,
        ),
        claim("4 stages: share that survive 3 M/p", "less (0.23 %)", "4, long", 0.0015, 0.003),
        claim("8 stages: share that survive 3 M/p", "next to none", "8, long", 0.0, 0.0005),
    ],
    figures,
};

const fn claim(
    claim: &'static str,
    published: &'static str,
    value: &'static str,
    least: f64,
    most: f64,
) -> Claim {
    Claim { claim, published, value, holds: Holds::Between(least, most), note: "" }
}

const ENTRIES: usize = 256;
const STAGES: [usize; 4] = [1, 2, 4, 8];

fn trial(setting: Setting) -> Trial {
    let mut trial = Trial::default();
    for stages in STAGES {
        let lives = lives(stages, setting.size.pick(300_000, 1_000_000), setting.seed);
        let count = lives.len() as f64;
        let at_least =
            |lifetimes: f64| lives.iter().filter(|&&life| life >= lifetimes).count() as f64 / count;
        trial.value(format!("{stages}, mean"), lives.iter().sum::<f64>() / count);
        trial.value(format!("{stages}, long"), at_least(3.0));
        for step in 0..=24 {
            let lifetimes = f64::from(step) / 4.0;
            // What is zero has no place on an axis of powers of ten.
            let share = Some(at_least(lifetimes)).filter(|&share| share > 0.0);
            trial.point(&stages.to_string(), lifetimes, share);
        }
    }
    trial
}

/// How long each request lived, as a share of the average lifetime: as many insertions as there
/// are entries.
fn lives(stages: usize, insertions: u64, seed: u64) -> Vec<f64> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut tables = vec![vec![None; ENTRIES / stages]; stages];
    let mut lives = Vec::new();
    for now in 0..insertions {
        let mut moving = Some(now);
        for table in &mut tables {
            let place = random.next_u64() as usize % table.len();
            moving = std::mem::replace(&mut table[place], moving);
            if moving.is_none() {
                break;
            }
        }
        lives.extend(moving.map(|born| (now - born) as f64 / ENTRIES as f64));
    }
    lives
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let label = |stages: usize| match stages {
        1 => "1 stage".to_owned(),
        _ => format!("{stages} stages"),
    };
    vec![Figure {
        name: "fridge-stages".to_owned(),
        title: "Fridges of several stages: how long requests live".to_owned(),
        x: Axis::linear("life (average lifetimes M/p)"),
        y: Axis::logarithmic("share of requests"),
        series: STAGES
            .map(|stages| Curve::of_trials(summary, &stages.to_string(), label(stages)))
            .into(),
    }]
}
