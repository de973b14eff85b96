//! The covariance of the cells' sums, and systems of equations with it.
//!
//! Let flow f have n packets, x_i of them expected in cell i, τ² the variance between and σ² the
//! variance within flows. Its mean varies by α = τ² + σ²/n around what is common to all, and its
//! sum in cell i is x_i times its mean, plus the deviation of those packets that happened to fall
//! into i from the mean of all n: σ² (x_i δ_ij - x_i x_j / n) for cells of one row, which vanishes
//! if the row has one cell for the flow, and x_i = n. Deviations in different rows are taken for
//! independent, as are those of counts from their expectation.

use std::ops::Range;

use super::leaders::Leaders;
use super::model::Model;
use super::shares::Shares;
use super::{Cell, System};

/// Smallest relative variance of a cell's own noise: keeps the equations solvable where they
/// contradict each other by rounding.
const ROUNDING: f64 = 1e-12;

/// Applied without ever being written down: memory is linear in members.
pub(super) struct Covariance {
    /// What is common to all flows.
    mean_ns: f64,
    /// Scales each cell's sum to unit variance. A cell that cannot vary has 0.
    scale: Vec<f64>,
    /// What only the cell itself sees, scaled.
    noise: Vec<f64>,
    members: Vec<Scaled>,
    flows: Vec<Flow>,
    /// Flows that a row spreads over several cells.
    spreads: Vec<Spread>,
}

/// One flow in one cell.
#[derive(Clone, Copy)]
pub(super) struct Scaled {
    pub(super) cell: u32,
    /// In units of the cell's deviation.
    pub(super) packets: f64,
}

/// What one flow varies by.
pub(super) struct Flow {
    /// Its members are those from the end of the flow before up to this one.
    pub(super) end: usize,
    /// Variance of its mean.
    prior: f64,
    /// The same as cells see it, with what its size may be off by.
    pub(super) effective: f64,
}

/// Neighbouring members: one flow's in one row.
struct Spread {
    start: usize,
    end: usize,
    /// σ²/n: what is too much if packets in different cells vary on their own.
    excess: f64,
}

impl Covariance {
    pub(super) fn new(system: &System, shares: &Shares, model: &Model) -> Self {
        let mut covariance = Self {
            mean_ns: model.common.mean_ns,
            scale: Vec::new(),
            noise: model.own.clone(),
            members: scaled_members(system, shares),
            flows: Vec::with_capacity(system.sizes.len()),
            spreads: Vec::new(),
        };
        let mut diagonal = vec![0.0; system.cells.len()];
        for flow in 0..system.sizes.len() {
            covariance.add_flow(system, model, flow, &mut diagonal);
        }
        covariance.rescale(&diagonal);
        covariance
    }

    fn add_flow(&mut self, system: &System, model: &Model, flow: usize, diagonal: &mut [f64]) {
        let size = system.sizes[flow];
        let prior = model.of_mean(flow, size.packets);
        let effective = prior + model.squares[flow] * size.relative_error().powi(2);
        let members = system.members_of(flow);
        for member in &self.members[members.clone()] {
            diagonal[member.cell as usize] += effective * member.packets * member.packets;
        }
        for row in system.rows_of(flow).filter(|row| !system.is_whole(row)) {
            self.add_row(size.packets, model.within[flow], row, diagonal);
        }
        self.flows.push(Flow { end: members.end, prior, effective });
    }

    fn add_row(&mut self, size: f64, within: f64, row: Range<usize>, diagonal: &mut [f64]) {
        let members = &self.members[row.clone()];
        let held: f64 = members.iter().map(|member| member.packets).sum();
        let excess = within / held.max(size).max(1.0);
        for member in members {
            let cell = member.cell as usize;
            let shared = excess * member.packets * member.packets;
            self.noise[cell] += within * member.packets;
            // With one member in the row there is nothing to share but with itself.
            let target = if row.len() == 1 { &mut self.noise[cell] } else { &mut diagonal[cell] };
            *target -= shared;
        }
        if row.len() > 1 {
            self.spreads.push(Spread { start: row.start, end: row.end, excess });
        }
    }

