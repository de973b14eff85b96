//! Random numbers that are the same on every machine.
//!
//! One seed gives one independent stream per [`Purpose`]. Knows distributions, not what they are
//! used for.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// What a stream of random numbers is for. The numbers are part of what makes traces
/// reproducible: never reuse or change one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Purpose {
    FlowKey = 1,
    FlowSize = 2,
    Arrival = 3,
    PacketSize = 4,
    ForwardFlowDelay = 5,
    ForwardDelay = 6,
    ReturnFlowDelay = 7,
    ReturnDelay = 8,
    Loss = 9,
    Reorder = 10,
    Turnaround = 11,
    Identity = 12,
}

/// The random numbers for one purpose.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    generator: ChaCha8Rng,
    /// The second of a pair of normal deviates.
    spare: Option<f64>,
}

impl Stream {
    pub(crate) fn new(seed: u64, purpose: Purpose) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(purpose as u64);
        Self { generator, spare: None }
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// Uniform in [0, 1), 53 bits.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in (0, 1]: safe to take the logarithm of.
    pub(crate) fn positive_unit(&mut self) -> f64 {
        1.0 - self.unit()
    }

    /// Uniform in 0..bound; 0 for a bound of 0. The bias is below bound / 2^64.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Exponential with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -libm::log(self.positive_unit())
    }

    /// Normal with mean 0 and deviation 1, by Marsaglia's polar method: unlike Box and Muller's
    /// it needs no trigonometry.
    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * libm::log(square) / square).sqrt();
                self.spare = Some(y * factor);
                return x * factor;
            }
        }
    }

    /// Log-normal with the given median and deviation of the logarithm.
    pub(crate) fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        median * libm::exp(sigma * self.normal())
    }

    /// Geometric on 1, 2, 3, … with the given mean, which is at least 1. By inversion.
    pub(crate) fn geometric(&mut self, mean: f64) -> u64 {
        if mean <= 1.0 {
            return 1;
        }
        let failures = libm::log(self.positive_unit()) / libm::log1p(-1.0 / mean);
        failures.floor() as u64 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 100_000;

    /// Mean and variance lie within five standard errors of theory; `fourth` is the fourth
    /// central moment, which sets the standard error of the variance.
    #[track_caller]
    fn check(mut draw: impl FnMut(&mut Stream) -> f64, mean: f64, variance: f64, fourth: f64) {
        let mut stream = Stream::new(7, Purpose::Arrival);
        let values: Vec<f64> = (0..DRAWS).map(|_| draw(&mut stream)).collect();
        let n = DRAWS as f64;
        let found = values.iter().sum::<f64>() / n;
        assert!((found - mean).abs() <= 5.0 * (variance / n).sqrt(), "mean {found}, not {mean}");
        let spread = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
        let error = ((fourth - variance * variance) / n).sqrt();
        assert!((spread - variance).abs() <= 5.0 * error, "variance {spread}, not {variance}");
    }

    #[test]
    fn moments_are_those_of_theory() {
        check(Stream::unit, 0.5, 1.0 / 12.0, 1.0 / 80.0);
        check(Stream::exponential, 1.0, 1.0, 9.0);
        check(Stream::normal, 0.0, 1.0, 3.0);
        // Geometric on 1, 2, … with p = 1/8: variance q/p^2, excess kurtosis 6 + p^2/q.
        let (p, q) = (0.125, 0.875);
        let variance = q / (p * p);
        check(
            |stream| stream.geometric(8.0) as f64,
            8.0,
            variance,
            (9.0 + p * p / q) * variance * variance,
        );
    }

    #[test]
    fn bounds_hold() {
        let mut stream = Stream::new(7, Purpose::Loss);
        let seen: std::collections::BTreeSet<u64> = (0..1000).map(|_| stream.below(5)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(stream.below(0), 0);
        assert_eq!(stream.geometric(1.0), 1);
        assert!((0..1000).all(|_| stream.positive_unit() > 0.0));
    }

    #[test]
    fn purposes_and_seeds_have_streams_of_their_own() {
        let first = |seed, purpose| Stream::new(seed, purpose).bits();
        assert_eq!(first(1, Purpose::Loss), first(1, Purpose::Loss));
        assert_ne!(first(1, Purpose::Loss), first(2, Purpose::Loss));
        assert_ne!(first(1, Purpose::Loss), first(1, Purpose::Reorder));
    }
}
