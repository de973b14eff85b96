//! LDS, the Lossy Difference Sketch: delay and loss of every flow, from one table of cells.
//!
//! As in LDA, both points add each packet's time to the same cell, and a cell that counted the
//! same packets at both ends tells their total delay. Which cell depends on the flow: in every
//! row a flow has `virtual_cells` neighbouring cells of its own choice, an LDA in miniature that
//! it shares with the flows that happen to choose the same. Rows choose independently, so that a
//! flow meets others in each. No flow is stored: a query must name the flow.
//!
//! Sanjuàs-Cuxart, Barlet-Ros, Duffield, Kompella: "Sketching the Delay: Tracking Temporally
//! Uncorrelated Flow-Level Latencies", IMC 2011. Where we differ from what is printed there, the
//! code says so and why.

mod config;
mod deviation;
mod estimate;
mod flows;
mod paper;
mod plan;
mod printed;
mod sizing;
mod table;

pub use config::LdsConfig;
pub use plan::LdsNeed;
pub use sizing::{Pareto, RowPlan, expected_error, expected_survival, sampling_for_losses};

use twixt_model::{ClassId, Detail, Estimate, FlowHash, GroupId, Observation, PacketDigest};

use crate::cells::{Added, Cells, Wide, Widths, fixed_shape, packing};
use crate::codec::{DecodeError, Reader, Writer};
use crate::heavy::{FlowTable, RapTable};
use crate::question::{KnownFlow, Question};
use crate::sketch::{Layout, Place, Sketch};
use crate::sums::Sums;
use crate::synopsis::{
    ConfigOption, DECODED_PER_BYTE, FlowNames, Needs, OptionKind, Pair, Reading, SplitMerge,
    Synopsis, TwoPoint, WEIGHTS_OPTION,
};
use crate::totals::Totals;

/// The Lossy Difference Sketch.
#[derive(Clone, Debug, PartialEq)]
pub struct Lds {
    config: LdsConfig,
    totals: Totals,
    /// `rows * columns` of them, row by row.
    cells: Cells<LdsShape>,
    /// Names of large flows, if they are to be kept.
    table: Option<RapTable>,
}

/// Cells of 20 bytes. Times are kept whole: what delays are taken relative to may be hours off, and
/// packets may weigh 65 536 times as much as others. Digests only distinguish sets of packets: one cell in
/// four billion that lost as many packets as it has strays passes for intact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LdsShape;

fixed_shape!(LdsShape, Widths { time_bits: 64, digest_bits: 32, has_bytes: true });

/// What a packet that counts several times leaves in its cells. Digests only distinguish sets of packets.
#[inline]
fn weighted(packet: Wide, weight: u64) -> Wide {
    let Sums { times, packets, digests } = packet.sums;
    let (times, packets) = (times.wrapping_mul(weight), packets.wrapping_mul(weight));
    Wide { sums: Sums { times, packets, digests }, bytes: packet.bytes.wrapping_mul(weight) }
}

impl LdsConfig {
    #[inline]
    fn cell_of(&self, observation: &Observation) -> Wide {
        let bytes = u64::from(observation.length);
        let packet = Wide { sums: Sums::of(observation), bytes };
        match self.weights() {
            [] => packet,
            _ => weighted(packet, self.weight_of(observation.class)),
        }
    }
}

impl Lds {
    /// Packets that a flow sent at most, times its weight, by the row where it shares its cells with the fewest
    /// others. Sampled rows are scaled up by a bound that their chance error hardly exceeds.
    #[must_use]
    pub fn flow_packets_at_most(&self, flow: FlowHash) -> u64 {
        self.smallest_row(flow, |cell| cell.sums.packets)
    }

    /// Bytes that a flow sent at most, times its weight, likewise; `None` if every row samples, for then a few
    /// large packets that were not sampled may be missing.
    #[must_use]
    pub fn flow_bytes_at_most(&self, flow: FlowHash) -> Option<u64> {
        let is_whole = self.config.sampling().contains(&1.0);
        is_whole.then(|| {
            let rows = (0..self.config.rows()).filter(|&row| self.config.is_whole(row));
            let bytes = rows.map(|row| self.row_sum(flow, row, |cell| cell.bytes));
            bytes.min().expect("some row is whole")
        })
    }

