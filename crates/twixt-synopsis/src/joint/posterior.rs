//! How far off the solution is: made-up systems of the same shape, whose flows are known, are
//! solved the same way.
//!
//! The remainder of the equations says nothing about the error where flows outnumber cells: there
//! it is zero. Errors on systems drawn from the model do, iterations cut short included.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};

use super::gradients::Solver;
use super::model::{Model, POOLED_CELLS, REPLICATES_MIN};
use super::shares::Shares;
use super::{Size, System};
use crate::interval::{Z95, student95};

/// Systems that are solved at once. More need fewer passes over the members, but the caches hold
/// fewer cells.
const LANES: usize = 4;

/// Intervals are longer by this where chance spreads flows: how much each flow's packets vary is then
/// found from the same cells. Without it 90 to 93 % of intervals hold in crowded cells.
const CAUTION: f64 = 1.12;

/// This part of what a flow's size may be off by is taken for packets of one other flow, where flows clump. With it,
/// 95 % of intervals hold for mice beside an elephant that all repeat half of their packets, and 88 % without.
const FOREIGN_PART: f64 = 0.3;

/// One number per system.
type Lanes = [f64; LANES];

/// What made-up systems show.
pub(super) struct Errors {
    /// Half the length of each flow's 95 % interval.
    pub(super) half_widths_ns: Vec<f64>,
    /// The same if the model were right.
    pub(super) plain_ns: Vec<f64>,
    /// The diagonal of the inverse of the cells' covariance.
    pub(super) inverse_diagonal: Vec<f64>,
}

/// How far off solutions of such systems are.
pub(super) fn errors(
    system: &System,
    shares: &Shares,
    model: &Model,
    solver: &Solver<'_>,
) -> Errors {
    let (covariance, options) = (solver.covariance, solver.options);
    let rng = ChaCha8Rng::seed_from_u64(options.seed);
    let mut made_up = MadeUp { system, shares, model, rng };
    let mut squares = vec![0.0; system.sizes.len()];
    let mut inverse_diagonal = vec![0.0; system.cells.len()];
    let rounds = options.draws.div_ceil(LANES).max(1);
    for _ in 0..rounds {
        let (means, sums) = made_up.draw();
        let solved = solver.invert(covariance.scaled(sums), options.iterations);
        let answers = covariance.predict(&solved);
        for (square, solved) in inverse_diagonal.iter_mut().zip(covariance.unscaled(&solved)) {
            *square += solved.iter().map(|lane| lane * lane).sum::<f64>();
        }
        for ((square, answer), mean) in squares.iter_mut().zip(answers).zip(means) {
            *square += (0..LANES).map(|lane| (answer[lane] - mean[lane]).powi(2)).sum::<f64>();
        }
    }
    let draws = (rounds * LANES) as f64;
    let jitter = possible_jitter(system, shares, model);
    let caution = if system.spreads() { CAUTION } else { 1.0 };
    let (mut plain_ns, mut half_widths_ns) = (Vec::new(), Vec::new());
    for (flow, square) in squares.into_iter().enumerate() {
        let size = system.sizes[flow];
        let prior = model.of_mean(flow, size.packets);
        // What iterations leave over may be the same for all flows, which draws do not show.
        let square = square / draws + options.tolerance.powi(2) * prior;
        plain_ns.push(caution * student95(draws) * square.sqrt());
        // Fewer packets than guessed have a mean that varies more.
        let fewer = if prior > 0.0 { model.of_mean(flow, size.least()) / prior } else { 1.0 };
        let held: f64 = system.members_of(flow).map(|index| shares.packets[index]).sum();
        let unseen = (held.max(1.0).recip() - size.packets.max(1.0).recip()).max(0.0);
        let foreign = of_foreign_clumps(system, model, flow);
        let variance = square * fewer + jitter * unseen + foreign;
        let caution = caution.max(of_few_cells(system, flow));
        half_widths_ns.push(caution * student95(draws) * variance.sqrt());
    }
    inverse_diagonal.iter_mut().for_each(|square| *square /= draws);
    Errors { half_widths_ns, plain_ns, inverse_diagonal }
}

/// Variance of packets that cells do not show but may hide. Where hardly a flow has two cells, all that cells differ by
/// may be jitter, although it is taken for that of flows.
fn possible_jitter(system: &System, shares: &Shares, model: &Model) -> f64 {
    let more_than_one = |flow: usize| system.members_of(flow).len().saturating_sub(1);
    let replicates: usize = (0..system.sizes.len()).map(more_than_one).sum();
    let is_told = !system.spreads() || replicates as f64 >= REPLICATES_MIN;
    if is_told { 0.0 } else { model.common.between * shares.typical_packets() }
}

