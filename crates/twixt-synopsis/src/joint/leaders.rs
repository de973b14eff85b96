//! A close and cheap stand-in for the covariance, so that iterations are few.
//!
//! Sizes are heavy-tailed: most of what a cell varies by is one flow, its leader, and all cells of
//! one leader vary together. The stand-in keeps exactly that, the leader in the cells that it
//! leads, and takes the rest of each cell for its own: blocks of a diagonal plus one product of a
//! vector with itself, which Sherman and Morrison's formula inverts.

use super::covariance::{Flow, Scaled};

/// What a cell's rest is at least, relative to its variance. Smaller ones would be exact but cost
/// digits.
const SMALLEST_REST: f64 = 1e-7;

/// Applied as the inverse of the stand-in.
pub(super) struct Leaders {
    /// Inverse of each cell's rest.
    inverse_rest: Vec<f64>,
    /// Cells by leader.
    led: Vec<Led>,
    blocks: Vec<Block>,
}

/// A cell in its leader's block.
struct Led {
    cell: u32,
    /// What the leader's deviation adds to the cell, over the rest.
    pull: f64,
}

struct Block {
    end: usize,
    factor: f64,
}

impl Leaders {
    /// Of members whose cells are scaled to unit variance.
    pub(super) fn new(cells: usize, members: &[Scaled], flows: &[Flow]) -> Self {
        let best = best_of_cells(cells, members, flows);
        let rest = |&(_, variance): &(u32, f64)| (1.0 - variance).max(SMALLEST_REST).recip();
        let inverse_rest: Vec<f64> = best.iter().map(rest).collect();
        let (mut led, mut blocks) = (Vec::new(), Vec::new());
        let mut start = 0;
        for (index, flow) in flows.iter().enumerate() {
            let before = led.len();
            let mut total = 1.0;
            for member in &members[start..flow.end] {
                let cell = member.cell as usize;
                if best[cell].0 == index as u32 {
                    let deviation = flow.effective.sqrt() * member.packets;
                    let pull = deviation * inverse_rest[cell];
                    total += deviation * pull;
                    led.push(Led { cell: member.cell, pull });
                }
            }
            start = flow.end;
            if led.len() > before {
                blocks.push(Block { end: led.len(), factor: total.recip() });
            }
        }
        Self { inverse_rest, led, blocks }
    }

    /// The product with the inverse of the stand-in.
    pub(super) fn apply<const LANES: usize>(
        &self,
        input: &[[f64; LANES]],
        output: &mut [[f64; LANES]],
    ) {
        for ((output, input), inverse) in output.iter_mut().zip(input).zip(&self.inverse_rest) {
            *output = input.map(|lane| lane * inverse);
        }
        let mut start = 0;
        for block in &self.blocks {
            let mut sum = [0.0; LANES];
            for led in &self.led[start..block.end] {
                let input = &input[led.cell as usize];
                for lane in 0..LANES {
                    sum[lane] += led.pull * input[lane];
                }
            }
            for led in &self.led[start..block.end] {
                let output = &mut output[led.cell as usize];
                for lane in 0..LANES {
                    output[lane] -= block.factor * led.pull * sum[lane];
                }
            }
            start = block.end;
        }
    }
}

/// Per cell, the flow that contributes most to its variance, and how much.
fn best_of_cells(cells: usize, members: &[Scaled], flows: &[Flow]) -> Vec<(u32, f64)> {
    let mut best = vec![(u32::MAX, 0.0); cells];
    let mut start = 0;
    for (index, flow) in flows.iter().enumerate() {
        for member in &members[start..flow.end] {
            let variance = flow.effective * member.packets * member.packets;
            let best = &mut best[member.cell as usize];
            if variance > best.1 {
                *best = (index as u32, variance);
            }
        }
        start = flow.end;
    }
    best
}
