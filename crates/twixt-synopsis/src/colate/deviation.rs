//! How much the delays of one flow's packets differ, where its counters are nearly its own.
//!
//! The paper signs packets at random and pairs counters in many random ways ("virtual
//! repetitions"). Averaged over all pairings that is the sample variance of the counters times
//! their number: nothing needs to be repeated, and no repetition gets below the error that so few
//! counters have, about a third of the variance with twenty. Nor does the paper's de-noising of
//! counters (its theorem 3) help: it takes the same from all of them.

use super::Colate;
use crate::question::KnownFlow;
use crate::sketch::{Layout, Place, Size, Table};
use crate::sums::Usable;

/// What is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Deviation {
    Known(f64),
    /// With the reason.
    Unknown(&'static str),
}

/// The flow must have sent this share of the packets in its counters. Others differ in their
/// means, whole flows at a time, far more than packets of one flow do.
const DOMINANCE: f64 = 0.9;
/// Estimated sizes may be off by this much: others in its counters are a tenth at most.
const SIZE_ERROR_MAX: f64 = 0.1;
/// Fewer counters say little about how much they vary.
const COUNTERS_MIN: usize = 8;
/// Counters of others that are looked at: enough to know what most hold.
const OTHERS_MAX: usize = 1024;
/// Of a normal distribution: standard deviation over median distance from the median.
const NORMAL_MEDIAN_DISTANCE: f64 = 1.482_602;

/// Of a flow whose mean is known, in the first vector that counts every packet.
pub(super) fn deviation(
    table: &Table<'_, Colate>,
    flow: &KnownFlow,
    size: &Size,
    mean_ns: f64,
) -> Deviation {
    if size.error > SIZE_ERROR_MAX * size.load {
        return Deviation::Unknown("no deviation: its size is not known well enough");
    }
    let config = table.config();
    let Some(vector) = (0..config.rows()).find(|&vector| config.is_whole(vector)) else {
        return Deviation::Unknown("no deviation: no vector counts every packet");
    };
    let mut own: Vec<usize> = config.cells_of(Place::of(flow), vector).collect();
    own.sort_unstable();
    own.dedup();
    let region = config.region_cells();
    let start = own[0] / region * region;
    let others = (start..start + region).step_by(region.div_ceil(OTHERS_MAX));
    let others = others.filter(|cell| own.binary_search(cell).is_err());
    let others = Others::of(others.filter_map(|cell| table.cells[cell]), mean_ns);
    let share = size.load / f64::from(config.per_flow());
    let clear = own.iter().filter_map(|&cell| table.cells[cell]);
    let clear: Vec<Usable> = clear.filter(|cell| others.is_typical_beside(share, cell)).collect();
    if clear.len() < COUNTERS_MIN {
        return Deviation::Unknown("no deviation: too few counters without other large flows");
    }
    let counted: f64 = clear.iter().map(|cell| cell.packets as f64).sum();
    let its_own = counted - clear.len() as f64 * others.packets;
    if its_own < DOMINANCE * counted {
        return Deviation::Unknown("no deviation: other flows share its counters");
    }
    let beyond: Vec<f64> = clear.iter().map(|cell| beyond(cell, mean_ns)).collect();
    let squares = all_pairings(&beyond) - clear.len() as f64 * others.variance;
    match squares > 0.0 {
        true => Deviation::Known((squares / its_own).sqrt()),
        false => Deviation::Unknown("no deviation: smaller than that of other flows"),
    }
}

/// Delays of a counter beyond a mean.
fn beyond(cell: &Usable, mean_ns: f64) -> f64 {
    cell.delay_sum_ns as f64 - mean_ns * cell.packets as f64
}

/// What the counters of other flows hold, most of them.
struct Others {
    packets: f64,
    variance: f64,
}

impl Others {
    fn of(cells: impl Iterator<Item = Usable>, mean_ns: f64) -> Self {
        let cells: Vec<Usable> = cells.collect();
        let mut packets: Vec<f64> = cells.iter().map(|cell| cell.packets as f64).collect();
        let values = cells.iter().map(|cell| beyond(cell, mean_ns)).collect();
        Self { packets: median(&mut packets), variance: robust_variance(values) }
    }

    /// Whether a counter of which `share` packets are expected to be one flow's holds no more of
    /// others than most do. It is chosen by packets alone, so that delays stay as they come.
    fn is_typical_beside(&self, share: f64, cell: &Usable) -> bool {
        cell.packets as f64 <= share + 2.0 * share.sqrt() + self.packets
    }
}

/// The mean, over all ways to pair counters up, of the sum of squared differences of the pairs:
/// an estimate of the sum of squares of all that was added to them.
pub(super) fn all_pairings(each: &[f64]) -> f64 {
    let count = each.len() as f64;
    let mean = each.iter().sum::<f64>() / count;
    let squares: f64 = each.iter().map(|value| (value - mean).powi(2)).sum();
    squares * count / (count - 1.0)
}

/// The variance of most values, whatever the rest.
fn robust_variance(mut values: Vec<f64>) -> f64 {
    let median = median(&mut values);
    let mut distances: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    (NORMAL_MEDIAN_DISTANCE * self::median(&mut distances)).powi(2)
}

fn median(values: &mut [f64]) -> f64 {
    match values.len() / 2 {
        0 => values.first().copied().unwrap_or(0.0),
        half => *values.select_nth_unstable_by(half, f64::total_cmp).1,
    }
}

#[cfg(test)]
mod tests;
