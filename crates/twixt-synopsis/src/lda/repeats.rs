//! Identical packets, found in the counts of cells.
//!
//! Packets with one digest fall into one cell: they are a cluster, not independent draws. A single loss
//! among them makes their cell useless, so that usable cells hold fewer of them than there are; and
//! if no one of them is lost, their cell weighs more than all others. Nothing at a point needs to
//! remember digests to notice. Digests that occur once fall into cells like drops of rain: counts of a
//! bank follow a Poisson distribution, and the packets that arrived in usable cells are, on average, as
//! many as those that arrived in any cell, whatever was lost and why. So a cell with far more packets
//! than the others of its bank holds identical ones, and where usable cells are emptier than others,
//! it is identical packets that are missing. That costs no memory, no byte and no instruction per
//! packet, both points agree on it, merging and moving packets change nothing, and epochs that were
//! recorded before it was known can be estimated with it.

use super::Lda;
use crate::sums::{Sums, Usable};
use crate::synopsis::Pair;

/// Cells of both points, sorted by what their counts say.
pub(super) struct Cells {
    /// Cell by cell, bank by bank, without those of many identical packets; `None` where packets were
    /// lost or added, or there were none.
    pub(super) ordinary: Vec<Option<Usable>>,
    /// Usable cells of many identical packets.
    pub(super) heavy: Vec<Usable>,
    /// Estimated number of packets that arrived and that no usable cell stands for.
    pub(super) left_out: f64,
    /// Whether ordinary cells hold identical packets too.
    pub(super) are_clustered: bool,
}

/// A bank of independent packets has a cell above its limit with a probability below this, times the
/// number of its cells.
const LIMIT_CHANCE: f64 = 1e-9;
/// Counts scatter more than those of independent packets by so many standard errors, or
/// fewer are sampled: one bank in three million by chance.
const SCATTER_ERRORS: f64 = 5.0;
/// Each round leaves out cells; the first few leave out nearly all that there are.
const ROUNDS_MAX: usize = 32;
/// Usable cells are emptier than others by so many standard errors.
const EMPTIER_ERRORS: f64 = 3.0;

impl Cells {
    pub(super) fn of(pair: Pair<'_, Lda>, reference_ns: i64) -> Self {
        let Pair { upstream, downstream } = pair;
        let rows = upstream.config.rows() as usize;
        let mut cells = Self {
            ordinary: Vec::with_capacity(upstream.cells.len()),
            heavy: Vec::new(),
            left_out: 0.0,
            are_clustered: false,
        };
        let (mut ordinary, mut identical) = (0.0, 0.0);
        for bank in upstream.cells.chunks(rows).zip(downstream.cells.chunks(rows)) {
            let counted = cells.add_bank(bank, reference_ns);
            ordinary += counted;
            identical += bank.0.iter().map(|cell| cell.packets as f64).sum::<f64>() - counted;
        }
        let others = upstream.totals.packets as f64 - identical;
        cells.left_out += unsampled(others, ordinary, upstream.config.sampling()[0]);
        cells
    }

    /// Adds the cells of a bank; returns how many packets were counted in the ordinary ones.
    fn add_bank(&mut self, (upstream, downstream): (&[Sums], &[Sums]), reference_ns: i64) -> f64 {
        let (mean, limit) = limit_of(|| upstream.iter().map(|cell| cell.packets as f64));
        let (mut all, mut usable) = (Counts::default(), Counts::default());
        let mut received = Counts::default();
        for (one, other) in upstream.iter().zip(downstream) {
            let found = Usable::of(one, other, reference_ns);
            if one.packets as f64 > limit {
                self.heavy.extend(found);
                if found.is_none() {
                    self.left_out += (other.packets as f64 - mean).max(0.0);
                }
                self.ordinary.push(None);
                continue;
            }
            all.add(one.packets as f64);
            received.add(other.packets as f64);
            if one.agrees_with(other) {
                usable.add(one.packets as f64);
            }
            self.ordinary.push(found);
        }
        if all.scatter_errors() > SCATTER_ERRORS {
            self.are_clustered = true;
            self.left_out += missing(&usable, &received);
        }
        all.sum
    }

    /// Packets in usable cells of many identical ones. Saturates: counts may be hostile.
    pub(super) fn heavy_packets(&self) -> u64 {
        self.heavy.iter().fold(0, |sum, cell| sum.saturating_add(cell.packets))
    }
}

/// Counts of cells, added up.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    cells: f64,
    sum: f64,
    squares: f64,
}

impl Counts {
    fn add(&mut self, count: f64) {
        self.cells += 1.0;
        self.sum += count;
        self.squares += count * count;
    }

