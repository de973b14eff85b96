//! How many packets of a flow were lost.
//!
//! A row tells how many packets its cells lost, of all flows in them: for one flow that is an
//! upper bound, and the smallest over all rows is the best of them.

use std::borrow::Cow;

use super::{Layout, Place, Sketch, Table};
use crate::question::KnownFlow;

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

#[cfg(test)]
mod tests;
