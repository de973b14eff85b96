//! Conjugate gradients, for several right-hand sides at once: the indices of members, which cost
//! most of the time, are then read once for all of them.
//!
//! Hestenes, Stiefel: "Methods of Conjugate Gradients for Solving Linear Systems", 1952.

use super::covariance::Covariance;
use super::leaders::Leaders;
use super::{Options, System};

/// Solves equations with a covariance.
pub(super) struct Solver<'a> {
    pub(super) covariance: &'a Covariance,
    pub(super) leaders: Leaders,
    pub(super) options: &'a Options,
}

impl<'a> Solver<'a> {
    pub(super) fn new(covariance: &'a Covariance, options: &'a Options) -> Self {
        Self { covariance, leaders: covariance.leaders(), options }
    }

    /// The inverse of the covariance times the sums of the cells, both scaled to unit variance.
    pub(super) fn solve(&self, system: &System) -> Vec<[f64; 1]> {
        let sums = self.covariance.scaled(self.covariance.centred_sums(system));
        // More than made-up systems get: what iterations leave over depends on the sums, and
        // intervals should rather be too long than too short.
        self.invert(sums, self.options.iterations.saturating_mul(2))
    }

    /// The inverse of the covariance times `rest`. Lanes that have come close enough stand still.
    pub(super) fn invert<const LANES: usize>(
        &self,
        mut rest: Vec<[f64; LANES]>,
        iterations: usize,
    ) -> Vec<[f64; LANES]> {
        let mut solved = vec![[0.0; LANES]; rest.len()];
        let mut product = vec![[0.0; LANES]; rest.len()];
        let mut nearer = vec![[0.0; LANES]; rest.len()];
        self.leaders.apply(&rest, &mut nearer);
        let mut direction = nearer.clone();
        let mut square = dot(&rest, &nearer);
        let goal = square.map(|square| square * self.options.tolerance.powi(2));
        for _ in 0..iterations {
            if (0..LANES).all(|lane| square[lane] <= goal[lane]) {
                break;
            }
            self.covariance.apply(&direction, &mut product);
            let curvature = dot(&direction, &product);
            let step: [f64; LANES] = std::array::from_fn(|lane| {
                let moves = square[lane] > goal[lane] && curvature[lane] > 0.0;
                if moves { square[lane] / curvature[lane] } else { 0.0 }
            });
            add(&mut solved, step, &direction);
            add(&mut rest, step.map(|lane| -lane), &product);
            self.leaders.apply(&rest, &mut nearer);
            let next = dot(&rest, &nearer);
            let turn = std::array::from_fn(|lane| {
                if square[lane] > 0.0 { next[lane] / square[lane] } else { 0.0 }
            });
            turn_towards(&mut direction, turn, &nearer);
            square = next;
        }
        solved
    }
}

fn dot<const LANES: usize>(one: &[[f64; LANES]], other: &[[f64; LANES]]) -> [f64; LANES] {
    let mut sum = [0.0; LANES];
    for (one, other) in one.iter().zip(other) {
        for lane in 0..LANES {
            sum[lane] += one[lane] * other[lane];
        }
    }
    sum
}

fn add<const LANES: usize>(
    target: &mut [[f64; LANES]],
    factor: [f64; LANES],
    source: &[[f64; LANES]],
) {
    for (target, source) in target.iter_mut().zip(source) {
        for lane in 0..LANES {
            target[lane] += factor[lane] * source[lane];
        }
    }
}

/// `direction = rest + turn * direction`
fn turn_towards<const LANES: usize>(
    direction: &mut [[f64; LANES]],
    turn: [f64; LANES],
    rest: &[[f64; LANES]],
) {
    for (direction, rest) in direction.iter_mut().zip(rest) {
        for lane in 0..LANES {
            direction[lane] = rest[lane] + turn[lane] * direction[lane];
        }
    }
}
