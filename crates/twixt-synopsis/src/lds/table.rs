//! Two sketches compared, cell by cell.

use twixt_model::FlowHash;

use super::{Lds, LdsConfig};
use crate::question::KnownFlow;
use crate::sums::Usable;
use crate::synopsis::Pair;

/// Both ends of a segment, and what their cells say together.
#[derive(Clone, Debug)]
pub(super) struct Table<'a> {
    pub(super) upstream: &'a Lds,
    pub(super) downstream: &'a Lds,
    pub(super) reference_ns: i64,
    /// `None` where packets were lost or added, or there were none.
    pub(super) cells: Vec<Option<Usable>>,
}

impl<'a> Table<'a> {
    pub(super) fn new(pair: Pair<'a, Lds>, reference_ns: i64) -> Self {
        let Pair { upstream, downstream } = pair;
        let cells = upstream.cells.iter().zip(&downstream.cells);
        let cells =
            cells.map(|(up, down)| Usable::of(&up.sums, &down.sums, reference_ns)).collect();
        Self { upstream, downstream, reference_ns, cells }
    }

    pub(super) fn config(&self) -> &'a LdsConfig {
        &self.upstream.config
    }

    /// How many times each packet of a flow counts.
    pub(super) fn weight_of(&self, flow: &KnownFlow) -> u64 {
        self.config().weight_of(flow.class)
    }

    /// What cells count upstream of flows that nobody listed: the mean of those cells that no
    /// listed flow falls into, in the row that samples most. 0 if hardly any cell is left.
    pub(super) fn strangers(&self, flows: &[KnownFlow]) -> f64 {
        const CELLS_MIN: usize = 20;
        let (columns, sampling) = (self.config().columns() as usize, self.config().sampling());
        let best =
            (0..sampling.len()).max_by(|&one, &other| sampling[one].total_cmp(&sampling[other]));
        let row = best.expect("there is a row");
        let mut is_listed = vec![false; columns];
        for index in flows.iter().flat_map(|flow| self.config().cells_of(flow.hash, row)) {
            is_listed[index - row * columns] = true;
        }
        let cells = self.upstream.cells[row * columns..].iter().zip(&is_listed);
        let others = cells.filter(|(_, is_listed)| !**is_listed);
        let counts: Vec<f64> = others.map(|(cell, _)| cell.sums.packets as f64).collect();
        match counts.len() {
            0..CELLS_MIN => 0.0,
            cells => counts.iter().sum::<f64>() / cells as f64 / sampling[row],
        }
    }

    /// Whether a cell counted the same packets at both ends.
    pub(super) fn agrees(&self, index: usize) -> bool {
        let sums = |lds: &'a Lds| &lds.cells[index].sums;
        sums(self.upstream).agrees_with(sums(self.downstream))
    }

    /// The usable ones of a flow's cells in one row.
    pub(super) fn usable_of(
        &self,
        flow: FlowHash,
        row: usize,
    ) -> impl Iterator<Item = Usable> + '_ {
        self.config().cells_of(flow, row).filter_map(|index| self.cells[index])
    }

    /// Packets in a flow's cells of one row, upstream. Saturates: the counts may be a stranger's.
    pub(super) fn packets_of(&self, flow: FlowHash, row: usize) -> u64 {
        self.upstream.row_sum(flow, row, |cell| cell.sums.packets)
    }

    /// Bytes of a flow of so many packets, of the mean size that packets have in its emptiest row;
    /// `None` if every row samples, or nothing was counted.
    pub(super) fn bytes_of(&self, flow: &KnownFlow, packets: u64) -> Option<u64> {
        let rows = (0..self.config().rows()).filter(|&row| self.config().is_whole(row));
        let emptiest = rows.min_by_key(|&row| self.packets_of(flow.hash, row))?;
        let counted = self.packets_of(flow.hash, emptiest);
        let bytes = self.upstream.row_sum(flow.hash, emptiest, |cell| cell.bytes);
        (counted > 0).then(|| (bytes as f64 / counted as f64 * packets as f64).round() as u64)
    }

    /// Whether a flow's cells of one row counted the same packets at both ends.
    pub(super) fn is_intact(&self, flow: FlowHash, row: usize) -> bool {
        self.config().cells_of(flow, row).all(|index| self.agrees(index))
    }

    /// How many more packets a flow's cells of one row counted upstream than downstream.
    pub(super) fn missing_of(&self, flow: FlowHash, row: usize) -> i128 {
        let packets = |lds: &Lds, index: usize| i128::from(lds.cells[index].sums.packets);
        let cells = self.config().cells_of(flow, row);
        cells.map(|index| packets(self.upstream, index) - packets(self.downstream, index)).sum()
    }
}
