//! The paper's estimator (Fig. 6, corrected): a flow's mean delay is that of its emptiest cells.
//!
//! As printed, it starts from a smallest count of `alpha` and keeps cells strictly below, so that
//! it keeps none; takes empty cells for the emptiest; and scales up the counts of sampled rows
//! without regard to their chance error.

use super::Lds;
use crate::sketch::{Layout, Place, Sum, Table};

/// The cells of a flow that hold the fewest packets, or at most (1 + alpha) times as many;
/// `None` if none is usable.
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

#[cfg(test)]
mod tests;