    fn mean(&self) -> f64 {
        self.sum / self.cells.max(1.0)
    }

    /// Sum of squared distances from the mean.
    fn scatter(&self) -> f64 {
        (self.squares - self.sum * self.mean()).max(0.0)
    }

    /// By how many standard errors counts scatter more than those of independent packets: the
    /// index of dispersion, whose variance is that of a Poisson distribution's.
    fn scatter_errors(&self) -> f64 {
        let mean = self.mean();
        if mean == 0.0 {
            return 0.0;
        }
        (self.scatter() / mean - (self.cells - 1.0)) / (self.cells * (2.0 + 1.0 / mean)).sqrt()
    }
}

/// The mean of a bank's cells of independent packets, and what they do not exceed. The mean is that of
/// cells below the limit, so that a few of many packets do not raise it.
fn limit_of<I: Iterator<Item = f64>>(counts: impl Fn() -> I) -> (f64, f64) {
    let (mut mean, mut limit) = (0.0, f64::INFINITY);
    for _ in 0..ROUNDS_MAX {
        let mut below = Counts::default();
        counts().filter(|&count| count <= limit).for_each(|count| below.add(count));
        mean = below.mean();
        let next = poisson_limit(mean);
        if next >= limit {
            break;
        }
        limit = next;
    }
    (mean, limit)
}

/// A count that a Poisson distribution exceeds with a probability below [`LIMIT_CHANCE`], by
/// Chernoff's bound e^(n - mean) (mean / n)^n.
fn poisson_limit(mean: f64) -> f64 {
    if mean <= 0.0 {
        return 0.0;
    }
    let exponent = |count: f64| count - mean - count * (count / mean).ln();
    let (mut low, mut high) = (mean, 2.0 * mean + 64.0);
    // Halved until the difference is below one, or as near as numbers can be.
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        if exponent(middle) > LIMIT_CHANCE.ln() { low = middle } else { high = middle }
    }
    high
}

/// Packets that arrived and are missing from usable cells, since those are emptier than others.
fn missing(usable: &Counts, received: &Counts) -> f64 {
    if usable.cells < 2.0 || received.sum == 0.0 {
        return received.sum;
    }
    let error = (usable.scatter() / (usable.cells - 1.0) / usable.cells).sqrt();
    let emptier = received.mean() - usable.mean();
    if emptier > EMPTIER_ERRORS * error { emptier / received.mean() * received.sum } else { 0.0 }
}

/// Of packets that reach no bank, those that are more than chance explains: their digest is not sampled.
fn unsampled(packets: f64, counted: f64, sampled: f64) -> f64 {
    let expected = counted / sampled;
    let error = (counted * (1.0 - sampled)).sqrt() / sampled;
    let more = packets - expected;
    if sampled < 1.0 && more > SCATTER_ERRORS * error { more } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Poisson tails at the limit, summed up: below what the bound promises, and not far below.
    #[test]
    fn limits_are_beyond_chance_and_not_far() {
        for mean in [0.001_f64, 0.05, 1.0, 25.0, 400.0] {
            let limit = poisson_limit(mean);
            let tail = |above: f64| -> f64 {
                let term = |count: f64| {
                    let logarithms: f64 = (1..=count as u64).map(|one| (one as f64).ln()).sum();
                    (count * mean.ln() - mean - logarithms).exp()
                };
                (1..200).map(|step| term(above.floor() + f64::from(step))).sum()
            };
            assert!(tail(limit) < LIMIT_CHANCE, "{mean}: {limit} {}", tail(limit));
            assert!(tail(limit - 4.0 - 0.6 * mean.sqrt()) > LIMIT_CHANCE, "{mean}: {limit}");
        }
        assert_eq!(poisson_limit(0.0), 0.0);
    }

    #[test]
    fn a_cell_of_many_packets_does_not_raise_the_limit() {
        let mut counts = vec![25.0; 1023];
        let plain = limit_of(|| counts.iter().copied());
        counts.push(15_000.0);
        let (mean, limit) = limit_of(|| counts.iter().copied());
        assert_eq!((mean, limit), plain);
        assert!(limit < 90.0, "{limit}");
    }

    #[test]
    fn packets_that_no_bank_sampled_are_noticed() {
        assert_eq!(unsampled(1000.0, 1000.0, 1.0), 0.0);
        assert_eq!(unsampled(1000.0, 110.0, 0.1), 0.0);
        assert!((unsampled(30_000.0, 1500.0, 0.1) - 15_000.0).abs() < 1e-6);
    }
}
