//! LDA, the Lossy Difference Aggregator: mean, deviation and loss of all traffic.
//!
//! Both points hash each packet to the same cell and add its time there. If a cell counted as
//! many packets downstream as upstream, and their digests add up to the same, none of them was
//! lost, and the difference of the two sums of times is the total delay of those packets. Banks
//! sample at different rates, so that under any loss some bank still has cells without a lost
//! packet.
//!
//! Kompella, Levchenko, Snoeren, Varghese: "Router Support for Fine-Grained Latency
//! Measurements", IEEE/ACM Transactions on Networking 20(3), 2012; first at SIGCOMM 2009.
//! Where we differ from what is printed there, the code says so and why.

mod config;
mod estimate;
mod repeats;

pub use config::LdaConfig;

use twixt_model::{Estimate, Observation};

use crate::codec::{DecodeError, Reader, Writer};
use crate::question::Question;
use crate::sums::Sums;
use crate::synopsis::{ConfigOption, Needs, OptionKind, Pair, Synopsis, TwoPoint};
use crate::totals::Totals;

/// The Lossy Difference Aggregator.
#[derive(Clone, Debug, PartialEq)]
pub struct Lda {
    config: LdaConfig,
    totals: Totals,
    /// `banks * rows` of them, bank by bank.
    cells: Vec<Sums>,
}

impl Synopsis for Lda {
    const NAME: &'static str = "lda";
    const TAG: u16 = 2;
    const SUMMARY: &'static str = "mean, deviation and loss of all traffic in a few kilobytes";
    const NEEDS: Needs = Needs { digest: true, flow: false, detail: false, group: false };
    const OPTIONS: &'static [ConfigOption] = &[
        ConfigOption {
            name: "banks",
            kind: OptionKind::Integer,
            help: "banks of cells, each sampling an eighth of the one before",
        },
        ConfigOption { name: "rows", kind: OptionKind::Integer, help: "cells per bank" },
        ConfigOption {
            name: "sampling",
            kind: OptionKind::Numbers,
            help: "share of packets that reaches each bank or a later one, such as 1,0.1,0.01",
        },
    ];
    type Config = LdaConfig;

    fn sized(memory_bytes: u64) -> Option<LdaConfig> {
        LdaConfig::within(memory_bytes)
    }

    fn new(config: &LdaConfig) -> Self {
        let cells = vec![Sums::default(); config.cells()];
        Self { config: config.clone(), totals: Totals::default(), cells }
    }

    fn config(&self) -> &LdaConfig {
        &self.config
    }

    #[inline]
    fn update(&mut self, observation: &Observation) {
        self.totals.add(observation.length);
        if let Some(index) = self.config.cell_for(observation.digest) {
            self.cells[index].add(&Sums::of(observation));
        }
    }

    fn merge(&mut self, other: &Self) {
        self.totals.merge(other.totals);
        for (cell, other) in self.cells.iter_mut().zip(&other.cells) {
            cell.add(other);
        }
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn state_bytes(&self) -> u64 {
        (size_of::<Totals>() + self.cells.len() * Sums::BYTES) as u64
    }

    fn encode(&self, out: &mut Writer) {
        self.config.encode(out);
        self.totals.encode(out);
        for cell in &self.cells {
            cell.encode(out);
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let config = LdaConfig::decode(input)?;
        let totals = Totals::decode(input)?;
        let mut state = Reader::new(input.raw("cells", config.cells() * Sums::BYTES)?);
        let cells =
            (0..config.cells()).map(|_| Sums::decode(&mut state)).collect::<Result<_, _>>()?;
        Ok(Self { config, totals, cells })
    }
}

impl TwoPoint for Lda {
    const ESTIMATORS: &'static [&'static str] = &["centred", "printed"];
    const PER_FLOW: bool = false;

    fn remove(&mut self, observation: &Observation) {
        self.totals.subtract(observation.length);
        if let Some(index) = self.config.cell_for(observation.digest) {
            self.cells[index].subtract(&Sums::of(observation));
        }
    }

    fn estimate(pair: Pair<'_, Self>, question: &Question<'_>) -> Vec<Estimate> {
        vec![estimate::estimate(pair, question)]
    }
}