/// Variance of a flow's mean because clumps of other flows may be taken for its own. Draws have none.
fn of_foreign_clumps(system: &System, model: &Model, flow: usize) -> f64 {
    let Size { packets, doubt, .. } = system.sizes[flow];
    let foreign = FOREIGN_PART * (doubt / packets).min(1.0);
    if system.clumping > 0.0 { foreign.powi(2) * model.common.between } else { 0.0 }
}

/// How many times longer the interval of a flow is because its variance is found from a few cells.
fn of_few_cells(system: &System, flow: usize) -> f64 {
    let cells = system.members_of(flow).len() as f64;
    if system.spreads() { student95(POOLED_CELLS + cells - 1.0) / Z95 } else { 1.0 }
}

/// What is unknown of a flow with such an interval, relative to the variance of means.
pub(super) fn unknown(half_width_ns: f64, prior_variance: f64) -> f64 {
    let deviation_ns = half_width_ns / HALF_WIDTH;
    if prior_variance > 0.0 { deviation_ns * deviation_ns / prior_variance } else { 0.0 }
}

/// Half of a 95 % interval, in deviations, with the usual number of draws.
pub(super) const HALF_WIDTH: f64 = 2.18;

/// Makes up systems whose cells have the covariance that the solver assumes.
struct MadeUp<'a> {
    system: &'a System,
    shares: &'a Shares,
    model: &'a Model,
    rng: ChaCha8Rng,
}

impl MadeUp<'_> {
    /// The means of flows, relative to that of all, and the sums of cells.
    fn draw(&mut self) -> (Vec<Lanes>, Vec<Lanes>) {
        let own = self.model.own.iter();
        let mut sums: Vec<Lanes> = own.map(|&variance| normal(&mut self.rng, variance)).collect();
        let flows = 0..self.system.sizes.len();
        let means = flows.map(|flow| self.draw_flow(flow, &mut sums)).collect();
        (means, sums)
    }

    /// Adds a flow's packets to its cells; gives their mean.
    fn draw_flow(&mut self, flow: usize, sums: &mut [Lanes]) -> Lanes {
        let (size, system) = (self.system.sizes[flow], self.system);
        let packets = size.packets.max(1.0);
        let common = normal(&mut self.rng, self.model.between[flow]);
        let mut mean = normal(&mut self.rng, self.model.within[flow] / packets);
        add(&mut mean, common, 1.0);
        let mut seen = mean;
        let error = self.model.squares[flow] * size.relative_error().powi(2);
        add(&mut seen, normal(&mut self.rng, error), 1.0);
        for index in system.members_of(flow) {
            add(self.cell_of(index, sums), seen, self.shares.packets[index]);
        }
        for row in system.rows_of(flow).filter(|row| !system.is_whole(row)) {
            self.draw_deviations(self.model.within[flow], row, packets, sums);
        }
        mean
    }

    /// Adds what a flow's packets in the cells of a row deviate from the mean of all its packets:
    /// independent deviations, minus the mean of all of them, those outside of the row included.
    fn draw_deviations(
        &mut self,
        within: f64,
        row: Range<usize>,
        packets: f64,
        sums: &mut [Lanes],
    ) {
        let held: f64 = self.shares.packets[row.clone()].iter().sum();
        let total = held.max(packets);
        let mut all = normal(&mut self.rng, within * (total - held));
        for index in row.clone() {
            let deviation = normal(&mut self.rng, within * self.shares.packets[index]);
            add(self.cell_of(index, sums), deviation, 1.0);
            add(&mut all, deviation, 1.0);
        }
        for index in row {
            add(self.cell_of(index, sums), all, -self.shares.packets[index] / total);
        }
    }

    fn cell_of<'sums>(&self, member: usize, sums: &'sums mut [Lanes]) -> &'sums mut Lanes {
        &mut sums[self.system.members[member].cell as usize]
    }
}

fn normal(rng: &mut ChaCha8Rng, variance: f64) -> Lanes {
    if variance <= 0.0 {
        return [0.0; LANES];
    }
    let deviation = variance.sqrt();
    std::array::from_fn(|_| {
        let standard: f64 = StandardNormal.sample(rng);
        deviation * standard
    })
}

fn add(target: &mut Lanes, source: Lanes, factor: f64) {
    for lane in 0..LANES {
        target[lane] += factor * source[lane];
    }
}
