//! What sketches have in common that count a flow's packets in cells shared with other flows: two
//! of them compared cell by cell, sizes of flows, losses, and answers for flows and prefixes.
//!
//! Where a flow's cells are is each algorithm's own: this module asks its [`Layout`].

mod answers;
mod caution;
mod loss;
mod sizes;
mod solve;
mod table;

use twixt_model::{ClassId, FlowHash, GroupId, PacketDigest};

pub(crate) use answers::{Answer, NO_INTERVAL, Sum, answered, distinct, estimate};
pub(crate) use caution::Caution;
pub(crate) use loss::{lost, strays_of};
pub(crate) use sizes::{
    CELLS_MAX, Estimated, Implants, SILENT_WANTED, Size, least_seen, sizes, sizes_of,
    without_others,
};
pub(crate) use solve::{Solved, solve};
pub(crate) use table::Table;

use crate::question::KnownFlow;
use crate::sums::{Sums, Usable};
use crate::synopsis::Synopsis;

/// What decides on a flow's cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) flow: FlowHash,
    pub(crate) group: GroupId,
}

impl Place {
    pub(crate) const fn of(flow: &KnownFlow) -> Self {
        Self { flow: flow.hash, group: flow.group }
    }
}

/// Where flows fall: in each row, some of the cells share a flow's packets equally.
pub(crate) trait Layout {
    /// The share of packets that each row counts.
    fn sampling(&self) -> &[f64];

    /// Cells of a row that a flow's packets spread over.
    fn spread(&self) -> u32;

    /// Neighbouring cells that take flows alike: those of a row, or of a part of it.
    fn region_cells(&self) -> usize;

    /// The cells that share a flow's packets in one row; as many as [`spread`](Self::spread),
    /// some of them possibly more than once.
    fn cells_of(&self, place: Place, row: usize) -> impl ExactSizeIterator<Item = usize>;

    /// The cells that count one packet of a flow; if its group is not known, those of any group.
    fn cells_counting(
        &self,
        flow: FlowHash,
        group: Option<GroupId>,
        digest: PacketDigest,
    ) -> Vec<usize>;

    /// How many times each packet of a class counts.
    fn weight_of(&self, _class: ClassId) -> u64 {
        1
    }

    /// Whether some packets count more often than others.
    fn is_weighted(&self) -> bool {
        false
    }

    /// Whether only cells of some flows, and some others, are there.
    fn is_partial(&self) -> bool {
        false
    }

    /// Whether chance decides which of a flow's packets a cell counts.
    fn is_spread(&self) -> bool {
        self.spread() > 1 || self.sampling().iter().any(|&rate| rate < 1.0)
    }

    /// Each cell of a flow, and the share of its packets that is expected there.
    fn shares_of(&self, place: Place) -> impl Iterator<Item = (usize, f64)> {
        let spread = 1.0 / f64::from(self.spread());
        let rows = self.sampling().iter().enumerate();
        rows.flat_map(move |(row, rate)| {
            self.cells_of(place, row).map(move |cell| (cell, rate * spread))
        })
    }

    /// How many rows.
    fn rows(&self) -> usize {
        self.sampling().len()
    }

    /// Whether a row counts every packet.
    fn is_whole(&self, row: usize) -> bool {
        self.sampling()[row] >= 1.0
    }

    /// What a row's count of `counted` packets stands for at most: itself where all are counted;
    /// else the count plus two standard deviations, scaled up. (As the LDS paper has it, the
    /// count itself is scaled up: then of several rows the noisiest one looks emptiest and is
    /// chosen.)
    fn at_most(&self, row: usize, counted: u64) -> f64 {
        let counted = counted as f64;
        match self.is_whole(row) {
            true => counted,
            false => (counted + 2.0 * (counted + 1.0).sqrt() + 1.0) / self.sampling()[row],
        }
    }
}

/// A synopsis of such cells.
pub(crate) trait Sketch: Synopsis<Config: Layout> {
    /// How many cells, all rows together.
    fn cell_count(&self) -> usize;

    /// What a cell counted.
    fn sums(&self, cell: usize) -> Sums;

    /// How often counts of cells were lost; unless that is 0, they mean nothing.
    fn counts_lost(&self) -> u64;

    /// How many packets each cell counted.
    fn counts(&self) -> Vec<f64> {
        (0..self.cell_count()).map(|cell| self.sums(cell).packets as f64).collect()
    }

    /// Whether a cell counted the same packets at both ends, as far as one can tell.
    fn agree(upstream: &Self, downstream: &Self, cell: usize) -> bool {
        upstream.sums(cell).agrees_with(&downstream.sums(cell))
    }

    /// What a cell without loss says, relative to a reference delay.
    fn usable(
        upstream: &Self,
        downstream: &Self,
        cell: usize,
        reference_ns: i64,
    ) -> Option<Usable> {
        Usable::of(&upstream.sums(cell), &downstream.sums(cell), reference_ns)
    }
}

/// Where packets are counted that are not: no table has so many cells.
pub(crate) const NOWHERE: usize = usize::MAX;

/// The high half of evenly spread bits, scaled to [0, `limit`) without a division. Twice the limit
/// gives twice the number, or one more: tables whose sizes differ by a power of two can be folded.
#[inline]
pub(crate) const fn scaled(bits: u64, limit: u32) -> u32 {
    (((bits >> 32) * limit as u64) >> 32) as u32
}
