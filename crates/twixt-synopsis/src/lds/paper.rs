//! The paper's estimator (Fig. 6, corrected): a flow's mean delay is that of its emptiest cells.
//!
//! As printed, it starts from a smallest count of `alpha` and keeps cells strictly below, so that
//! it keeps none; takes empty cells for the emptiest; and scales up the counts of sampled rows
//! without regard to their chance error.

use super::Lds;
use crate::sketch::{Layout, Place, Sum, Table};
use crate::sums::Usable;

/// The cells of a flow that hold the fewest packets, or at most (1 + alpha) times as many;
/// `None` if none is usable. They are added up as they are: sampled rows are scaled only to
/// choose among cells.
pub(super) fn emptiest(table: &Table<'_, Lds>, place: Place) -> Option<Sum> {
    let config = table.config();
    let candidates = || {
        (0..config.rows()).flat_map(move |row| {
            let cells = table.usable_of(place, row);
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

/// Deviation of single packets, from rows in which the flow is alone and spreads over several
/// usable cells: in a cell of n packets with total delay T, E (T - mu n)^2 = n sigma^2. Other
/// flows in the cells would add the differences of their means, many times over.
pub(super) fn deviation(table: &Table<'_, Lds>, place: Place, packets: u64) -> Option<f64> {
    let config = table.config();
    let alone = |&row: &usize| config.is_whole(row) && table.packets_of(place, row) == packets;
    let (mut squares, mut freedom) = (0.0, 0.0);
    for row in (0..config.rows()).filter(alone) {
        let cells: Vec<Usable> = table.usable_of(place, row).collect();
        let mut sum = Sum::default();
        cells.iter().for_each(|&cell| sum.add(cell));
        let (count, mean) = (sum.packets as f64, sum.delay_sum_ns as f64 / sum.packets as f64);
        for cell in &cells {
            let n = cell.packets as f64;
            squares += (cell.delay_sum_ns as f64 - mean * n).powi(2);
            // The row's own mean costs one degree of freedom, weighted by cell.
            freedom += n - n * n / count;
        }
    }
    (freedom > 0.0).then(|| (squares / freedom).sqrt())
}

#[cfg(test)]
mod tests;
