//! Mean delays of many flows at once, out of cells that several flows share.
//!
//! Each usable cell gives one equation: the delay of its packets, relative to a reference and
//! added up, is the sum over its flows of packets in the cell times what the flow's mean delay
//! lies above the reference. Flows that collide in one cell part ways in another, so that all
//! equations together tell far more than the best cell of each flow alone.
//!
//! The answer is the best linear prediction under a model with two variances: one of the means
//! between flows, one of the packets within a flow. Both are fitted to the cells themselves, so
//! that nothing is damped where cells determine the flows, and a flow that the cells say nothing
//! about stays at what is common to all. With `K` the covariance of the cells' sums `d` under
//! this model, `m` = cov(m, d) `K`⁻¹ `d`.
//!
//! Which cells a flow falls into is the caller's: this module knows no hash, no algorithm and no
//! packet. It uses no clock and no thread, and equal systems have equal solutions.

mod certainty;
mod covariance;
mod extremes;
mod fit;
mod gradients;
mod leaders;
mod model;
mod posterior;
mod prior;
mod shares;
mod variance;

use std::ops::Range;

use covariance::Covariance;
use fit::Fit;
use gradients::Solver;
use model::Model;
use shares::{Expected, Shares};
use variance::Variances;
pub(crate) use variance::{Noise, fit_noise};

/// Counts and sums beyond this are not believed. Sums of 64-bit words stay below it, and squares
/// of it are far from the end of `f64`.
const LARGEST: f64 = (1_u128 << 80) as f64;

/// If a flow's cells are off by more than this many times what the model expects, the flow is better
/// answered from its own cells alone.
const MISFIT_MAX: f64 = 3.0;
/// Iterations go on until they have visited so many members, if there are few ...
const MEMBER_VISITS_MAX: usize = 10_000_000;
/// ... or until there were so many of them.
const ITERATIONS_MAX: usize = 1500;
/// Variances settle slowly at first if a few flows are unlike the others in crowded cells: rounds go
/// on until they have seen so many members.
const MEMBER_ROUNDS_MIN: usize = 1_000_000;
/// A flow is taken to have at least this part of the packets that it seems to have. Of flows of a few packets in
/// crowded cells, those that seem to have thrice as many are the ones whose intervals fail.
const LEAST_PART: f64 = 0.25;
/// Solutions that only decide on variances need be no nearer than this, ...
const ROUGH: f64 = 1e-3;
/// ... and get one of so many iterations.
const ROUGH_PART: usize = 6;

/// A cell without loss: one equation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    /// A packet falls into at most one of the cells of a row.
    pub row: u32,
    /// Packets that it counted.
    pub packets: f64,
    /// Sum of their delays, each minus the reference. Any reference will do, but close to the
    /// mean numbers stay small and exact.
    pub delay_sum_ns: f64,
}

/// How many packets a flow sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size {
    /// The number, or a guess at it.
    pub packets: f64,
    /// Standard error of the guess; 0 for a number that is known.
    pub error: f64,
    /// The same as far as only the number of packets counts, and not what they add to cells.
    pub doubt: f64,
}

impl Size {
    /// A number that is known.
    pub(crate) const fn known(packets: f64) -> Self {
        Self { packets, error: 0.0, doubt: 0.0 }
    }

    /// The error relative to the number. Beyond a hundred it is all the same.
    fn relative_error(self) -> f64 {
        (self.error / self.packets).min(100.0)
    }

    /// One standard error below the number, but no small part of it.
    fn least(self) -> f64 {
        (self.packets - self.doubt).max(LEAST_PART * self.packets).max(1.0)
    }
}

/// What the cells tell about one flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Solution {
    /// The mean delay of its packets, relative to the reference.
    pub mean_offset_ns: f64,
    /// Half the length of the 95 % interval around it.
    pub half_width_ns: f64,
    /// What the cells leave unknown, relative to how flows vary: squares of what the mean is off
    /// by, over the variance of means. 0 where they tell everything.
    pub unknown: f64,
    /// Whether the flow was seen in the light of the others.
    pub sharpened: bool,
    /// How many times farther than expected the flow's cells are from what all other cells predict;
    /// 1 if no farther. The interval is longer by this factor.
    pub misfit: f64,
    /// Variance of the delays of its packets, as the equations suppose it.
    pub within: f64,
}

