//! Heavy tails of delays.
//!
//! Intervals are those of normal distributions. If a few packets hold most of the sum of delays, cells that are
//! not usable may hold the largest, and other flows' packets in a cell may be those. What cells differ by
//! from what all others predict, relative to what packets usually vary by, shows the tail. A flow that is
//! unlike the others is no tail: its other cells predict it.

use super::System;
use super::certainty::Certainty;
use super::model::Model;
use super::shares::Shares;
use crate::tail;

/// How many times longer intervals must be. `inverted` is the inverse of the covariance times the cells' sums. Where
/// chance does not spread flows, cells hold whole flows and tell nothing of packets; and where several rows count a
/// packet, what one cell hides another shows.
pub(super) fn widening(
    system: &System,
    shares: &Shares,
    model: &Model,
    inverted: &[[f64; 1]],
) -> f64 {
    let is_seen_once = |flow: usize| system.rows_of(flow).count() <= 1;
    if !system.spreads() || !(0..system.sizes.len()).all(is_seen_once) {
        return 1.0;
    }
    let variances = Certainty::of(system, shares, model).of_cells;
    // What a flow's own extreme packets make its variances must not hide them.
    let flows = system.sizes.len();
    let (between, within) = (vec![model.common.between; flows], vec![model.common.within; flows]);
    let usual = Certainty::of(system, shares, &Model { between, within, ..model.clone() }).of_cells;
    let cells = inverted.iter().zip(variances.iter().zip(&usual));
    let values = cells.filter(|(_, (_, usual))| **usual > 0.0);
    let values = values.map(|([inverted], (variance, usual))| inverted * variance / usual.sqrt());
    let mut values: Vec<f64> = values.filter(|value| value.is_finite() && *value != 0.0).collect();
    tail::widening(&mut values).factor
}
