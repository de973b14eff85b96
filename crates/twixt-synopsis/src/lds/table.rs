//! Two sketches compared, cell by cell.

use twixt_model::FlowHash;

use super::{Cell, Lds, LdsConfig};
use crate::synopsis::Pair;

/// A cell without loss: how many packets, and the sum of their delays minus `packets` times the
/// reference delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usable {
    pub(super) packets: u64,
    pub(super) delay_sum_ns: i64,
}

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
        let cells = cells.map(|(up, down)| usable(up, down, reference_ns)).collect();
        Self { upstream, downstream, reference_ns, cells }
    }

    pub(super) fn config(&self) -> &'a LdsConfig {
        &self.upstream.config
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
        self.upstream.row_sum(flow, row, |cell| cell.packets)
    }

    /// Whether a flow's cells of one row counted the same packets at both ends.
    pub(super) fn is_intact(&self, flow: FlowHash, row: usize) -> bool {
        let mut cells = self.config().cells_of(flow, row);
        cells.all(|index| same(&self.upstream.cells[index], &self.downstream.cells[index]))
    }

    /// How many more packets a flow's cells of one row counted upstream than downstream.
    pub(super) fn missing_of(&self, flow: FlowHash, row: usize) -> i128 {
        let packets = |lds: &Lds, index: usize| i128::from(lds.cells[index].packets);
        let cells = self.config().cells_of(flow, row);
        cells.map(|index| packets(self.upstream, index) - packets(self.downstream, index)).sum()
    }
}

fn same(upstream: &Cell, downstream: &Cell) -> bool {
    upstream.packets == downstream.packets && upstream.digest_sum == downstream.digest_sum
}

/// Empty cells agree too, but an empty cell would always be the one with the fewest packets.
fn usable(upstream: &Cell, downstream: &Cell, reference_ns: i64) -> Option<Usable> {
    let reference = (reference_ns as u64).wrapping_mul(upstream.packets);
    let difference = downstream.time_sum.wrapping_sub(upstream.time_sum).wrapping_sub(reference);
    (same(upstream, downstream) && upstream.packets > 0)
        .then_some(Usable { packets: upstream.packets, delay_sum_ns: difference as i64 })
}