impl Solution {
    /// Whether the flow's cells are close enough to what all other cells predict.
    pub(crate) fn fits(&self) -> bool {
        self.misfit <= MISFIT_MAX
    }
}

/// How hard to try.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Options {
    /// Made-up systems that are solved to see how far off the solutions are.
    pub draws: usize,
    /// Iterations end when the remainder is this small a part of the cells' sums...
    pub tolerance: f64,
    /// ... or after this many (twice as many for the solution itself).
    pub iterations: usize,
    /// How many times at most variances are fitted flow by flow, given a solution.
    pub rounds: usize,
    /// Seed of the made-up systems.
    pub seed: u64,
    /// Whether flows that cells tell little about are seen in the light of the others, in place of
    /// being drawn to the mean of all.
    pub sharpens: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            draws: 12,
            tolerance: 1e-6,
            iterations: 150,
            rounds: 30,
            seed: 0x7457_1d87,
            sharpens: false,
        }
    }
}

/// Cells, and the flows that fall into them.
#[derive(Clone, Debug)]
pub(crate) struct System {
    /// `None` where a cell is not usable.
    cells: Vec<Option<Cell>>,
    sizes: Vec<Size>,
    /// Members of flow `f` are those from `ends[f - 1]` up to `ends[f]`, row by row.
    ends: Vec<usize>,
    members: Vec<Member>,
    /// What is expected in cells that counted nothing, by cell: it tells that flows are as small as they
    /// seem.
    vacant: Vec<Expected>,
    /// Inverse of the shape of the Gamma distribution of what a flow has in a cell: 0 if chance alone spreads its
    /// packets.
    clumping: f64,
}

/// One flow in one usable cell.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Member {
    cell: u32,
    row: u32,
    /// Part of the flow's packets that is expected in the cell: 1 if all of them are there.
    share: f64,
}

impl System {
    /// A system without flows. Cells that cannot be used (loss) are `None`, or are taken for it if
    /// they counted absurdly many packets, or a part of one. Those that counted none are no equations.
    ///
    /// # Panics
    ///
    /// For more than 2^32 cells.
    pub(crate) fn new(cells: Vec<Option<Cell>>) -> Self {
        assert!(u32::try_from(cells.len()).is_ok(), "cells are numbered in 32 bits");
        let believable = |cell: &Cell| match cell.packets {
            0.0 => cell.delay_sum_ns == 0.0,
            packets => (1.0..LARGEST).contains(&packets) && cell.delay_sum_ns.abs() < LARGEST,
        };
        let cells: Vec<Option<Cell>> =
            cells.into_iter().map(|cell| cell.filter(believable)).collect();
        let vacant = vec![Expected::default(); cells.len()];
        let (sizes, ends, members) = (Vec::new(), Vec::new(), Vec::new());
        Self { cells, sizes, ends, members, vacant, clumping: 0.0 }
    }

    /// The same for flows that clump.
    pub(crate) const fn with_clumping(mut self, clumping: f64) -> Self {
        self.clumping = clumping;
        self
    }

    /// Adds the next flow: its size, and the cells it falls into, in any order, with the share of
    /// its packets that each is expected to count. A cell that is named twice gets both shares;
    /// cells that are not usable are passed over.
    ///
    /// Shares are those of the hash and of sampling: 1 for a row that puts a flow into one cell,
    /// 1/k for one that spreads it over k, times the row's sampling rate.
    pub(crate) fn add_flow(&mut self, size: Size, cells: impl IntoIterator<Item = (usize, f64)>) {
        let believable = |number: f64| (0.0..LARGEST).contains(&number);
        let valid = believable(size.packets) && believable(size.error) && size.packets > 0.0;
        let start = self.members.len();
        for (cell, share) in cells {
            let Some(&Some(Cell { row, packets, .. })) = self.cells.get(cell) else { continue };
            let member = Member { cell: cell as u32, row, share: share.min(1.0) };
            if valid && share > 0.0 {
                match packets {
                    0.0 => self.vacant[cell].add(size, &member, self.clumping),
                    _ => self.members.push(member),
                }
            }
        }
        self.members[start..].sort_by_key(|member| (member.row, member.cell));
        self.merge_from(start);
        self.sizes.push(if valid { size } else { Size::known(1.0) });
        self.ends.push(self.members.len());
    }

