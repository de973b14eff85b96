//! SDS, the Simple Delay Sketch: delay and deviation of every flow where packets say when they
//! were sent.
//!
//! The downstream point then knows the delay of each packet, and adds it to one cell of each row,
//! chosen by the packet's flow; so it needs neither digests nor cells without loss. It keeps
//! squares of delays too. The upstream point counts packets in the same cells: that tells losses.
//! Flows share cells as in [`Lds`](crate::Lds), which is this sketch for packets without stamps.
//!
//! Sanjuàs-Cuxart, Barlet-Ros, Duffield, Kompella: "Sketching the Delay: Tracking Temporally
//! Uncorrelated Flow-Level Latencies", IMC 2011, section 2.2.

mod cell;
mod config;
mod estimate;
mod flows;

pub use config::SdsConfig;

use cell::Cell;
use twixt_model::{Detail, Estimate, Observation, Timestamp};

use crate::codec::{DecodeError, Reader, Writer};
use crate::question::Question;
use crate::synopsis::{
    ConfigOption, FlowNames, Needs, OptionKind, Pair, Synopsis, TwoPoint, WEIGHTS_OPTION,
};
use crate::totals::Totals;

/// The Simple Delay Sketch.
#[derive(Clone, Debug, PartialEq)]
pub struct Sds {
    config: SdsConfig,
    totals: Totals,
    /// `rows * columns` of them, row by row.
    cells: Vec<Cell>,
}

impl Sds {
    #[inline]
    fn count(&mut self, observation: &Observation, sent: Option<Timestamp>) {
        self.totals.add(observation.length);
        let packet = self.config.cell_of(observation, sent);
        for index in self.config.sketch().cells_for(observation.flow, observation.digest) {
            self.cells[index].add(&packet);
        }
    }
}

impl Synopsis for Sds {
    const NAME: &'static str = "sds";
    const TAG: u16 = 5;
    const SUMMARY: &'static str =
        "delay and deviation of any flow that you name, if packets carry their send time";
    const NEEDS: Needs =
        Needs { digest: true, flow: true, detail: true, group: false, exchange: false };
    const OPTIONS: &'static [ConfigOption] = &[
        ConfigOption {
            name: "rows",
            kind: OptionKind::Integer,
            help: "rows of cells: each packet is counted once per row",
        },
        ConfigOption { name: "columns", kind: OptionKind::Integer, help: "cells per row" },
        WEIGHTS_OPTION,
    ];
    type Config = SdsConfig;

    fn sized(memory_bytes: u64) -> Option<SdsConfig> {
        SdsConfig::within(memory_bytes)
    }

    fn new(config: &SdsConfig) -> Self {
        let cells = vec![Cell::default(); config.sketch().cells()];
        Self { config: config.clone(), totals: Totals::default(), cells }
    }

    fn config(&self) -> &SdsConfig {
        &self.config
    }

    fn flow_names(&self) -> FlowNames {
        FlowNames::None
    }

    fn reads_stamps(&self) -> bool {
        true
    }

    fn reads_headers(&self) -> bool {
        false
    }

    /// A packet without a stamp: its delay is not known.
    fn update(&mut self, observation: &Observation) {
        self.count(observation, None);
    }

    #[inline]
    fn update_detailed(&mut self, observation: &Observation, detail: &Detail) {
        self.count(observation, detail.sent);
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
        (size_of::<Totals>() + self.cells.len() * Cell::BYTES) as u64
    }

    fn encode(&self, out: &mut Writer) {
        self.config.encode(out);
        self.totals.encode(out);
        for cell in &self.cells {
            cell.encode(out);
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let config = SdsConfig::decode(input)?;
        let totals = Totals::decode(input)?;
        let count = config.sketch().cells();
        let mut state = Reader::new(input.raw("cells", count * Cell::BYTES)?);
        let cells = (0..count).map(|_| Cell::decode(&mut state)).collect::<Result<_, _>>()?;
        Ok(Self { config, totals, cells })
    }
}

impl TwoPoint for Sds {
    const ESTIMATORS: &'static [&'static str] = &["joint", "min", "printed"];
    const PER_FLOW: bool = true;

    /// Takes a packet out of the counts. Its delay stays where it arrived: a caller that moves a
    /// packet across an epoch's boundary does not know its stamp. So losses belong to the epoch in
    /// which packets were sent, and delays to that in which they came.
    fn remove(&mut self, observation: &Observation) {
        self.totals.subtract(observation.length);
        let packet = self.config.cell_of(observation, None);
        for index in self.config.sketch().cells_for(observation.flow, observation.digest) {
            self.cells[index].subtract(&packet);
        }
    }

    fn estimate(pair: Pair<'_, Self>, question: &Question<'_>) -> Vec<Estimate> {
        estimate::estimate(pair, question)
    }
}

#[cfg(test)]
mod tests;
