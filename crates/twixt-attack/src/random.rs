//! Random numbers from a seed: xoshiro256++ by Blackman and Vigna, seeded with SplitMix64.
//!
//! Not that of `twixt-sim`: two generators that share their random numbers share their mistakes.

pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    /// Independent numbers for each list of parts, such as a cell and a seed.
    pub(crate) fn of(parts: &[u64]) -> Self {
        let mut mixed = 0x9e37_79b9_7f4a_7c15;
        for &part in parts {
            mixed = split_mix(&mut (mixed ^ part));
        }
        Self { state: std::array::from_fn(|_| split_mix(&mut mixed)) }
    }

    pub(crate) fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let drawn = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        drawn
    }

    /// Above 0, at most 1, so that its logarithm is finite.
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// From 0 to below `end`. The bias of the remainder is below 2^-40 for all that is asked here.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("below a usize")
    }

    /// Whether something of this probability happens.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        self.unit() <= probability
    }

    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.unit().ln()
    }

    /// At least `scale`, with a tail of this exponent.
    pub(crate) fn pareto(&mut self, shape: f64, scale: f64) -> f64 {
        scale * self.unit().powf(-1.0 / shape)
    }

    /// Fisher and Yates.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Means of 100 000 draws; a standard error is 0.0032 for the exponential, 0.0009 for the unit.
    #[test]
    fn draws_have_their_means() {
        let mut random = Random::of(&[1, 2]);
        let mut mean = |draw: fn(&mut Random) -> f64| {
            (0..100_000).map(|_| draw(&mut random)).sum::<f64>() / 100_000.0
        };
        let check = |drawn: f64, expected: f64| {
            assert!((drawn - expected).abs() < 0.02, "{drawn} for {expected}");
        };
        check(mean(Random::unit), 0.5);
        check(mean(|random| random.exponential(1.0)), 1.0);
        check(mean(|random| f64::from(u8::from(random.happens(0.3)))), 0.3);
        check(mean(|random| random.pareto(4.0, 0.75)), 1.0);
        check(mean(|random| random.below(3) as f64), 1.0);
    }

    #[test]
    fn parts_matter_and_repeat() {
        let first = |parts: &[u64]| Random::of(parts).next();
        assert_eq!(first(&[1, 2]), first(&[1, 2]));
        assert_ne!(first(&[1, 2]), first(&[2, 1]));
        assert_ne!(first(&[1]), first(&[1, 0]));
    }
}