    /// Adds up the shares of equal neighbours.
    fn merge_from(&mut self, start: usize) {
        let mut end = start;
        for index in start..self.members.len() {
            let member = self.members[index];
            if end > start && self.members[end - 1].cell == member.cell {
                let share = &mut self.members[end - 1].share;
                *share = (*share + member.share).min(1.0);
            } else {
                self.members[end] = member;
                end += 1;
            }
        }
        self.members.truncate(end);
    }

    /// One solution per flow, in the order in which flows were added; `None` for a flow that has
    /// no usable cell, or an absurd size, or whose equations hostile input made beyond what numbers
    /// hold.
    pub(crate) fn solve(&self, options: &Options) -> Vec<Option<Solution>> {
        let solutions = self.among_members(|system, shares, variances| {
            system.solve_with(shares, variances, options)
        });
        let is_number =
            |found: &Solution| found.mean_offset_ns.is_finite() && found.half_width_ns.is_finite();
        solutions.into_iter().map(|found| found.filter(is_number)).collect()
    }

    /// The means of those solutions alone: without made-up systems, which are most of the work.
    pub(crate) fn mean_offsets_ns(&self, options: &Options) -> Vec<Option<f64>> {
        let means = self.among_members(|system, shares, variances| {
            let model = Model::common(system, shares, variances);
            let covariance = Covariance::new(system, shares, &model);
            let solved = Solver::new(&covariance, options).solve(system);
            system.means_of(&covariance, &solved, model.common.mean_ns)
        });
        means.into_iter().map(|mean| mean.filter(|mean| mean.is_finite())).collect()
    }

    fn among_members<T>(&self, answer: impl Fn(&Self, &Shares, Variances) -> T) -> T {
        let shares = Shares::of(self);
        let variances = Variances::fit(self, &shares);
        match self.without_bystanders(&shares) {
            Some((system, shares)) => answer(&system, &shares, variances),
            None => answer(self, &shares, variances),
        }
    }

    /// The same without cells that no flow falls into, if those are the most: they have contributed
    /// what is common to all, and would only cost time from here on.
    fn without_bystanders(&self, shares: &Shares) -> Option<(Self, Shares)> {
        let mut places = vec![None; self.cells.len()];
        self.members.iter().for_each(|member| places[member.cell as usize] = Some(0_u32));
        let kept: Vec<usize> = (0..places.len()).filter(|&cell| places[cell].is_some()).collect();
        if kept.len() > self.cells.len() / 2 {
            return None;
        }
        kept.iter().zip(0..).for_each(|(&cell, place)| places[cell] = Some(place));
        let members = self.members.iter().map(|member| {
            let cell = places[member.cell as usize].expect("cells with members are kept");
            Member { cell, ..*member }
        });
        let cells = kept.iter().map(|&cell| self.cells[cell]).collect();
        let members = members.collect();
        let (sizes, ends) = (self.sizes.clone(), self.ends.clone());
        let vacant = kept.iter().map(|&cell| self.vacant[cell]).collect();
        let clumping = self.clumping;
        Some((Self { cells, sizes, ends, members, vacant, clumping }, shares.of_cells(&kept)))
    }

