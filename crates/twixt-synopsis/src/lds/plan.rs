//! Rows, columns and sampling rates for what is wanted, or for the memory there is.

use super::sizing::{Pareto, RowPlan, expected_survival, sampling_for_losses};
use super::{Lds, LdsConfig};
use crate::synopsis::Synopsis;

/// What a sketch is wanted for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LdsNeed {
    /// Flows in an epoch.
    pub flows: u64,
    /// Their sizes.
    pub sizes: Pareto,
    /// Packets of a flow that counts as large.
    pub large: u64,
    /// Share of other flows' packets that may be in a large flow's cell.
    pub tolerable: f64,
    /// Packets that a flow may lose and still be measured.
    pub losses: u64,
}

/// Cells that a flow is spread over in each row, where losses are expected; as in the paper.
const VIRTUAL_CELLS: u32 = 5;
/// Losses that each row is made for, as parts of those expected; as in the paper.
const LOSS_PARTS: [f64; 4] = [1.0, 0.1, 0.02, 0.01];
/// Rows of a sketch at most.
const ROWS_MAX: u32 = 16;
/// Columns of a sketch at most.
const COLUMNS_MAX: f64 = 16_777_216.0;
/// How finely the number of columns is searched.
const COLUMNS_STEP: f64 = 1.02;

impl LdsNeed {
    /// As large as it takes for so large a share of large flows; `None` if that is too large. Rows
    /// that spread flows get as many times more columns, as the paper does: each flow then meets as
    /// many others as before. The paper's columns are the least, since small flows together may be
    /// as bad as a large one.
    #[must_use]
    pub fn for_confidence(&self, confidence: f64) -> Option<LdsConfig> {
        let (plan, largest_load) = RowPlan::for_survival(1.0 - confidence);
        let (virtual_cells, sampling) = self.spread();
        let sampling = sampling.unwrap_or_else(|| vec![1.0; plan.rows.min(ROWS_MAX) as usize]);
        let cells = self.large_flows() / largest_load * f64::from(virtual_cells);
        let mut columns = (cells / f64::from(plan.rows)).max(f64::from(virtual_cells));
        while columns <= COLUMNS_MAX {
            let config = LdsConfig::new(columns.ceil() as u32, virtual_cells, &sampling).ok()?;
            if self.survival(&config) >= confidence {
                return Some(config);
            }
            columns *= COLUMNS_STEP;
        }
        None
    }

    /// The best within so many bytes; `None` if they are too few.
    #[must_use]
    pub fn within(&self, memory_bytes: u64) -> Option<LdsConfig> {
        let all = Lds::sized(memory_bytes)?;
        let cells = all.columns() as u64 * all.rows() as u64;
        let (virtual_cells, sampling) = self.spread();
        let sampling = sampling.unwrap_or_else(|| {
            let rows = RowPlan::for_load(self.large_flows() / cells as f64).rows;
            vec![1.0; rows.clamp(1, ROWS_MAX) as usize]
        });
        let columns = (cells / sampling.len() as u64) as u32;
        LdsConfig::new(columns, virtual_cells, &sampling).ok()
    }

    /// Flows per cell that are too large to share a cell with.
    #[must_use]
    pub fn load(&self, config: &LdsConfig) -> f64 {
        self.large_flows() / (f64::from(config.columns()) * config.rows() as f64)
    }

    /// The share of flows just large enough that have a cell nearly to themselves.
    fn survival(&self, config: &LdsConfig) -> f64 {
        let Self { flows, sizes, large, tolerable, .. } = self;
        expected_survival(*flows, sizes, config, *large as f64, *tolerable)
    }

    fn large_flows(&self) -> f64 {
        self.flows as f64 * self.sizes.share_above(self.tolerable * self.large as f64)
    }

    /// Cells of a flow in each row, and the rows' sampling rates if losses ask for them.
    fn spread(&self) -> (u32, Option<Vec<f64>>) {
        if self.losses == 0 {
            return (1, None);
        }
        let losses = LOSS_PARTS.map(|part| (self.losses as f64 * part).ceil() as u64);
        (VIRTUAL_CELLS, Some(sampling_for_losses(VIRTUAL_CELLS, &losses)))
    }
}
