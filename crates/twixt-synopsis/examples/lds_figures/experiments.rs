//! One function per figure.

use std::collections::BTreeMap;

use twixt_sim::Loss;
use twixt_synopsis::{KnownFlow, LdsConfig};

use crate::table::Errors;
use crate::traffic::{Scale, Traffic, key_of};

type Experiment = fn(&Scale);

/// All of them.
pub(crate) const ALL: &[(&str, Experiment)] = &[
    ("sizes", sizes),
    ("loss-0", |scale| loss(scale, 0.0)),
    ("loss-0.001", |scale| loss(scale, 0.001)),
    ("loss-0.005", |scale| loss(scale, 0.005)),
    ("loss-0.01", |scale| loss(scale, 0.01)),
    ("weights", weights),
    ("flow-loss", flow_loss),
    ("drop-tail", drop_tail),
    ("listed", listed),
];

const JOINT: (&str, bool) = ("joint", true);
const ESTIMATED: (&str, bool) = ("joint", false);
const PAPER: (&str, bool) = ("paper", true);

fn config(columns: u32, virtual_cells: u32, sampling: &[f64], alpha: f64) -> LdsConfig {
    LdsConfig::new(columns, virtual_cells, sampling).unwrap().with_alpha(alpha).unwrap()
}

fn name(setting: &str, (estimator, known): (&str, bool)) -> String {
    format!("{setting} {estimator}{}", if known { "" } else { " (sizes estimated)" })
}

/// Several estimators beside each other.
#[derive(Default)]
struct Beside {
    errors: BTreeMap<String, Errors>,
    order: Vec<String>,
}

impl Beside {
    fn add(&mut self, traffic: &Traffic, setting: &str, config: &LdsConfig, by: &[(&str, bool)]) {
        let sketches = traffic.sketches(config);
        for &(estimator, known) in by {
            let name = name(setting, (estimator, known));
            if !self.order.contains(&name) {
                self.order.push(name.clone());
            }
            let answers = traffic.ask(&sketches, estimator, known);
            self.errors.entry(name).or_default().add(&answers);
        }
    }

    fn print(&self) {
        for name in &self.order {
            self.errors[name].print(name);
        }
    }
}

/// Figures 9 and 10: a tenth of the cells, half as many cells as flows, more cells than flows.
fn sizes(scale: &Scale) {
    let mut beside = Beside::default();
    for &seed in &scale.seeds {
        let traffic = Traffic::new(scale, seed, Loss::None);
        for share in [0.012, 0.12, 0.48] {
            let columns = (f64::from(scale.flows) * share).round() as u32;
            let setting = format!("4 x {columns}");
            let config = config(columns, 1, &[1.0; 4], 0.0);
            beside.add(&traffic, &setting, &config, &[PAPER, JOINT, ESTIMATED]);
        }
    }
    beside.print();
}

const BANKS: [f64; 4] = [0.01, 0.1, 0.5, 1.0];

/// Figure 11: rows that sample differently, against all rows alike, and against one cell per row.
fn loss(scale: &Scale, rate: f64) {
    let columns = (f64::from(scale.flows) * 0.6).round() as u32;
    let mut beside = Beside::default();
    let (mut missing, mut large) = (Vec::new(), 0);
    for &seed in &scale.seeds {
        let loss = if rate > 0.0 { Loss::Uniform { rate } } else { Loss::None };
        let traffic = Traffic::new(scale, seed, loss);
        let banks = config(columns, 5, &BANKS, 0.1);
        beside.add(&traffic, "banks", &banks, &[PAPER, JOINT, ESTIMATED]);
        for share in [0.05, 1.0] {
            let alike = config(columns, 5, &[share; 4], 0.1);
            beside.add(&traffic, &format!("all at {share}"), &alike, &[PAPER]);
        }
        large += traffic.truth.values().filter(|flow| flow.evidence.packets >= 20_000).count();
        missing.extend(unanswered(&traffic, &banks));
    }
    beside.print();
    println!("of {large} flows of 20 000 packets and more without an answer: {missing:?}");
}

/// Packets and losses of very large flows that no cell tells anything about.
fn unanswered(traffic: &Traffic, config: &LdsConfig) -> Vec<(u64, u64)> {
    let answers = traffic.ask(&traffic.sketches(config), "paper", true);
    let large = answers.iter().filter(|(_, truth)| truth.evidence.packets >= 20_000);
    let missing = large.filter(|(estimate, _)| estimate.delay.is_none());
    missing
        .map(|(_, truth)| (truth.evidence.packets, truth.evidence.lost.unwrap_or_default()))
        .collect()
}

