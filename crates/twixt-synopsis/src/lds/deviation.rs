//! Deviation of a flow's single packets.
//!
//! A row that spreads a flow over several cells, or samples it, parts its packets at random: how
//! far the parts' delays lie from the mean of all tells how much single packets vary. In a cell of
//! n of its N packets with total delay T, E (T - mu n)^2 = n (1 - n/N) sigma^2.

use super::Lds;
use crate::joint::Solution;
use crate::question::KnownFlow;
use crate::sketch::{Layout, Place, Size, Sum, Table};
use crate::sums::Usable;

/// From whole rows in which the flow is alone: there its own mean serves. Other flows in the cells
/// would add the differences of their means, many times over.
pub(super) fn alone(table: &Table<'_, Lds>, flow: &KnownFlow, packets: u64) -> Option<f64> {
    let (config, weight) = (table.config(), table.weight_of(flow));
    let place = Place::of(flow);
    let load = packets.saturating_mul(weight);
    let is_alone = |&row: &usize| config.is_whole(row) && table.packets_of(place, row) == load;
    let (mut squares, mut freedom) = (0.0, 0.0);
    for row in (0..config.rows()).filter(is_alone) {
        let cells: Vec<Usable> = table.usable_of(place, row).collect();
        let mut sum = Sum::default();
        cells.iter().for_each(|&cell| sum.add(cell));
        let (count, mean) = (sum.packets as f64, sum.delay_sum_ns as f64 / sum.packets as f64);
        for cell in &cells {
            let n = cell.packets as f64;
            squares += (cell.delay_sum_ns as f64 - mean * n).powi(2) / weight as f64;
            // The row's own mean costs one degree of freedom, weighted by cell.
            freedom += n - n * n / count;
        }
    }
    (freedom > 0.0).then(|| (squares / freedom / weight as f64).sqrt())
}

/// What all flows' means leave unexplained in cells.
pub(super) struct Remainders<'a> {
    table: &'a Table<'a, Lds>,
    common_ns: f64,
    cells: Vec<Explained>,
}

/// What flows are expected to bring into a cell, before that is scaled to what it counted.
#[derive(Clone, Copy, Default)]
struct Explained {
    load: f64,
    delay_sum_ns: f64,
    /// Variance by what means are off.
    off: f64,
    /// Sum of variance of load, and of the same times mean and square of mean: how much loads that
    /// differ from expectation add, seen from any one flow.
    chance: [f64; 3],
}

/// Fewer cells say too little: with so many the deviation is off by a quarter.
const CELLS_MIN: usize = 8;
/// Of smaller flows, only those few that happen to deviate far would be reported.
const PACKETS_MIN: f64 = 500.0;
/// A flow has at least this part of the packets in each cell that counts ...
const SHARE_MIN: f64 = 0.5;
/// ... and other flows bring at most this part of what the cells deviate.
const NOISE_MAX: f64 = 0.3;
/// Its size is known to this part.
const SIZE_ERROR_MAX: f64 = 0.1;
/// A 95 % interval is so many deviations long, half of it.
const Z95: f64 = 1.96;

impl<'a> Remainders<'a> {
    pub(super) fn new(
        table: &'a Table<'a, Lds>,
        flows: &[KnownFlow],
        sizes: &[Size],
        solutions: &[Option<Solution>],
        common_ns: f64,
    ) -> Self {
        let config = table.config();
        let mut cells = Vec::new();
        if config.is_spread() {
            cells = vec![Explained::default(); table.cells.len()];
            for ((flow, size), solution) in flows.iter().zip(sizes).zip(solutions) {
                let Some(solution) = solution else { continue };
                for (cell, share) in config.shares_of(Place::of(flow)) {
                    cells[cell].add(size, share, *solution);
                }
            }
        }
        Self { table, common_ns, cells }
    }

    /// The deviation of a flow, if it dominates enough cells.
    pub(super) fn deviation(
        &self,
        flow: &KnownFlow,
        size: &Size,
        solution: Solution,
    ) -> Option<f64> {
        let config = self.table.config();
        let is_small = size.load < PACKETS_MIN * size.weight;
        if self.cells.is_empty() || is_small || size.error > SIZE_ERROR_MAX * size.load {
            return None;
        }
        let (mut ratio, mut noise_ratio, mut cells) = (0.0, 0.0, 0_usize);
        for (index, share) in config.shares_of(Place::of(flow)).filter(|&(_, share)| share < 1.0) {
            let Some(cell) = self.table.cells[index] else { continue };
            let explained = &self.cells[index];
            let scale = cell.packets as f64 / explained.load;
            let own = size.load * share * scale;
            if own < SHARE_MIN * cell.packets as f64 || own < size.weight {
                continue;
            }
            let sum_ns = cell.delay_sum_ns as f64 - self.common_ns * cell.packets as f64;
            let rest = sum_ns - explained.delay_sum_ns * scale;
            // Packets of others are taken to vary as much.
            let packets = cell.packets as f64 - own * (own / size.load).min(1.0);
            let freedom = size.weight * packets;
            ratio += rest * rest / freedom;
            noise_ratio += explained.noise(solution.mean_offset_ns, scale) / freedom;
            cells += 1;
        }
        let known = cells >= CELLS_MIN && ratio > 0.0 && noise_ratio <= NOISE_MAX * ratio;
        known.then(|| ((ratio - noise_ratio) / cells as f64).sqrt())
    }
}

impl Explained {
    fn add(&mut self, size: &Size, share: f64, solution: Solution) {
        let (load, mean) = (size.load * share, solution.mean_offset_ns);
        self.load += load;
        self.delay_sum_ns += load * mean;
        self.off += (load * solution.half_width_ns / Z95).powi(2);
        let chance = chance(size, share);
        let powers = [1.0, mean, mean * mean];
        self.chance.iter_mut().zip(powers).for_each(|(sum, power)| *sum += chance * power);
    }

    /// Expected square of what means that are off, and flows that brought more or less than
    /// expected, add as seen from a flow with this mean.
    fn noise(&self, mean: f64, scale: f64) -> f64 {
        let [zeroth, first, second] = self.chance;
        // The flow's own terms vanish: its mean does not differ from itself.
        let others = second - 2.0 * mean * first + mean * mean * zeroth;
        self.off * scale * scale + others.max(0.0) * scale
    }
}

/// Variance of what a flow brings into a cell.
fn chance(size: &Size, share: f64) -> f64 {
    size.load * size.weight * share * (1.0 - share) + (size.error * share).powi(2)
}

#[cfg(test)]
mod tests;
