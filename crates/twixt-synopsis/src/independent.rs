//! Counts of packets that fall into cells by their digest.
//!
//! Digests that occur once fall into cells like drops of rain: counts follow a Poisson distribution. Identical
//! packets have one digest and fall into one cell, so a cell with far more packets than others holds them.

/// Of cells of independent packets one is above the limit with a probability below this, times
/// their number, where nothing else is asked for.
pub(crate) const LIMIT_CHANCE: f64 = 1e-9;
/// Each round leaves out cells; the first few leave out nearly all that there are.
const ROUNDS_MAX: usize = 32;

/// Counts of cells, added up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) cells: f64,
    pub(crate) sum: f64,
    squares: f64,
}

impl Counts {
    pub(crate) fn add(&mut self, count: f64) {
        self.cells += 1.0;
        self.sum += count;
        self.squares += count * count;
    }

    pub(crate) fn mean(&self) -> f64 {
        self.sum / self.cells.max(1.0)
    }

    /// Sum of squared distances from the mean.
    pub(crate) fn scatter(&self) -> f64 {
        (self.squares - self.sum * self.mean()).max(0.0)
    }

    /// By how many standard errors counts scatter more than those of independent packets: the
    /// index of dispersion, whose variance is that of a Poisson distribution's.
    pub(crate) fn scatter_errors(&self) -> f64 {
        let mean = self.mean();
        if mean == 0.0 {
            return 0.0;
        }
        (self.scatter() / mean - (self.cells - 1.0)) / (self.cells * (2.0 + 1.0 / mean)).sqrt()
    }
}

/// The mean of cells of independent packets, and what each does not exceed but by that chance. The mean is that of
/// cells below the limit, so that a few of many packets do not raise it.
pub(crate) fn limit_of<I: Iterator<Item = f64>>(counts: impl Fn() -> I, chance: f64) -> (f64, f64) {
    let (mut mean, mut limit) = (0.0, f64::INFINITY);
    for _ in 0..ROUNDS_MAX {
        let mut below = Counts::default();
        counts().filter(|&count| count <= limit).for_each(|count| below.add(count));
        mean = below.mean();
        let next = poisson_limit(mean, chance);
        if next >= limit {
            break;
        }
        limit = next;
    }
    (mean, limit)
}

/// A count that a Poisson distribution exceeds with a probability below `chance`, by Chernoff's bound
/// e^(n - mean) (mean / n)^n.
pub(crate) fn poisson_limit(mean: f64, chance: f64) -> f64 {
    if mean <= 0.0 {
        return 0.0;
    }
    let exponent = |count: f64| count - mean - count * (count / mean).ln();
    let (mut low, mut high) = (mean, 2.0 * mean + 64.0);
    // Halved until the difference is below one, or as near as numbers can be.
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        if exponent(middle) > chance.ln() { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Poisson tails at the limit, summed up: below what the bound promises, and not far below.
    #[test]
    fn limits_are_beyond_chance_and_not_far() {
        for mean in [0.001_f64, 0.05, 1.0, 25.0, 400.0] {
            let limit = poisson_limit(mean, LIMIT_CHANCE);
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
        assert_eq!(poisson_limit(0.0, LIMIT_CHANCE), 0.0);
    }

    #[test]
    fn a_cell_of_many_packets_does_not_raise_the_limit() {
        let mut counts = vec![25.0; 1023];
        let plain = limit_of(|| counts.iter().copied(), LIMIT_CHANCE);
        counts.push(15_000.0);
        let (mean, limit) = limit_of(|| counts.iter().copied(), LIMIT_CHANCE);
        assert_eq!((mean, limit), plain);
        assert!(limit < 90.0, "{limit}");
    }
}
