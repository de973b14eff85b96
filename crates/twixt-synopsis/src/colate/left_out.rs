//! Identical packets in counters that are not usable.
//!
//! They have one digest and fall into one counter of their flow. If one of them is lost, that counter is left out,
//! and they with it, although they may have waited in another queue than all others. A counter with far more packets than
//! its flows explain holds them; and a flow that sent fewer cannot have sent these.

use super::Colate;
use crate::independent::{LIMIT_CHANCE, poisson_limit};
use crate::question::KnownFlow;
use crate::sketch::{Layout, Place, Size, Sketch, Table};

/// Sizes that are guessed may be off by so many standard errors.
const ERRORS: f64 = 3.0;
/// A flow's identical packets are at most so many times as many as it seems to have sent.
const FEWER: f64 = 2.0;

/// Packets in counters that are not usable, beyond those of their flows.
pub(super) struct LeftOut<'a> {
    table: &'a Table<'a, Colate>,
    /// Cell by cell.
    beyond: Vec<f64>,
}

impl<'a> LeftOut<'a> {
    /// Of all flows that there are: packets of others would be taken for theirs.
    pub(super) fn of(table: &'a Table<'a, Colate>, flows: &[KnownFlow], sizes: &[Size]) -> Self {
        let cells = table.cells.len();
        let (mut expected, mut errors) = (vec![0.0; cells], vec![0.0; cells]);
        for (flow, size) in flows.iter().zip(sizes) {
            for (cell, share) in table.config().shares_of(Place::of(flow)) {
                expected[cell] += share * size.load;
                errors[cell] += share * size.error;
            }
        }
        let beyond = |cell: usize| {
            let count = table.upstream.sums(cell).packets as f64;
            let most = poisson_limit(expected[cell] + ERRORS * errors[cell], LIMIT_CHANCE);
            let is_usable = Colate::agree(table.upstream, table.downstream, cell);
            if is_usable || count <= most { 0.0 } else { count - expected[cell] }
        };
        Self { table, beyond: (0..cells).map(beyond).collect() }
    }

    /// Packets that may be identical ones of this flow.
    pub(super) fn of_flow(&self, flow: &KnownFlow, size: &Size) -> f64 {
        let cells = self.table.config().shares_of(Place::of(flow));
        let beyond = cells.map(|(cell, _)| self.beyond[cell]);
        beyond.filter(|&packets| packets <= FEWER * size.load).fold(0.0, f64::max)
    }
}