    /// To unit variance in every cell.
    fn rescale(&mut self, diagonal: &[f64]) {
        let variances = diagonal.iter().zip(&self.noise).map(|(flows, noise)| flows + noise);
        let inverse = |variance: f64| if variance > 0.0 { variance.sqrt().recip() } else { 0.0 };
        self.scale = variances.map(inverse).collect();
        for (noise, scale) in self.noise.iter_mut().zip(&self.scale) {
            *noise = *noise * scale * scale + ROUNDING;
        }
        for member in &mut self.members {
            member.packets *= self.scale[member.cell as usize];
        }
    }

    /// What is close to it and easily inverted.
    pub(super) fn leaders(&self) -> Leaders {
        Leaders::new(self.scale.len(), &self.members, &self.flows)
    }

    /// The cells' sums without what is common to all flows.
    pub(super) fn centred_sums(&self, system: &System) -> Vec<[f64; 1]> {
        let mean_ns = self.mean_ns;
        let rest = |cell: Cell| cell.delay_sum_ns - mean_ns * cell.packets;
        system.cells.iter().map(|cell| [cell.map_or(0.0, rest)]).collect()
    }

    /// Sums of cells that were scaled and multiplied by the inverse, as if they had not been scaled.
    pub(super) fn unscaled<const LANES: usize>(
        &self,
        solved: &[[f64; LANES]],
    ) -> Vec<[f64; LANES]> {
        let cells = solved.iter().zip(&self.scale);
        cells.map(|(cell, scale)| cell.map(|lane| lane * scale)).collect()
    }

    /// Sums of cells to unit variance.
    pub(super) fn scaled<const LANES: usize>(
        &self,
        mut sums: Vec<[f64; LANES]>,
    ) -> Vec<[f64; LANES]> {
        for (sum, scale) in sums.iter_mut().zip(&self.scale) {
            *sum = sum.map(|lane| lane * scale);
        }
        sums
    }

    /// Of each flow, from cells' sums multiplied by the inverse: the mean relative to that of all flows.
    pub(super) fn predict<const LANES: usize>(&self, solved: &[[f64; LANES]]) -> Vec<[f64; LANES]> {
        let mut start = 0;
        let flows = self.flows.iter().map(|flow| {
            let mut sum = gather(&self.members[start..flow.end], solved);
            start = flow.end;
            sum.iter_mut().for_each(|lane| *lane *= flow.prior);
            sum
        });
        flows.collect()
    }

    /// The product with the scaled covariance.
    pub(super) fn apply<const LANES: usize>(
        &self,
        input: &[[f64; LANES]],
        output: &mut [[f64; LANES]],
    ) {
        for ((output, input), noise) in output.iter_mut().zip(input).zip(&self.noise) {
            *output = input.map(|lane| lane * noise);
        }
        let mut start = 0;
        for flow in &self.flows {
            let members = &self.members[start..flow.end];
            scatter(members, gather(members, input), flow.effective, output);
            start = flow.end;
        }
        for spread in &self.spreads {
            let members = &self.members[spread.start..spread.end];
            scatter(members, gather(members, input), -spread.excess, output);
        }
    }
}

fn scaled_members(system: &System, shares: &Shares) -> Vec<Scaled> {
    let members = system.members.iter().zip(&shares.packets);
    members.map(|(member, &packets)| Scaled { cell: member.cell, packets }).collect()
}

#[inline]
fn gather<const LANES: usize>(members: &[Scaled], cells: &[[f64; LANES]]) -> [f64; LANES] {
    let mut sum = [0.0; LANES];
    for member in members {
        let cell = &cells[member.cell as usize];
        for lane in 0..LANES {
            sum[lane] += member.packets * cell[lane];
        }
    }
    sum
}

#[inline]
fn scatter<const LANES: usize>(
    members: &[Scaled],
    sum: [f64; LANES],
    factor: f64,
    cells: &mut [[f64; LANES]],
) {
    for member in members {
        let cell = &mut cells[member.cell as usize];
        for lane in 0..LANES {
            cell[lane] += factor * member.packets * sum[lane];
        }
    }
}