    /// For tests: changes what a cell has seen.
    #[cfg(test)]
    pub(crate) fn change_sums(&mut self, cell: usize, change: impl FnOnce(&mut Sums)) {
        self.cells.change(cell, |cell| change(&mut cell.sums));
    }

    /// The flows of the table, largest first. What a flow sent is known if the counter was its own
    /// from the first packet on; else the sketch tells.
    fn large_flows(&self) -> Vec<KnownFlow> {
        let flows = self.table.iter().flat_map(FlowTable::flows).map(|flow| KnownFlow {
            hash: flow.hash,
            key: flow.key,
            group: GroupId::default(),
            packets: (flow.packets_at_least == flow.packets).then_some(flow.packets),
            class: ClassId::default(),
        });
        flows.collect()
    }

    fn smallest_row(&self, flow: FlowHash, count: impl Fn(&Wide) -> u64 + Copy) -> u64 {
        let rows = 0..self.config.rows();
        let bounds = rows.map(|row| self.config.at_most(row, self.row_sum(flow, row, count)));
        bounds.fold(f64::INFINITY, f64::min) as u64
    }

    /// Saturates: the counts may be hostile.
    fn row_sum(&self, flow: FlowHash, row: usize, count: impl Fn(&Wide) -> u64) -> u64 {
        let cells = self.config.cells_of(flow, row).map(|index| count(&self.cells.wide(index)));
        cells.fold(0, u64::saturating_add)
    }
}