/// Figure 12: customers of bronze, silver and gold, 90, 9 and 1 % of flows.
fn weights(scale: &Scale) {
    for share in [0.0685, 0.171] {
        let columns = (f64::from(scale.flows) * share).round() as u32;
        for weights in [[1, 1, 1], [1, 25, 100], [1, 10, 100], [1, 50, 2500]] {
            let mut classes = BTreeMap::<(&str, usize), Errors>::new();
            for &seed in &scale.seeds {
                let traffic = Traffic::new(scale, seed, Loss::None).classed();
                let config = config(columns, 1, &[1.0; 4], 0.0).with_weights(&weights).unwrap();
                let sketches = traffic.sketches(&config);
                for (estimator, known) in [PAPER, JOINT] {
                    let answers = traffic.ask(&sketches, estimator, known);
                    for class in 0..3 {
                        let of_class = |flow: &KnownFlow| usize::from(flow.class.0) == class;
                        let flows = traffic.flows.iter().map(of_class);
                        let mine = answers.iter().zip(flows).filter(|(_, mine)| *mine);
                        let mine: Vec<_> = mine.map(|(answer, _)| answer.clone()).collect();
                        classes.entry((estimator, class)).or_default().add(&mine);
                    }
                }
            }
            for ((estimator, class), errors) in classes {
                let customers = ["bronze", "silver", "gold"][class];
                errors.print_large(&format!("4 x {columns} {weights:?} {estimator} {customers}"));
            }
        }
    }
}

/// A real queue, whose losses come when delays are longest.
fn drop_tail(scale: &Scale) {
    let mut beside = Beside::default();
    for &seed in &scale.seeds {
        let scale = Scale { flows: 20_000, packets: 600_000, seeds: Vec::new() };
        let queue = "droptail:drain=1300mbit,queue=2000";
        let traffic = Traffic::with_delay(&scale, seed, Loss::None, queue);
        let lost: u64 = traffic.truth.values().filter_map(|flow| flow.evidence.lost).sum();
        println!("seed {seed}: lost {:.3} %", 100.0 * lost as f64 / scale.packets as f64);
        let banks = config(12_500, 5, &BANKS, 0.1);
        beside.add(&traffic, "banks", &banks, &[PAPER, JOINT, ESTIMATED]);
        let plain = config(10_000, 1, &[1.0; 4], 0.0);
        beside.add(&traffic, "4 x 10000", &plain, &[PAPER, JOINT]);
    }
    beside.print();
}

/// Only flows of 100 packets and more are listed.
fn listed(scale: &Scale) {
    let mut beside = Beside::default();
    for &seed in &scale.seeds {
        let mut traffic = Traffic::new(scale, seed, Loss::None);
        traffic.flows.retain(|flow| flow.packets.unwrap() >= 100);
        let columns = (f64::from(scale.flows) * 0.12).round() as u32;
        let config = config(columns, 1, &[1.0; 4], 0.0);
        beside.add(&traffic, "large ones listed", &config, &[PAPER, JOINT, ESTIMATED]);
    }
    beside.print();
}

/// Loss of flows of 1000 packets and more that have most of some row's cells to themselves.
fn flow_loss(scale: &Scale) {
    for (columns, rate) in [(0.12, 0.001), (0.12, 0.01), (0.48, 0.01)] {
        let columns = (f64::from(scale.flows) * columns).round() as u32;
        let (mut large, mut told, mut right, mut silent) = (0_u64, 0_u64, 0_u64, 0_u64);
        for &seed in &scale.seeds {
            let traffic = Traffic::new(scale, seed, Loss::Uniform { rate });
            let sketches = traffic.sketches(&config(columns, 1, &[1.0; 4], 0.0));
            for (estimate, truth) in traffic.ask(&sketches, "joint", true) {
                let really = truth.evidence.lost.unwrap();
                let lost = traffic.truth[&key_of(&estimate.scope)]
                    .evidence
                    .lost
                    .and(estimate.evidence.lost);
                silent += u64::from(lost == Some(0) && really > 0);
                if truth.evidence.packets < 1000 {
                    continue;
                }
                large += 1;
                if let Some(lost) = lost {
                    told += 1;
                    let tolerance = (0.1 * really as f64).max(2.0);
                    right += u64::from(lost.abs_diff(really) as f64 <= tolerance);
                }
            }
        }
        println!(
            "4 x {columns}, loss {rate}: told for {told} of {large} flows of 1000+, right for {right} \
             ({:.1} %); said 0 wrongly {silent} times",
            100.0 * right as f64 / told as f64
        );
    }
}
