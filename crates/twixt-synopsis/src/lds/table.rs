//! What a comparison of two sketches tells beyond what every [`Table`] does.

use super::Lds;
use crate::question::KnownFlow;
use crate::sketch::{Layout, Place, Sketch, Table};

impl Table<'_, Lds> {
    /// What cells count upstream of unlisted flows: the mean of those cells that no
    /// listed flow falls into, in the row that samples most. 0 if hardly any cell is left.
    pub(super) fn unlisted(&self, flows: &[KnownFlow]) -> f64 {
        const CELLS_MIN: usize = 20;
        let (columns, sampling) = (self.config().columns() as usize, self.config().sampling());
        let best =
            (0..sampling.len()).max_by(|&one, &other| sampling[one].total_cmp(&sampling[other]));
        let row = best.expect("there is a row");
        let mut is_listed = vec![false; columns];
        for index in flows.iter().flat_map(|flow| self.config().cells_of(flow.hash, row)) {
            is_listed[index - row * columns] = true;
        }
        let cells = (row * columns..).zip(&is_listed);
        let others = cells.filter(|(_, is_listed)| !**is_listed);
        let counts: Vec<f64> =
            others.map(|(cell, _)| self.upstream.sums(cell).packets as f64).collect();
        match counts.len() {
            0..CELLS_MIN => 0.0,
            cells => counts.iter().sum::<f64>() / cells as f64 / sampling[row],
        }
    }

    /// Bytes of a flow of so many packets, of the mean size that packets have in its emptiest row;
    /// `None` if every row samples, or nothing was counted.
    pub(super) fn bytes_of(&self, flow: &KnownFlow, packets: u64) -> Option<u64> {
        let place = Place::of(flow);
        let rows = (0..self.config().rows()).filter(|&row| self.config().is_whole(row));
        let emptiest = rows.min_by_key(|&row| self.packets_of(place, row))?;
        let counted = self.packets_of(place, emptiest);
        let bytes = self.upstream.row_sum(flow.hash, emptiest, |cell| cell.bytes);
        (counted > 0).then(|| (bytes as f64 / counted as f64 * packets as f64).round() as u64)
    }
}
