//! Packets of unlisted flows.
//!
//! Cells that no listed flow falls into count nothing else, so they tell what to expect of
//! unlisted flows in the others.

use twixt_model::mix;

use super::{Layout, Members};

/// Fewer cells say nothing: then all packets are taken for those of listed flows.
const CELLS_MIN: usize = 20;

/// What cells without a listed flow counted, row by row.
pub(super) struct Unlisted {
    columns: usize,
    rows: Vec<Row>,
}

struct Row {
    counts: Vec<f64>,
    mean: f64,
}

impl Unlisted {
    pub(super) fn of<L: Layout>(members: &Members<'_, L>, counts: &[f64]) -> Self {
        let mut is_listed = vec![false; counts.len()];
        members.kept.iter().for_each(|&cell| is_listed[cell as usize] = true);
        let columns = members.config.region_cells();
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

    /// What to expect in some cells.
    pub(super) fn expected(&self, cells: &[u32]) -> Vec<f64> {
        cells.iter().map(|&cell| self.row_of(cell).mean).collect()
    }

    /// The same as it may have come about.
    pub(super) fn made_up(&self, cells: &[u32], seed: u64) -> Vec<f64> {
        let draw = |&cell: &u32| {
            let counts = &self.row_of(cell).counts;
            counts[(mix(u64::from(cell) ^ seed) % counts.len() as u64) as usize]
        };
        cells.iter().map(draw).collect()
    }

    fn row_of(&self, cell: u32) -> &Row {
        &self.rows[cell as usize / self.columns]
    }
}
