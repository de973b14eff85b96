//! The same prediction with every matrix written out.

use crate::joint::model::Model;
use crate::joint::shares::Shares;
use crate::joint::variance::Variances;
use crate::joint::{Cell, Options, Size, System};

/// Means of all flows by Gaussian elimination.
fn predict(system: &System) -> Vec<f64> {
    let shares = Shares::of(system);
    let variances = Variances::fit(system, &shares);
    let variances = Model::start(system, &shares, variances).common;
    let cells = system.cells.len();
    let mut matrix = vec![vec![0.0; cells + 1]; cells];
    for (cell, own) in shares.own_variances(variances).enumerate() {
        let Cell { packets, delay_sum_ns, .. } = system.cells[cell].unwrap();
        matrix[cell][cell] += own;
        matrix[cell][cells] = delay_sum_ns - variances.mean_ns * packets;
    }
    for flow in 0..system.sizes.len() {
        add_flow(system, &shares, variances, flow, &mut matrix);
    }
    let solved = eliminate(matrix);
    let mean = |flow: usize| {
        let members = system
            .members_of(flow)
            .map(|member| shares.packets[member] * solved[system.members[member].cell as usize]);
        let prior = variances.between + variances.within / system.sizes[flow].packets;
        variances.mean_ns + prior * members.sum::<f64>()
    };
    (0..system.sizes.len()).map(mean).collect()
}

fn add_flow(
    system: &System,
    shares: &Shares,
    variances: Variances,
    flow: usize,
    matrix: &mut [Vec<f64>],
) {
    let Size { packets, error, .. } = system.sizes[flow];
    let Variances { between, within, .. } = variances;
    for one in system.members_of(flow) {
        let held =
            system.members_of(flow).filter(|&it| system.members[it].row == system.members[one].row);
        let total = held.map(|member| shares.packets[member]).sum::<f64>().max(packets);
        for other in system.members_of(flow) {
            let [(first, x), (second, y)] =
                [one, other].map(|index| (system.members[index], shares.packets[index]));
            let entry = &mut matrix[first.cell as usize][second.cell as usize];
            *entry += x * y * (between * (1.0 + (error / packets).powi(2)) + within / packets);
            if first.share == 1.0 {
                continue;
            }
            if first.row == second.row {
                *entry -= within * x * y / total;
            }
            if one == other {
                *entry += within * x;
            }
        }
    }
}

/// Solves a square system whose right-hand side is the last column.
fn eliminate(mut matrix: Vec<Vec<f64>>) -> Vec<f64> {
    let size = matrix.len();
    for pivot in 0..size {
        let best = (pivot..size)
            .max_by(|&one, &other| matrix[one][pivot].abs().total_cmp(&matrix[other][pivot].abs()))
            .unwrap();
        matrix.swap(pivot, best);
        let row = matrix[pivot].clone();
        for (index, other) in matrix.iter_mut().enumerate() {
            let factor = other[pivot] / row[pivot];
            if index != pivot && factor != 0.0 {
                other.iter_mut().zip(&row).for_each(|(value, pivot)| *value -= factor * pivot);
            }
        }
    }
    (0..size).map(|index| matrix[index][size] / matrix[index][index]).collect()
}

/// A small system of two rows: one puts a flow into one cell, one spreads it over three.
fn small(seed: u64) -> System {
    let mut state = seed;
    let mut random = |limit: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let cell = |row, packets: u64, sum: u64| {
        Some(Cell { row, packets: packets as f64, delay_sum_ns: sum as f64 - 20_000.0 })
    };
    let cells = (0..24).map(|index| cell(index / 12, 20 + random(40), random(50_000))).collect();
    let mut system = System::new(cells);
    for _ in 0..16 {
        let (packets, error) = (1.0 + random(30) as f64, random(2) as f64);
        let size = Size { packets, error, doubt: error };
        let (home, start) = (random(12) as usize, random(10) as usize);
        let spread = (0..3).map(|offset| (12 + start + offset, 1.0 / 3.0));
        system.add_flow(size, spread.chain([(home, 1.0)]));
    }
    system
}

#[test]
fn agrees_with_elimination() {
    for seed in 0..50 {
        let system = small(seed);
        let options =
            Options { tolerance: 1e-12, iterations: 500, rounds: 0, ..Options::default() };
        for (mean, solution) in predict(&system).into_iter().zip(system.solve(&options)) {
            let difference = solution.unwrap().mean_offset_ns - mean;
            assert!(difference.abs() <= 1e-6 * mean.abs().max(1.0), "seed {seed}: {difference}");
        }
    }
}
