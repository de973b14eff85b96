//! How large a sketch must be, by section 3 of the paper as corrected.
//!
//! A large flow is measured well if in some row no other large flow falls into its cell. With n
//! flows of which the share P is large and C cells in all, z = nP/C is the load, and with R rows
//! of C/R cells each the flow survives with probability 1 - (zR)^R. (In the paper's first
//! formula R stands below the fraction's line; its later ones are right.)

use std::f64::consts::E;

/// How many rows to make of a given number of cells, and what comes of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowPlan {
    /// The best number of rows before rounding: 1 / (e z), and at least 1.
    pub ideal_rows: f64,
    /// Rounded.
    pub rows: u32,
    /// Probability that a large flow meets no other large flow in some row.
    pub survival: f64,
}

impl RowPlan {
    /// The best for a load of `load` large flows per cell.
    #[must_use]
    pub fn for_load(load: f64) -> Self {
        let ideal_rows = (1.0 / (E * load)).max(1.0);
        let rows = ideal_rows.round() as u32;
        Self { ideal_rows, rows, survival: survival(load, f64::from(rows)) }
    }

    /// The number of rows and the largest load for which all but the share `missed` of large
    /// flows survive. Below 1/e of them several rows are better than one.
    #[must_use]
    pub fn for_survival(missed: f64) -> (Self, f64) {
        let ideal_rows = (-missed.ln()).max(1.0);
        let largest_load = if missed < 1.0 / E { 1.0 / (E * ideal_rows) } else { missed };
        let rows = ideal_rows.round() as u32;
        let plan = Self { ideal_rows, rows, survival: survival(largest_load, f64::from(rows)) };
        (plan, largest_load)
    }
}

fn survival(load: f64, rows: f64) -> f64 {
    1.0 - (load * rows).powf(rows).min(1.0)
}

/// The sampling rate for each row so that a flow that loses as many packets as given there keeps
/// usable cells: about one lost packet per cell, min(1, k / L). (Printed upside down.)
#[must_use]
pub fn sampling_for_losses(virtual_cells: u32, losses: &[u64]) -> Vec<f64> {
    let rate = |&lost: &u64| (f64::from(virtual_cells) / lost.max(1) as f64).min(1.0);
    losses.iter().map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_rates_are_those_that_the_paper_uses() {
        assert_eq!(sampling_for_losses(5, &[500, 50, 10, 5]), [0.01, 0.1, 0.5, 1.0]);
        assert_eq!(sampling_for_losses(5, &[0, 2]), [1.0, 1.0]);
    }

    #[test]
    fn the_papers_example_of_sizing() {
        let plan = RowPlan::for_load(0.0875);
        assert_eq!(format!("{:.3}", plan.ideal_rows), "4.204");
        assert_eq!((plan.rows, format!("{:.4}", plan.survival)), (4, "0.9850".to_owned()));
        assert_eq!(format!("{:.4}", survival(0.0875, 1.0)), "0.9125");
        let crowded = RowPlan::for_load(0.5);
        assert_eq!((crowded.rows, crowded.survival), (1, 0.5));
    }

    #[test]
    fn a_wanted_survival_gives_rows_and_load() {
        let (plan, load) = RowPlan::for_survival(0.05);
        assert_eq!((plan.rows, format!("{load:.4}")), (3, "0.1228".to_owned()));
        assert_eq!(format!("{:.2}", load / 0.05), "2.46");
        assert!((1.0 - plan.survival - 0.05).abs() < 1e-3);
    }
}
