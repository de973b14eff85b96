//! How many packets of a flow were lost.
//!
//! A row tells how many packets its cells lost, of all flows in them: for one flow that is an
//! upper bound, and the smallest over all rows is the best of them. Packets that only downstream saw
//! hide as many lost ones.

use std::borrow::Cow;

use twixt_model::LossRange;

use super::{Layout, Place, Sketch, Table};
use crate::question::KnownFlow;
use crate::strays::{Bounds, CellDifference};

/// Lost packets, or why that is not known.
pub(crate) type Loss = Result<u64, Cow<'static, str>>;

/// `packets` is the flow's size, where that is more than a bound. Losses are the flow's if at
/// least the share `dominance` of the packets in its cells is.
pub(crate) fn lost<S: Sketch>(
    table: &Table<'_, S>,
    flow: &KnownFlow,
    packets: Option<u64>,
    dominance: f64,
) -> Loss {
    let (place, weight) = (Place::of(flow), table.weight_of(flow) as f64);
    let sampling = table.config().sampling();
    let highest = sampling.iter().copied().fold(0.0, f64::max);
    let rows = || (0..sampling.len()).filter(|&row| sampling[row] == highest);
    let whole = highest >= 1.0;
    if whole && rows().any(|row| table.is_intact(place, row)) {
        return Ok(0);
    }
    let row = rows().min_by_key(|&row| table.missing_of(place, row)).expect("there is a row");
    let missing = table.missing_of(place, row);
    if missing <= 0 {
        return Err(match whole {
            true => {
                "loss is unknown: some of its cells counted more packets downstream than \
                 upstream"
            }
            false => "loss is unknown: none of the sampled packets was lost",
        }
        .into());
    }
    // A weighted packet counts several times.
    let at_most = (missing as f64 / highest / weight).round() as u64;
    let in_cells = table.packets_of(place, row) as f64 / highest / weight;
    match packets {
        Some(packets) if packets as f64 >= dominance * in_cells => Ok(at_most.min(packets)),
        _ => Err(format!("lost at most {at_most}: other flows share its cells").into()),
    }
}

/// Bounds on the packets that only downstream saw, of all flows: every row counts the same packets,
/// so the row that tells most counts. Rows that sample tell no upper bound, and weighted packets none
/// at all.
pub(super) fn strays<S: Sketch>(table: &Table<'_, S>) -> Bounds {
    let config = table.config();
    let received = table.downstream.totals().packets;
    let mut best = Bounds { min: 0, max: received };
    if config.is_weighted() {
        return best;
    }
    let cells = table.cells.len() / config.rows();
    for row in 0..config.rows() {
        let bounds = table.strays_in(row * cells..(row + 1) * cells);
        best.min = best.min.max(bounds.min);
        if config.is_whole(row) {
            best.max = best.max.min(bounds.max);
        }
    }
    best
}

/// Bounds on the packets of a flow that only downstream saw: other flows may have those that its
/// cells show. `None` if no row counts all packets.
pub(crate) fn strays_of<S: Sketch>(table: &Table<'_, S>, flow: &KnownFlow) -> Option<LossRange> {
    let (config, place) = (table.config(), Place::of(flow));
    let rows = (0..config.rows()).filter(|&row| config.is_whole(row));
    let most = rows.map(|row| table.strays_in(table.cells_once(place, row)).max).min()?;
    Some(LossRange { min: 0, max: most / table.weight_of(flow) })
}

impl<S: Sketch> Table<'_, S> {
    /// Bounds on the strays that some cells of one row counted.
    fn strays_in(&self, cells: impl IntoIterator<Item = usize>) -> Bounds {
        let mut bounds = Bounds::default();
        for cell in cells {
            let (sent, received) = (self.upstream.sums(cell), self.downstream.sums(cell));
            // Which digests fall into a cell depends on flows, which are not known.
            let mut difference = CellDifference::of(&sent, &received, |_| true);
            difference.is_settled = S::agree(self.upstream, self.downstream, cell);
            bounds.add(difference, received.packets);
        }
        bounds
    }
}

#[cfg(test)]
mod tests;
