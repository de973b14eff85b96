//! Packets of flows that nobody listed.
//!
//! Cells that no listed flow falls into count nothing else, so they tell what to expect of
//! strangers in the others.

use twixt_model::mix;

use super::Members;

/// Fewer cells say nothing: then all packets are taken for those of listed flows.
const CELLS_MIN: usize = 20;

/// What cells without a listed flow counted, row by row.
pub(super) struct Strangers {
    columns: usize,
    rows: Vec<Row>,
}

struct Row {
    counts: Vec<f64>,
    mean: f64,
}

impl Strangers {
    pub(super) fn of(members: &Members<'_>, counts: &[f64]) -> Self {
        let mut is_listed = vec![false; counts.len()];
        members.cells.iter().for_each(|&cell| is_listed[cell as usize] = true);
        let columns = members.config.columns() as usize;
        let rows = counts.chunks_exact(columns).zip(is_listed.chunks_exact(columns));
        let rows = rows.map(|(counts, is_listed)| {
            let alone = counts.iter().zip(is_listed).filter(|(_, is_listed)| !**is_listed);
            let mut counts: Vec<f64> = alone.map(|(&count, _)| count).collect();
            if counts.len() < CELLS_MIN {
                counts = vec![0.0];
            }
            let mean = counts.iter().sum::<f64>() / counts.len() as f64;
            Row { counts, mean }
        });
        Self { columns, rows: rows.collect() }
    }

    /// What to expect in every cell.
    pub(super) fn expected(&self) -> Vec<f64> {
        self.rows.iter().flat_map(|row| std::iter::repeat_n(row.mean, self.columns)).collect()
    }

    /// The same as it may have come about.
    pub(super) fn made_up(&self, seed: u64) -> Vec<f64> {
        let cells = self.rows.iter().flat_map(|row| std::iter::repeat_n(row, self.columns));
        let draw = |(index, row): (usize, &Row)| {
            row.counts[(mix(index as u64 ^ seed) % row.counts.len() as u64) as usize]
        };
        cells.enumerate().map(draw).collect()
    }
}
