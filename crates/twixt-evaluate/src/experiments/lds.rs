//! LDS: what its experiments share.
//!
//! The paper's trace (the access line of a university, 27 000 packets per second, 7.76 million packets of
//! 146 000 flows) cannot be had. Ours has as many packets and flows, of Pareto sizes up to three
//! million packets, and delays of two modes, as in the paper's Fig. 8. Quick runs have 20 000 flows
//! of the same sizes, and cells to match.

mod bins;
pub(super) mod distribution;
pub(super) mod few_cells;
pub(super) mod flow_loss;
pub(super) mod flow_size;
pub(super) mod loss;
pub(super) mod more_cells;
pub(super) mod plan;
pub(super) mod queue;
mod rivals;
pub(super) mod sizing;
pub(super) mod weights;

use twixt_model::quantity::PacketRate;
use twixt_sim::{Config, Loss};
use twixt_synopsis::{Lds, LdsConfig};

use super::segment::{Answers, Packets, Sizes, TestSegment, median};
use crate::experiment::{Setting, Size, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

const FULL_FLOWS: u64 = 146_000;
const FULL_PACKETS: u64 = 7_760_000;
/// Packets per second of the paper's trace.
const RATE: u64 = 27_000;
/// Rows of the paper's experiments.
const ROWS: usize = 4;
/// Columns of its sketch of 70 000 cells: twice as many flows as cells.
const COLUMNS: u32 = 17_500;
const LARGE: Packets = 1000..=u64::MAX;

/// Classes of flow sizes, with a packet number to draw them at.
const CLASSES: [(&str, Packets, f64); 5] = [
    ("1-9", 1..=9, 3.0),
    ("10-99", 10..=99, 30.0),
    ("100-499", 100..=499, 220.0),
    ("500-999", 500..=999, 700.0),
    ("1000+", LARGE, 3000.0),
];

/// Ways to ask, and what they are called.
const WAYS: [(&str, &str, Sizes); 3] = [
    ("paper", "paper", Sizes::Known),
    ("joint", "joint", Sizes::Known),
    ("joint, sizes estimated", "joint", Sizes::Estimated),
];

const fn flows(setting: Setting) -> u64 {
    setting.size.pick(20_000, FULL_FLOWS)
}

/// As many flows per cell with fewer flows.
const fn scaled(columns: u32, setting: Setting) -> u32 {
    (columns as u64 * flows(setting) / FULL_FLOWS) as u32
}

fn segment(setting: Setting, loss: Loss) -> TestSegment {
    TestSegment::new(&traffic(setting, loss))
}

/// At the rate of the paper's trace, on which ways depend that look at packets that pass together. No
/// sketch does: other experiments take the rate of the simulator.
fn paced_segment(setting: Setting) -> TestSegment {
    TestSegment::new(&Config { rate: PacketRate(RATE), ..traffic(setting, Loss::None) })
}

fn traffic(setting: Setting, loss: Loss) -> Config {
    let delay = "bimodal:fraction=0.6,first=1ms,second=1500us,spread=0.1,jitter=0.1";
    let sizes = "pareto:shape=1.05,min=2.53,max=3000000";
    Config {
        seed: setting.seed,
        flows: flows(setting) as u32,
        packets: (setting.size == Size::Full).then_some(FULL_PACKETS),
        flow_size: sizes.parse().expect("a size is well-formed"),
        delay: delay.parse().expect("a delay is well-formed"),
        loss,
        ..Config::default()
    }
}

/// Rows that count every packet, in one cell per flow.
fn whole_rows(columns: u32) -> LdsConfig {
    LdsConfig::new(columns, 1, &[1.0; ROWS]).expect("columns are in range")
}

fn ask(segment: &TestSegment, ends: &(Lds, Lds), estimator: &str, sizes: Sizes) -> Answers {
    segment.ask((&ends.0, &ends.1), estimator, sizes)
}

/// Median errors of all classes of flow sizes without loss, by estimator.
fn by_class(setting: Setting, columns: u32) -> Trial {
    let segment = segment(setting, Loss::None);
    let ends = segment.ends(&whole_rows(scaled(columns, setting)));
    let mut trial = Trial::default();
    trial.value("packets of small flows", packets_of_small_flows(&segment));
    for (name, estimator, sizes) in WAYS {
        let answers = ask(&segment, &ends, estimator, sizes);
        note_classes(&mut trial, name, &answers);
    }
    trial
}

/// Error and coverage of every class of flow sizes.
fn note_classes(trial: &mut Trial, name: &str, answers: &Answers) {
    for (class, packets, at) in CLASSES {
        let error = answers.median_error(packets.clone());
        trial.value(format!("{name}, {class}"), error);
        trial.value(format!("{name}, {class}, covered"), answers.coverage(packets));
        trial.point(name, at, error);
    }
}

/// Errors of [`by_class`] over the sizes of flows.
fn by_size(summary: &Summary, name: &str, title: &str) -> Figure {
    Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        x: Axis::logarithmic("packets of the flow"),
        y: Axis::logarithmic("median relative error"),
        series: WAYS.map(|(name, ..)| Curve::of_trials(summary, name, name)).into(),
    }
}

/// The share of packets that flows of fewer than 100 have.
fn packets_of_small_flows(segment: &TestSegment) -> f64 {
    let sizes = segment.flows.iter().filter_map(|flow| flow.packets);
    let small: u64 = sizes.clone().filter(|packets| *packets < 100).sum();
    small as f64 / sizes.sum::<u64>() as f64
}

/// Median error, and which share of flows is off by at most so much.
fn note_distribution(trial: &mut Trial, name: &str, mut errors: Vec<f64>) {
    errors.sort_unstable_by(f64::total_cmp);
    for tenths in -40..=10 {
        let most = 10_f64.powf(f64::from(tenths) / 10.0);
        let below = errors.partition_point(|error| *error <= most);
        trial.point(name, most, below as f64 / errors.len() as f64);
    }
    trial.value(name, median(errors));
}
