//! Flows whose packets do not spread evenly over their cells.
//!
//! A packet's digest chooses its cell, so that identical packets (heartbeats, repeated queries) are all in one.
//! A cell with a clump of a large flow then seems to hold much more of all flows that share it, and the flow's
//! other cells less. So what a flow has in each of its cells is taken for a draw from a Gamma distribution around
//! an equal share, with the same shape for all flows: its inverse is the *clumping*, 0 if chance alone
//! spreads packets.

use super::unlisted::Unlisted;
use super::{ITERATIONS, Layout, Members, Size};

/// Clumping that is found in counts without any is below this many standard errors.
const ERRORS_MIN: f64 = 4.0;
/// Unlisted flows clump too: with more of their packets than this part of all there is no telling.
const UNLISTED_MAX: f64 = 0.005;
/// Rounds in which clumping and sizes settle.
const ROUNDS: usize = 3;

impl<L: Layout> Members<'_, L> {
    /// How much more cells vary than by chance, in squares of what flows are expected to have there.
    pub(super) fn clumping(&self, counts: &[f64], unlisted: &Unlisted, sizes: &[Size]) -> f64 {
        let strange: f64 = unlisted.expected(&self.kept).iter().sum();
        if self.config.spread() == 1 || strange > UNLISTED_MAX * counts.iter().sum::<f64>() {
            return 0.0;
        }
        let expected = self.expected(unlisted, sizes);
        let mut squares = vec![0.0; expected.len()];
        self.each(sizes, |cell, packets| squares[cell] += packets * packets);
        let (mut beyond, mut all, mut variance) = (0.0, 0.0, 0.0);
        for ((count, expected), square) in counts.iter().zip(&expected).zip(squares) {
            // Of a Poisson count, what follows has a variance of 2 + 1 / expected.
            let weight = expected / (2.0 * expected + 1.0);
            let square_of_expected = (expected * expected).max(f64::MIN_POSITIVE);
            beyond += weight * ((count - expected).powi(2) - expected) / square_of_expected;
            all += weight * square / square_of_expected;
            variance += weight;
        }
        if beyond > ERRORS_MIN * variance.sqrt() && all > 0.0 { beyond / all } else { 0.0 }
    }

    /// Fills in the sizes that are not known once more, now that flows are known to clump: expectation
    /// maximisation, with what each flow has in each of its cells as the unknowns.
    pub(super) fn believe_clumped(
        &self,
        counts: &[f64],
        unlisted: &Unlisted,
        sizes: &mut [Size],
        clumping: f64,
        least: impl Fn(&Size) -> f64,
    ) {
        let shape = clumping.recip();
        let most: Vec<f64> = self.flows().map(|cells| self.most(cells, counts)).collect();
        let per_flow = self.config.rows() * self.config.spread() as usize;
        let rates: f64 = self.config.sampling().iter().sum();
        let mut held = Vec::with_capacity(self.cells.len());
        self.each(sizes, |_, packets| held.push(packets));
        for _ in 0..ROUNDS * ITERATIONS {
            let mut sums = unlisted.expected(&self.kept);
            for (&cell, held) in self.cells.iter().zip(&held) {
                sums[cell as usize] += held;
            }
            let flows = held.chunks_exact_mut(per_flow).zip(self.flows());
            for ((size, (held, cells)), &most) in sizes.iter_mut().zip(flows).zip(&most) {
                let own = |(held, &cell): (&f64, &u32)| {
                    held * counts[cell as usize] / sums[cell as usize].max(1e-9)
                };
                let found: Vec<f64> = held.iter().zip(cells).map(own).collect();
                if !size.known {
                    let load = found.iter().sum::<f64>() / rates;
                    size.load = load.max(least(size)).min(most);
                }
                let rows = found.chunks_exact(self.config.spread() as usize);
                let rows = rows.zip(self.config.sampling()).flat_map(|(row, rate)| {
                    let even = size.load * rate / f64::from(self.config.spread());
                    row.iter().map(move |found| even * (found + shape) / (even + shape))
                });
                held.iter_mut().zip(rows).for_each(|(held, next)| *held = next);
            }
        }
    }

    /// Calls `visit` with each cell of each flow, and the packets that are expected there.
    fn each(&self, sizes: &[Size], mut visit: impl FnMut(usize, f64)) {
        let spread = 1.0 / f64::from(self.config.spread());
        for (size, cells) in sizes.iter().zip(self.flows()) {
            for (cells, rate) in self.rows(cells) {
                cells.iter().for_each(|&cell| visit(cell as usize, size.load * rate * spread));
            }
        }
    }
}
