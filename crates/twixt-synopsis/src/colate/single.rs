//! Flows one by one: what a flow's own counters hold beyond the mean of all.

use std::borrow::Cow;

use super::Colate;
use super::estimate::FlowMean;
use crate::question::KnownFlow;
use crate::sketch::{Layout, Place, Sketch, Table};
use crate::sums::Usable;

/// The mean delay of every bank of a table, to take counters relative to. With counters as they
/// are, whatever delay all packets have in common would leak from one flow into the next.
pub(super) struct Means<'a> {
    table: &'a Table<'a, Colate>,
    /// Relative to the reference, bank by bank, vector by vector.
    means_ns: Vec<f64>,
}

/// One of a flow's counters that saw the same packets at both ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    /// Part of the flow's packets that is expected here.
    pub(super) share: f64,
    /// Sum of delays beyond the mean of all.
    pub(super) beyond_ns: f64,
}

impl<'a> Means<'a> {
    /// Of all packets or, in an excerpt, of those in counters that none of these flows falls into:
    /// there the flows' own are many more than their due.
    pub(super) fn of(table: &'a Table<'a, Colate>, flows: &[KnownFlow]) -> Self {
        let config = table.config();
        let mut cells: Cow<'_, [Option<Usable>]> = Cow::Borrowed(&table.cells);
        if config.excerpt().is_some() {
            let shares = flows.iter().flat_map(|flow| config.shares_of(Place::of(flow)));
            shares.for_each(|(cell, _)| cells.to_mut()[cell] = None);
        }
        let banks = cells.chunks_exact(config.region_cells());
        let means = banks.map(|bank| {
            let (mut packets, mut delay_sum_ns) = (0.0, 0.0);
            for cell in bank.iter().flatten() {
                packets += cell.packets as f64;
                delay_sum_ns += cell.delay_sum_ns as f64;
            }
            if packets > 0.0 { delay_sum_ns / packets } else { 0.0 }
        });
        Self { table, means_ns: means.collect() }
    }

    /// A flow's usable counters in the vector that has most of its packets in such, and the mean
    /// delay there; empty ones, too. A counter that it has twice is listed once.
    fn own(&self, place: Place) -> Option<(Vec<Own>, f64)> {
        let vectors = 0..self.table.config().rows();
        let vectors = vectors.map(|vector| self.own_in(place, vector));
        let share = |own: &[Own]| own.iter().map(|own| own.share).sum::<f64>();
        let best = vectors.max_by(|one, other| share(&one.0).total_cmp(&share(&other.0)));
        best.filter(|(own, _)| !own.is_empty())
    }

    fn own_in(&self, place: Place, vector: usize) -> (Vec<Own>, f64) {
        let config = self.table.config();
        let mut cells: Vec<usize> = config.cells_of(place, vector).collect();
        cells.sort_unstable();
        let mean_ns = self.means_ns[cells[0] / config.region_cells()];
        let share = config.sampling()[vector] / f64::from(config.per_flow());
        let own = cells.chunk_by(|one, other| one == other).filter_map(|same| {
            let share = share * same.len() as f64;
            let Table { upstream, downstream, .. } = *self.table;
            Colate::agree(upstream, downstream, same[0]).then(|| {
                let cell = self.table.cells[same[0]];
                let packets = cell.map_or(0.0, |cell| cell.packets as f64);
                let delay_sum_ns = cell.map_or(0.0, |cell| cell.delay_sum_ns as f64);
                Own { share, beyond_ns: delay_sum_ns - mean_ns * packets }
            })
        });
        (own.collect(), mean_ns)
    }
}

/// Equation 4 of the paper, on the difference of the two vectors: what the flow's counters hold,
/// less what any others would. Relative to the mean of all, others hold nothing on average; what
/// is left of them is the flow's own part in that average, where it has one.
pub(super) fn by_equation(means: &Means<'_>, place: Place, packets: f64) -> Option<FlowMean> {
    let (own, mean_ns) = means.own(place)?;
    let share: f64 = own.iter().map(|own| own.share).sum();
    let beyond_ns: f64 = own.iter().map(|own| own.beyond_ns).sum();
    let config = means.table.config();
    let others = match config.excerpt() {
        None => own.len() as f64 / config.region_cells() as f64,
        Some(_) => 0.0,
    };
    let part = (share - others) * packets;
    (part > 0.0).then(|| FlowMean { mean_ns: mean_ns + beyond_ns / part, half_width_ns: None })
}

/// The median of what each counter says alone: one that a large flow shares does no harm.
pub(super) fn by_median(means: &Means<'_>, place: Place, packets: f64) -> Option<FlowMean> {
    let (own, mean_ns) = means.own(place)?;
    let mut each: Vec<f64> = own.iter().map(|own| own.beyond_ns / (own.share * packets)).collect();
    each.sort_by(f64::total_cmp);
    let half = each.len() / 2;
    let median = if each.len() % 2 == 1 { each[half] } else { (each[half - 1] + each[half]) / 2.0 };
    let half_width_ns =
        around_median(each.len()).map(|(low, high)| (median - each[low]).max(each[high] - median));
    Some(FlowMean { mean_ns: mean_ns + median, half_width_ns })
}

/// Which two of so many values in order have the median of their distribution between them 95
/// times in 100, whatever that distribution is; `None` if they are too few.
fn around_median(values: usize) -> Option<(usize, usize)> {
    /// With fewer, all lie on one side more often than that.
    const VALUES_MIN: usize = 6;
    const Z95: f64 = 1.959_964;
    let below = (values as f64 - Z95 * (values as f64).sqrt()) / 2.0;
    (values >= VALUES_MIN).then(|| (below.max(0.0) as usize, values - 1 - below.max(0.0) as usize))
}

#[cfg(test)]
mod tests;
