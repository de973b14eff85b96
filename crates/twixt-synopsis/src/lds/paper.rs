//! The paper's estimator (Fig. 6, corrected): a flow's mean delay is that of its emptiest cells.
//!
//! As printed, it starts from a smallest count of `alpha` and keeps cells strictly below, so that
//! it keeps none; takes empty cells for the emptiest; and scales up the counts of sampled rows
//! without regard to their chance error.

use twixt_model::FlowHash;

use super::table::Table;
use crate::sums::Usable;

/// Counts and delays of the cells that an estimate rests on, added up as they are: sampled rows
/// are scaled only to choose among cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) packets: u64,
    /// Relative to the reference.
    pub(super) delay_sum_ns: i128,
}

impl Sum {
    /// Saturates: the counts may be a stranger's.
    pub(super) fn add(&mut self, cell: Usable) {
        self.packets = self.packets.saturating_add(cell.packets);
        self.delay_sum_ns += i128::from(cell.delay_sum_ns);
    }
}

/// The cells of a flow that hold the fewest packets, or at most (1 + alpha) times as many;
/// `None` if none is usable.
pub(super) fn emptiest(table: &Table<'_>, flow: FlowHash) -> Option<Sum> {
    let config = table.config();
    let candidates = || {
        (0..config.rows()).flat_map(move |row| {
            let cells = table.usable_of(flow, row);
            cells.map(move |cell| (config.at_most(row, cell.packets), cell))
        })
    };
    let fewest = candidates().map(|(bound, _)| bound).reduce(f64::min)?;
    let mut sum = Sum::default();
    for (_, cell) in candidates().filter(|(bound, _)| *bound <= (1.0 + config.alpha()) * fewest) {
        sum.add(cell);
    }
    Some(sum)
}

#[cfg(test)]
mod tests;
