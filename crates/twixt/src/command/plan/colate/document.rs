//! The plan as a document, as text and as a picture.

use serde::Serialize;
use twixt_synopsis::Reliability;

use super::{Args, EstimatorName};
use crate::output::{Table, units};
use crate::plot::{Axis, Colour, Layer, Panel, Picture, Quantity, Shape};

/// `twixt plan colate -F json`. The threshold is in packets, bits are those of a sum of times.
#[derive(Serialize)]
pub(super) struct ColateDocument {
    pub(super) counters: u32,
    pub(super) per_flow: u32,
    pub(super) bits: u32,
    pub(super) threshold: u64,
    pub(super) synopsis_bytes: u64,
    pub(super) reachable: ReachableDocument,
    pub(super) expected: Vec<ErrorDocument>,
    pub(super) by_memory: Vec<StorageDocument>,
}

#[derive(Serialize)]
pub(super) struct ReachableDocument {
    pub(super) reliability: f64,
    pub(super) interval: f64,
}

/// Standard error of the mean delay of flows of one size, relative to the mean of all.
#[derive(Serialize)]
pub(super) struct ErrorDocument {
    pub(super) packets: u64,
    pub(super) joint: f64,
    pub(super) paper: f64,
}

/// RAM against storage: one line per memory.
#[derive(Serialize)]
pub(super) struct StorageDocument {
    pub(super) memory_bytes: u64,
    pub(super) counters: u32,
    pub(super) threshold: u64,
    pub(super) bits_per_packet: f64,
    pub(super) reliability: f64,
    pub(super) interval: f64,
}

impl From<Reliability> for ReachableDocument {
    fn from(Reliability { reliability, interval }: Reliability) -> Self {
        Self { reliability, interval }
    }
}

impl Args {
    pub(super) fn report(&self, document: &ColateDocument) -> String {
        let ColateDocument { counters, per_flow, bits, threshold, synopsis_bytes, .. } = document;
        let estimator = match self.estimator {
            EstimatorName::Joint => "joint, sizes known",
            EstimatorName::Paper => "paper",
        };
        let head = format!(
            "colate with {} of state per point: --counters {counters} --per-flow {per_flow}\n\
             sums of times need --time-bits {bits} at --resolution {}\n\
             packets per epoch: {} (estimator {estimator})\n{}\n\n",
            units::bytes(*synopsis_bytes),
            self.resolution,
            units::count(*threshold),
            self.verdict(&document.reachable),
        );
        format!("{head}{}\n{}", document.errors(), document.memories())
    }

    fn verdict(&self, reachable: &ReachableDocument) -> String {
        let within = |reliability: f64, interval: f64| {
            let (often, near) = (units::percent(reliability), units::percent(interval));
            let size = units::count(self.smallest);
            format!("{often} of flows of {size} packets within {near} of their mean")
        };
        let asked = within(self.reliability, self.interval);
        match reachable.interval <= self.interval {
            true => format!("reachable: {asked}"),
            false => format!(
                "not reachable: {asked}; but {}, or {}",
                within(reachable.reliability, self.interval),
                within(self.reliability, reachable.interval)
            ),
        }
    }
}

impl ColateDocument {
    fn errors(&self) -> Table {
        let mut table = Table::new(&["packets of a flow", "error, joint", "error, paper"]);
        for line in &self.expected {
            table.row(vec![
                units::count(line.packets),
                units::percent(line.joint),
                units::percent(line.paper),
            ]);
        }
        table
    }

    fn memories(&self) -> Table {
        let mut table = Table::new(&[
            "memory",
            "counters",
            "packets per epoch",
            "stored bits per packet",
            "reliability",
            "interval",
        ]);
        for line in &self.by_memory {
            table.row(vec![
                units::bytes(line.memory_bytes),
                units::count(u64::from(line.counters)),
                units::count(line.threshold),
                format!("{:.3}", line.bits_per_packet),
                units::percent(line.reliability),
                units::percent(line.interval),
            ]);
        }
        table
    }

    /// Figures 3 and 4 of the paper.
    pub(super) fn picture(&self) -> Option<Picture> {
        let panel = |title: &str, of: fn(&StorageDocument) -> f64| {
            let memory = |line: &StorageDocument| line.memory_bytes as f64 / f64::from(1 << 20);
            let points: Vec<(f64, f64)> =
                self.by_memory.iter().map(|line| (memory(line), of(line))).collect();
            let values = points.iter().map(|point| point.1);
            let (low, high) = (values.clone().reduce(f64::min)?, values.reduce(f64::max)?);
            let (first, last) = (points.first()?.0, points.last()?.0);
            Some(Panel {
                title: title.to_owned(),
                height: 200.0,
                x: Axis::new("memory (MiB)", Quantity::Number, first, last).logarithmic_if_wide(),
                y: Axis::new("", Quantity::Number, low, high).logarithmic_if_wide(),
                layers: vec![Layer::new("", Colour::Series(0), Shape::Line(points))],
            })
        };
        Some(Picture {
            title: "COLATE: memory against storage".to_owned(),
            subtitle: String::new(),
            panels: vec![
                panel("Stored bits per packet", |line| line.bits_per_packet)?,
                panel("Million packets per epoch", |line| line.threshold as f64 / 1e6)?,
            ],
        })
    }
}