impl Synopsis for Lds {
    const NAME: &'static str = "lds";
    const TAG: u16 = 3;
    const SUMMARY: &'static str = "delay and loss of any flow that you name, from one sketch";
    const NEEDS: Needs =
        Needs { digest: true, flow: true, detail: false, group: false, exchange: false };
    /// To the bit without a table of large flows. That table is merged as well as it can be: which
    /// flows it names depends on the order in which it sees their packets.
    const SPLIT_MERGE: SplitMerge = SplitMerge::Exact;
    const OPTIONS: &'static [ConfigOption] = &[
        ConfigOption {
            name: "rows",
            kind: OptionKind::Integer,
            help: "rows of cells: each packet is counted once per row",
        },
        ConfigOption { name: "columns", kind: OptionKind::Integer, help: "cells per row" },
        ConfigOption {
            name: "virtual_cells",
            kind: OptionKind::Integer,
            help: "cells of a row that a flow's packets spread over; more tolerate more loss",
        },
        ConfigOption {
            name: "sampling",
            kind: OptionKind::Numbers,
            help: "share of packets that each row counts, such as 0.01,0.1,0.5,1",
        },
        ConfigOption {
            name: "alpha",
            kind: OptionKind::Number,
            help: "estimator paper: also use cells with up to 1 + alpha times the fewest packets",
        },
        ConfigOption {
            name: "heavy_entries",
            kind: OptionKind::Integer,
            help: "number of large flows whose keys are kept beside the sketch, for --flows heavy",
        },
        WEIGHTS_OPTION,
    ];
    /// The first had cells of 32 bytes.
    const VERSION: u8 = 2;
    type Config = LdsConfig;

    fn sized(memory_bytes: u64) -> Option<LdsConfig> {
        LdsConfig::within(memory_bytes)
    }

    fn new(config: &LdsConfig) -> Self {
        let cells = Cells::new(LdsShape, config.cells());
        let table = config.heavy().map(RapTable::start);
        Self { config: config.clone(), totals: Totals::default(), cells, table }
    }

    fn config(&self) -> &LdsConfig {
        &self.config
    }

    fn needs(&self) -> Needs {
        Needs { detail: self.table.is_some(), ..Self::NEEDS }
    }

    fn flow_names(&self) -> FlowNames {
        if self.table.is_some() { FlowNames::Large } else { FlowNames::None }
    }

    #[inline]
    fn update(&mut self, observation: &Observation) {
        self.totals.add(observation.length);
        let Self { config, cells, .. } = self;
        let packet = config.cell_of(observation);
        let indices = || config.cells_for(observation.flow, observation.digest);
        match Added::of(LdsShape, &packet) {
            Some(packet) => {
                let is_full = match config.reads_digest() {
                    true => cells.add_all(indices().map(|index| (index, packet))),
                    false => {
                        let indices = config.whole_cells_for(observation.flow);
                        cells.add_all(indices.map(|index| (index, packet)))
                    }
                };
                if is_full {
                    cells.relieve(indices());
                }
            }
            None => indices().for_each(|index| cells.add_wide(index, &packet)),
        }
    }

    fn update_detailed(&mut self, observation: &Observation, detail: &Detail) {
        self.update(observation);
        if let Some(table) = &mut self.table {
            table.add(observation.flow, &detail.key, observation.length);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.totals.merge(other.totals);
        if let (Some(table), Some(other)) = (&mut self.table, &other.table) {
            table.merge(other);
        }
        self.cells.merge(&other.cells);
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn state_bytes(&self) -> u64 {
        let table = self.table.as_ref().map_or(0, FlowTable::state_bytes);
        self.config.state_bytes() + table
    }

    fn encode(&self, out: &mut Writer) {
        self.config.encode(out);
        self.totals.encode(out);
        packing::encode_cells(&self.cells, self.config.columns() as usize, out);
        if let Some(table) = &self.table {
            table.encode(out);
        }
    }

    /// A cell without packets takes one bit of the bytes.
    fn decoded_bytes(input: &mut Reader<'_>) -> Result<u64, DecodeError> {
        let encoded = input.left() as u64;
        Ok(LdsConfig::decode(input)?.state_bytes() + DECODED_PER_BYTE * encoded)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::decode_for(input, Reading { version: Self::VERSION, flows: None })
    }

    fn decode_for(input: &mut Reader<'_>, reading: Reading<'_>) -> Result<Self, DecodeError> {
        let config = LdsConfig::decode(input)?;
        let totals = Totals::decode(input)?;
        packing::check_count(config.cells(), input.left())?;
        let mut cells = Cells::new(LdsShape, config.cells());
        match reading.version {
            1 => cells.decode_wide(input)?,
            _ => packing::decode_cells(&mut cells, config.columns() as usize, input)?,
        }
        let table = config.heavy().map(|_| RapTable::decode(input)).transpose()?;
        if table.as_ref().map(FlowTable::config) != config.heavy() {
            return Err(DecodeError::invalid("table of flows", "its size is not as configured"));
        }
        Ok(Self { config, totals, cells, table })
    }
}

impl TwoPoint for Lds {
    const ESTIMATORS: &'static [&'static str] = &["joint", "paper", "printed"];
    const PER_FLOW: bool = true;

    /// The table of large flows stays as it is: it names flows, and a packet more or less at an
    /// epoch's boundary does not change which are large.
    fn remove(&mut self, observation: &Observation) {
        self.totals.subtract(observation.length);
        let packet = self.config.cell_of(observation);
        for index in self.config.cells_for(observation.flow, observation.digest) {
            self.cells.subtract(index, &packet);
        }
    }

    fn estimate(pair: Pair<'_, Self>, question: &Question<'_>) -> Vec<Estimate> {
        estimate::estimate(pair, question)
    }
}

impl Layout for LdsConfig {
    fn sampling(&self) -> &[f64] {
        self.sampling()
    }

    fn spread(&self) -> u32 {
        self.virtual_cells()
    }

    fn region_cells(&self) -> usize {
        self.columns() as usize
    }

    fn cells_counting(
        &self,
        flow: FlowHash,
        _group: Option<GroupId>,
        digest: PacketDigest,
    ) -> Vec<usize> {
        self.cells_for(flow, digest).collect()
    }

    fn cells_of(&self, place: Place, row: usize) -> impl ExactSizeIterator<Item = usize> {
        self.cells_of(place.flow, row)
    }

    fn weight_of(&self, class: ClassId) -> u64 {
        self.weight_of(class)
    }

    fn is_weighted(&self) -> bool {
        !self.weights().is_empty()
    }
}

impl Sketch for Lds {
    fn cell_count(&self) -> usize {
        self.cells.len()
    }

    fn sums(&self, cell: usize) -> Sums {
        self.cells.wide(cell).sums
    }

    fn counts_lost(&self) -> u64 {
        self.cells.counts_lost()
    }
}

#[cfg(test)]
mod tests;
