//! How many records survive association, by timing alone and by label, under loss.

use twixt_model::FlowRecord;
use twixt_model::quantity::{Nanoseconds, PacketRate};
use twixt_sim::{Config, Loss, Simulation};
use twixt_synopsis::cnf::{Associated, Rule, TimingBounds, TimingVerdict, associate};

use super::{PACKET_BITS, config, meters, traffic};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "cnf-association",
    algorithm: "Consistent NetFlow",
    paper: "Consistent NetFlow, section IV-B, Table II",
    about: "60 s of traffic, 0.5 % of packets metered, propagation 15 ms, uniform loss from 0 to 5 %: share of \
            upstream records with a downstream record that passes C1, C1 and C2, and so on, and \
            share recognised by label.",
    seeds: Seeds { quick: 2, full: 5 },
    trial,
    claims: &[
        claim("C1, no loss", "100.00 %", "c1@0", Holds::Between(0.98, 1.0)),
        claim("C2, no loss", "100.00 %", "c2@0", Holds::Between(0.98, 1.0)),
        claim("label, no loss", "100.00 %", "label@0", Holds::Between(0.99999, 1.0)),
        claim("C1, 1 % loss", "98.77 %", "c1@0.01", Holds::Between(0.9677, 1.0)),
        claim("C2, 1 % loss", "98.44 %", "c2@0.01", Holds::Between(0.9644, 1.0)),
        claim("label, 1 % loss", "99.24 %", "label@0.01", Holds::Between(0.9724, 1.0)),
        claim("C1, 5 % loss", "93.73 %", "c1@0.05", Holds::Between(0.9173, 0.9573)),
        claim("C2, 5 % loss", "92.42 %", "c2@0.05", Holds::Between(0.9042, 0.9442)),
        claim("C3, 5 % loss", "92.41 %", "c3@0.05", Holds::Between(0.9041, 0.9441)),
        claim("C4, 5 % loss", "92.41 %", "c4@0.05", Holds::Between(0.9041, 0.9441)),
        claim("label, 5 % loss", "95.85 %", "label@0.05", Holds::Between(0.9385, 0.9785)),
        claim(
            "records accepted by timing but not by label",
            "none",
            "timing without label",
            Holds::AtMost(0.0),
        ),
    ],
    figures,
};

const LOSSES: [f64; 6] = [0.0, 0.01, 0.02, 0.03, 0.04, 0.05];

/// Between the bounds.
const PROPAGATION: Nanoseconds = Nanoseconds(15_000_000);
/// As long as the paper's trace: timeouts must be able to matter.
const SECONDS: u64 = 60;
const LOAD: f64 = 0.85;
const SETTINGS: &str =
    "sampling = 0.005\nactive_timeout = 30000000000\ninactive_timeout = 10000000000";

fn trial(setting: Setting) -> Trial {
    let mut trial = Trial::default();
    let mut stray = 0;
    for loss in LOSSES {
        let (upstream, downstream) = meters(&simulation(setting, loss), &config(SETTINGS));
        let (sent, received) = (upstream.records(), downstream.records());
        let survivors = Survivors::of(&sent, &received);
        for (name, count) in survivors.columns() {
            let share = count as f64 / sent.len() as f64;
            trial.value(format!("{name}@{loss}"), share);
            trial.point(name, loss, share);
        }
        stray += survivors.timing_without_label;
        if loss == 0.0 {
            trial.value("records", sent.len() as f64);
        }
    }
    trial.value("timing without label", stray as f64);
    trial
}

/// A queue as long as the bound on the time in it, so that the bound holds.
fn simulation(setting: Setting, loss: f64) -> Simulation {
    let traffic = traffic(setting);
    let rate = traffic.packets.map_or(0, |packets| packets / SECONDS);
    let drain = (rate as f64 * PACKET_BITS / LOAD).round();
    let queue = (rate as f64 / LOAD * TimingBounds::PUBLISHED.processing_ns as f64 / 1e9) as u64;
    let delay = format!("droptail:queue={queue},drain={drain}bit");
    super::run(&Config {
        rate: PacketRate(rate),
        propagation: PROPAGATION,
        delay: delay.parse().expect("a queue is well-formed"),
        loss: if loss > 0.0 { Loss::Uniform { rate: loss } } else { Loss::None },
        ..traffic
    })
}

#[derive(Default)]
struct Survivors {
    c1: u64,
    c2: u64,
    c3: u64,
    c4: u64,
    guarded: u64,
    label: u64,
    timing_without_label: u64,
}

impl Survivors {
    fn of(sent: &[FlowRecord], received: &[FlowRecord]) -> Self {
        let mut survivors = Self::default();
        let by_label = associate(Rule::Label, sent, received);
        survivors.label = by_label.len() as u64;
        for verdict in super::judged(sent, received, &TimingBounds::PUBLISHED) {
            let rank = match verdict {
                TimingVerdict::NoPartner => 0,
                // What follows on differing counts is not looked at.
                TimingVerdict::DifferentCounts | TimingVerdict::OutOfStep => 1,
                TimingVerdict::NearActiveTimeout => 2,
                TimingVerdict::NearInactiveTimeout => 3,
                TimingVerdict::NearSplit => 4,
                TimingVerdict::Accepted { .. } => 5,
            };
            survivors.c1 += u64::from(rank >= 1);
            survivors.c2 += u64::from(rank >= 2);
            survivors.c3 += u64::from(rank >= 3);
            survivors.c4 += u64::from(rank >= 4);
            survivors.guarded += u64::from(rank >= 5);
        }
        let same = |pair: &Associated| {
            pair.upstream.first_label == pair.downstream.first_label
                || pair.upstream.last_label == pair.downstream.last_label
        };
        let by_timing = associate(Rule::Timing(TimingBounds::PUBLISHED), sent, received);
        survivors.timing_without_label = by_timing.iter().filter(|pair| !same(pair)).count() as u64;
        survivors
    }

    fn columns(&self) -> [(&'static str, u64); 6] {
        [
            ("c1", self.c1),
            ("c2", self.c2),
            ("c3", self.c3),
            ("c4", self.c4),
            ("with the guard", self.guarded),
            ("label", self.label),
        ]
    }
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let names = ["c1", "c2", "c4", "with the guard", "label"];
    let published = [(0.0098, 0.9924), (0.0211, 0.982), (0.0291, 0.9764), (0.0392, 0.9665)];
    let mut series: Vec<Curve> =
        names.into_iter().map(|name| Curve::of_trials(summary, name, name)).collect();
    series.push(Curve::published("published: label", &published));
    vec![Figure {
        name: "cnf-association".to_owned(),
        title: "Records that survive association, by loss".to_owned(),
        x: Axis::linear("loss (share of packets)"),
        y: Axis::linear("share of upstream records"),
        series,
    }]
}
