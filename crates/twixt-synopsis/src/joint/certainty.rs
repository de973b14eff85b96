//! Rough variances of each flow's mean and of each cell's sum, without solving anything.
//!
//! Belief propagation, of variances only: a cell passes on to a flow what its other flows leave
//! unknown, a flow passes on to a cell what its other cells leave unknown. That is exact where no
//! two flows meet twice, and in hashed cells most do not. It only decides on weights; intervals come
//! from made-up systems.

use super::System;
use super::model::{Model, spread_members};
use super::shares::Shares;

/// Rounds of passing on. Each makes variances smaller; few are on the safe side.
const ROUNDS: usize = 8;
/// What other flows leave unknown of a cell is at least this part of its variance: less is rounding.
const SMALLEST_REST: f64 = 1e-9;

pub(super) struct Certainty {
    /// Variance of what each flow's mean is off by.
    pub(super) of_flows: Vec<f64>,
    /// Variance of each cell's sum, given all other cells.
    pub(super) of_cells: Vec<f64>,
}

impl Certainty {
    pub(super) fn of(system: &System, shares: &Shares, model: &Model) -> Self {
        let noise = noise(system, shares, model);
        let flows = system.sizes.len();
        let prior = |flow: usize| model.of_mean(flow, system.sizes[flow].packets);
        let mut of_flows: Vec<f64> = (0..flows).map(prior).collect();
        // What a flow's other cells leave unknown of it, per member.
        let mut elsewhere = vec![0.0; system.members.len()];
        for (flow, &variance) in of_flows.iter().enumerate() {
            system.members_of(flow).for_each(|index| elsewhere[index] = variance);
        }
        let mut of_cells = sums(system, shares, &noise, &elsewhere);
        let mut passed = Vec::new();
        for _ in 0..ROUNDS {
            for flow in (0..flows).filter(|&flow| prior(flow) > 0.0) {
                passed.clear();
                passed.extend(system.members_of(flow).map(|index| {
                    let square = shares.packets[index].powi(2);
                    let cell = of_cells[system.members[index].cell as usize];
                    let others = cell - square * elsewhere[index];
                    square / others.max(SMALLEST_REST * cell).max(f64::MIN_POSITIVE)
                }));
                let least = prior(flow).recip();
                let precision = least + passed.iter().sum::<f64>();
                of_flows[flow] = precision.recip();
                for (index, passed) in system.members_of(flow).zip(&passed) {
                    elsewhere[index] = (precision - passed).max(least).recip();
                }
            }
            of_cells = sums(system, shares, &noise, &elsewhere);
        }
        Self { of_flows, of_cells }
    }
}

/// Of each cell, what is not the means of its flows.
fn noise(system: &System, shares: &Shares, model: &Model) -> Vec<f64> {
    let mut noise = model.own.clone();
    for flow in 0..system.sizes.len() {
        for (member, packets, held) in spread_members(system, shares, flow) {
            noise[member.cell as usize] += model.jitter(flow, packets, held);
        }
    }
    noise
}

fn sums(system: &System, shares: &Shares, noise: &[f64], of_members: &[f64]) -> Vec<f64> {
    let mut sums = noise.to_vec();
    for ((member, packets), variance) in system.members.iter().zip(&shares.packets).zip(of_members)
    {
        sums[member.cell as usize] += packets * packets * variance;
    }
    sums
}
