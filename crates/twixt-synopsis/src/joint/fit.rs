//! Whether the cells agree with the model.
//!
//! With `K` the covariance of the cells' sums `d`, the best prediction of one cell from all others
//! is off by (K⁻¹ d)_c / (K⁻¹)_cc, with variance 1 / (K⁻¹)_cc. So the squares of (K⁻¹ d)_c over
//! (K⁻¹)_cc are 1 on average, cell by cell, if variances are right, and larger where
//! the cells hold something that the model does not know. The diagonal comes from made-up systems.

use super::System;
use super::shares::Shares;

/// A flow's cells are off by chance up to this. The diagonal from a dozen made-up systems alone makes
/// it 1.2 on average.
const BY_CHANCE: f64 = 1.2;
/// As good as so many cells that fit.
const PRIOR_CELLS: f64 = 2.0;

/// How far each cell is off.
pub(super) struct Fit {
    squares: Vec<f64>,
    expected: Vec<f64>,
}

impl Fit {
    pub(super) fn of(inverted: &[[f64; 1]], inverse_diagonal: &[f64]) -> Self {
        let squares = inverted.iter().map(|[cell]| cell * cell).collect();
        Self { squares, expected: inverse_diagonal.to_vec() }
    }

    /// How many times farther off a flow's cells are than supposed; 1 where that may be chance.
    /// Cells count for as much as they tell of the flow.
    pub(super) fn misfit(&self, system: &System, shares: &Shares, flow: usize) -> f64 {
        let (mut square, mut expected, mut weights) = (0.0, 0.0, 0.0);
        for index in system.members_of(flow) {
            let cell = system.members[index].cell as usize;
            let weight = shares.packets[index].powi(2);
            square += weight * self.squares[cell];
            expected += weight * self.expected[cell];
            weights += (weight * self.expected[cell]).powi(2);
        }
        if expected <= 0.0 {
            return 1.0;
        }
        let cells = expected * expected / weights;
        let ratio = (PRIOR_CELLS + cells * square / expected) / (PRIOR_CELLS + cells);
        (ratio / BY_CHANCE).max(1.0).sqrt()
    }
}
