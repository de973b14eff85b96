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

use crate::cells::{Added, Cells, Widths, fixed_shape, packing};
use crate::codec::{DecodeError, Reader, Writer};
use crate::question::Question;
use crate::sums::Sums;
use crate::synopsis::{ConfigOption, Needs, OptionKind, Pair, Reading, Synopsis, TwoPoint};
use crate::totals::Totals;

/// The Lossy Difference Aggregator.
#[derive(Clone, Debug, PartialEq)]
pub struct Lda {
    config: LdaConfig,
    totals: Totals,
    /// `banks * rows` of them, bank by bank.
    cells: Cells<LdaShape>,
}

/// Cells of 19 bytes. Digests are kept whole: where one packet is missing, what the sums differ by is its
/// digest, and tells whether it belongs to the cell. So are times: what delays are taken relative to is
/// no more than the distance of the first packets of two recordings, which may be hours off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LdaShape;

fixed_shape!(LdaShape, Widths { time_bits: 64, digest_bits: 64, has_bytes: false });

impl Lda {
    /// All cells, as estimators see them.
    fn sums(&self) -> Vec<Sums> {
        self.cells.iter().map(|cell| cell.sums).collect()
    }
}

impl Synopsis for Lda {
    const NAME: &'static str = "lda";
    const TAG: u16 = 2;
    const SUMMARY: &'static str = "mean, deviation and loss of all traffic in a few kilobytes";
    const NEEDS: Needs =
        Needs { digest: true, flow: false, detail: false, group: false, exchange: false };
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
    /// The first had cells of 24 bytes.
    const VERSION: u8 = 2;
    type Config = LdaConfig;

    fn sized(memory_bytes: u64) -> Option<LdaConfig> {
        LdaConfig::within(memory_bytes)
    }

    fn new(config: &LdaConfig) -> Self {
        let cells = Cells::new(LdaShape, config.cells());
        Self { config: config.clone(), totals: Totals::default(), cells }
    }

    fn config(&self) -> &LdaConfig {
        &self.config
    }

    #[inline]
    fn update(&mut self, observation: &Observation) {
        self.totals.add(observation.length);
        if let Some(index) = self.config.cell_for(observation.digest)
            && let Some(packet) = Added::of(LdaShape, &Sums::of(observation).into())
        {
            self.cells.add(index, &packet);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.totals.merge(other.totals);
        self.cells.merge(&other.cells);
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn state_bytes(&self) -> u64 {
        self.config.state_bytes()
    }

    fn encode(&self, out: &mut Writer) {
        self.config.encode(out);
        self.totals.encode(out);
        packing::encode_cells(&self.cells, self.config.rows() as usize, out);
    }

    /// A cell without packets takes one bit of the bytes.
    fn decoded_bytes(input: &mut Reader<'_>) -> Result<u64, DecodeError> {
        let encoded = input.left() as u64;
        Ok(LdaConfig::decode(input)?.state_bytes() + encoded)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::decode_for(input, Reading { version: Self::VERSION, flows: None })
    }

    fn decode_for(input: &mut Reader<'_>, reading: Reading<'_>) -> Result<Self, DecodeError> {
        let config = LdaConfig::decode(input)?;
        let totals = Totals::decode(input)?;
        packing::check_count(config.cells(), input.left())?;
        let mut cells = Cells::new(LdaShape, config.cells());
        match reading.version {
            1 => cells.decode_wide(input)?,
            _ => packing::decode_cells(&mut cells, config.rows() as usize, input)?,
        }
        Ok(Self { config, totals, cells })
    }
}

impl TwoPoint for Lda {
    const ESTIMATORS: &'static [&'static str] = &["centred", "printed"];
    const PER_FLOW: bool = false;

    fn remove(&mut self, observation: &Observation) {
        self.totals.subtract(observation.length);
        if let Some(index) = self.config.cell_for(observation.digest) {
            self.cells.subtract(index, &Sums::of(observation).into());
        }
    }

    fn estimate(pair: Pair<'_, Self>, question: &Question<'_>) -> Vec<Estimate> {
        vec![estimate::estimate(pair, question)]
    }
}

#[cfg(test)]
mod tests;