    fn solve_with(
        &self,
        shares: &Shares,
        variances: Variances,
        options: &Options,
    ) -> Vec<Option<Solution>> {
        let options = &Options { iterations: self.iterations(options), ..*options };
        let model = self.model(shares, variances, options);
        let covariance = Covariance::new(self, shares, &model);
        let solver = Solver::new(&covariance, options);
        let solved = solver.solve(self);
        let means = self.means_of(&covariance, &solved, model.common.mean_ns);
        let errors = posterior::errors(self, shares, &model, &solver);
        let inverted = covariance.unscaled(&solved);
        let fit = Fit::of(&inverted, &errors.inverse_diagonal);
        let tail = extremes::widening(self, shares, &model, &inverted);
        let flows = means.into_iter().zip(errors.plain_ns).enumerate();
        let flows = flows.map(|(flow, (mean, half_width_ns))| {
            let misfit = fit.misfit(self, shares, flow);
            let half_width_ns = half_width_ns * misfit;
            let prior = model.of_mean(flow, self.sizes[flow].packets);
            mean.map(|mean_offset_ns| Solution {
                mean_offset_ns,
                half_width_ns,
                unknown: posterior::unknown(half_width_ns, prior),
                sharpened: false,
                misfit,
                within: model.within[flow],
            })
        });
        let mut solutions: Vec<Option<Solution>> = flows.collect();
        if options.sharpens {
            prior::sharpen(&mut solutions, &self.sizes, &model);
        }
        for (solution, half_width_ns) in solutions.iter_mut().zip(errors.half_widths_ns) {
            let solution = solution.as_mut().filter(|solution| !solution.sharpened);
            let Some(solution) = solution else { continue };
            solution.half_width_ns = half_width_ns * solution.misfit * tail;
        }
        solutions
    }

    /// Few flows in many cells each need more iterations than many flows do, and can afford them.
    fn iterations(&self, options: &Options) -> usize {
        let affordable = MEMBER_VISITS_MAX / self.members.len().max(1);
        affordable.min(ITERATIONS_MAX).max(options.iterations)
    }

    /// Fits variances flow by flow: solves the equations, fits variances to the solution, and solves
    /// again.
    fn model(&self, shares: &Shares, fitted: Variances, options: &Options) -> Model {
        let iterations = options.iterations / ROUGH_PART;
        let rough = Options { tolerance: ROUGH, iterations, ..*options };
        let mut model = Model::start(self, shares, fitted);
        let rounds_min = MEMBER_ROUNDS_MIN / self.members.len().max(1);
        for round in 0..options.rounds {
            let covariance = Covariance::new(self, shares, &model);
            let solved = Solver::new(&covariance, &rough).solve(self);
            let means = covariance.predict(&solved);
            let means: Vec<f64> = means.into_iter().map(|[mean]| mean).collect();
            let next = model.reweighted(self, shares, &means, &covariance.unscaled(&solved));
            let is_settled = round >= rounds_min && next.is_close_to(&model);
            model = next;
            if is_settled {
                break;
            }
        }
        model
    }

    /// Whether chance decides which of a flow's packets a cell counts.
    fn spreads(&self) -> bool {
        self.members.iter().any(|member| member.share < 1.0)
    }

    /// The mean of each flow that has a usable cell.
    fn means_of(
        &self,
        covariance: &Covariance,
        solved: &[[f64; 1]],
        common_ns: f64,
    ) -> Vec<Option<f64>> {
        let offsets = covariance.predict(solved);
        let flows = offsets.into_iter().enumerate().map(|(flow, [offset])| {
            let seen = !self.members_of(flow).is_empty();
            seen.then_some(common_ns + offset)
        });
        flows.collect()
    }

    /// Where the members of a flow are.
    fn members_of(&self, flow: usize) -> Range<usize> {
        let start = flow.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[flow]
    }

    /// The same, split by row.
    fn rows_of(&self, flow: usize) -> impl Iterator<Item = Range<usize>> {
        let members = self.members_of(flow);
        let mut end = members.start;
        let rows = self.members[members].chunk_by(|one, other| one.row == other.row);
        rows.map(move |row| {
            end += row.len();
            end - row.len()..end
        })
    }

    /// Whether all packets of the flow are in the only member of this row.
    fn is_whole(&self, row: &Range<usize>) -> bool {
        row.len() == 1 && self.members[row.start].share >= 1.0
    }
}

#[cfg(test)]
mod tests;
