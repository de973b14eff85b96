//! Two sketches compared, cell by cell.

use super::{Layout, Place, Sketch};
use crate::question::{KnownFlow, Question};
use crate::sums::Usable;
use crate::synopsis::Pair;

/// Both ends of a segment, and what their cells say together.
#[derive(Clone, Debug)]
pub(crate) struct Table<'a, S> {
    pub(crate) upstream: &'a S,
    pub(crate) downstream: &'a S,
    pub(crate) reference_ns: i64,
    /// `None` where packets were lost or added, or there were none.
    pub(crate) cells: Vec<Option<Usable>>,
}

impl<'a, S: Sketch> Table<'a, S> {
    pub(crate) fn new(pair: Pair<'a, S>, reference_ns: i64) -> Self {
        let Pair { upstream, downstream } = pair;
        let cells = 0..upstream.cell_count();
        let cells = cells.map(|cell| S::usable(upstream, downstream, cell, reference_ns)).collect();
        Self { upstream, downstream, reference_ns, cells }
    }

    /// Leaves out the cells of packets that may not be the same ones at both points: that they agree tells nothing.
    pub(super) fn leave_out_heartbeats(&mut self, question: &Question<'_>, flows: &[KnownFlow]) {
        for alike in question.incomplete() {
            let known = flows.iter().find(|flow| flow.hash == alike.flow);
            let group = known.map(|flow| flow.group);
            for cell in self.config().cells_counting(alike.flow, group, alike.digest) {
                self.cells[cell] = None;
            }
        }
    }

    pub(crate) fn config(&self) -> &'a S::Config {
        self.upstream.config()
    }

    /// How many times each packet of a flow counts.
    pub(crate) fn weight_of(&self, flow: &KnownFlow) -> u64 {
        self.config().weight_of(flow.class)
    }

    /// Whether neither end counted a packet in a cell.
    pub(crate) fn is_vacant(&self, cell: usize) -> bool {
        [self.upstream, self.downstream].iter().all(|end| end.sums(cell).packets == 0)
    }

    /// The usable ones of a flow's cells in one row.
    pub(crate) fn usable_of(&self, place: Place, row: usize) -> impl Iterator<Item = Usable> + '_ {
        self.config().cells_of(place, row).filter_map(|index| self.cells[index])
    }

    /// Packets in a flow's cells of one row, upstream. Saturates: the counts may be hostile.
    pub(crate) fn packets_of(&self, place: Place, row: usize) -> u64 {
        let cells = self.cells_once(place, row).into_iter();
        cells.map(|cell| self.upstream.sums(cell).packets).fold(0, u64::saturating_add)
    }

    /// Whether a flow's cells of one row counted the same packets at both ends.
    pub(crate) fn is_intact(&self, place: Place, row: usize) -> bool {
        let mut cells = self.config().cells_of(place, row);
        cells.all(|cell| S::agree(self.upstream, self.downstream, cell))
    }

    /// How many more packets a flow's cells of one row counted upstream than downstream.
    pub(crate) fn missing_of(&self, place: Place, row: usize) -> i128 {
        let packets = |sketch: &S, cell: usize| i128::from(sketch.sums(cell).packets);
        let cells = self.cells_once(place, row).into_iter();
        cells.map(|cell| packets(self.upstream, cell) - packets(self.downstream, cell)).sum()
    }

    /// A flow's cells in one row, each once.
    pub(super) fn cells_once(&self, place: Place, row: usize) -> Vec<usize> {
        let mut cells: Vec<usize> = self.config().cells_of(place, row).collect();
        cells.sort_unstable();
        cells.dedup();
        cells
    }
}
