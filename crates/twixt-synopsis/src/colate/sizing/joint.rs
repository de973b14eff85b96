//! What solving for all flows at once leaves unknown.
//!
//! A flow of k packets has about k/m of them in each of its m counters. What else is in a counter
//! is noise to it: packets of other flows vary around their flows' means, how many of each there
//! are is chance, and their means are known only so well. The last of these is what the solver
//! leaves over, which depends in turn on the noise: the two are found together, as in the analysis
//! of iterative decoders, for an endless table of the same load.
//!
//! Some counters have more noise than others, and the solver listens to those that have less. With
//! q the variance of a flow's own packets in a counter and R that of the others there, its total is
//! known up to m q A / (1 - A), where A is the mean of R / (q + R) over counters: m R if all are
//! alike. R is a sum over as many flows as happen to be there, so that the mean of q / (q + R) is
//! the integral of q exp(-q s) times the Laplace transform of R.
//!
//! Sizes are taken to be known, and no counter to be lost.

use super::ColateTraffic;

/// Steps through the sizes of flows, each a bit larger than the one before.
const SIZE_STEPS: u32 = 32;
/// Rounds end when the noise has settled, or after this many.
const NOISE_ROUNDS: usize = 40;
const SETTLED: f64 = 1e-3;
/// Where the transform is known: arguments exp(`TRANSFORM_FROM`) and upwards, in equal steps of
/// their logarithm. A counter has from a thousandth of a packet to 2^32 of them.
const TRANSFORM_FROM: f64 = -24.0;
const TRANSFORM_STEP: f64 = 0.5;
const TRANSFORM_STEPS: u32 = 76;
/// Flows of which fewer packets than this are in a counter have a number there that varies;
/// so many of them are looked at.
const FEW_PACKETS: f64 = 4.0;
const FEW_PACKETS_MAX: u32 = 14;

/// The noise in counters, for flows of all sizes.
#[derive(Clone, Debug)]
pub(super) struct Noise {
    per_flow: f64,
    /// Variance of flows' means.
    between: f64,
    /// Variance of single packets.
    single: f64,
    /// Arguments, and the mean of exp(- argument times noise) over counters.
    transform: Vec<(f64, f64)>,
}

impl Noise {
    /// With so many packets in so many counters, `per_flow` of them for each flow.
    pub(super) fn of(traffic: &ColateTraffic, counters: f64, per_flow: f64, packets: f64) -> Self {
        let (between, single) = (traffic.spread * traffic.spread, traffic.noise_of_one());
        let mut noise = Self { per_flow, between, single, transform: Vec::new() };
        let mut classes = traffic.classes(packets, per_flow / counters);
        for _ in 0..NOISE_ROUNDS {
            noise.transform = noise.transformed(&classes);
            let mut change = 0.0_f64;
            for class in &mut classes {
                let unknown = noise.unknown(class.size);
                change = change.max((class.unknown - unknown).abs() / class.unknown.max(1e-300));
                class.unknown = unknown;
            }
            if change < SETTLED {
                break;
            }
        }
        noise
    }

    /// What the mean of a flow is off by, relative to that of all, at one standard deviation.
    pub(super) fn error(&self, size: f64) -> f64 {
        self.unknown(size).sqrt()
    }

    /// The same for each of some flows of that size, which happen to have other neighbours: as many
    /// as there are `quantiles` of the normal distribution. What a flow's counters tell is a mean over
    /// them; its variance is that of one counter over their number.
    pub(super) fn errors(&self, size: f64, quantiles: &[f64]) -> Vec<f64> {
        let own = size / self.per_flow * self.single;
        let (clear, square) = (self.clear_share(own), self.clear_square(own));
        let variance = (square - clear * clear).max(0.0) / self.per_flow;
        // Of (1 - clear) / clear, relative to itself.
        let scatter = (variance.sqrt() / (clear * (1.0 - clear)).max(1e-300)).powi(2).ln_1p();
        let noise = (1.0 - clear) / clear;
        let error = |quantile: &f64| {
            let noise = noise * (quantile * scatter.sqrt() - scatter / 2.0).exp();
            self.unknown_with(size, noise).sqrt()
        };
        quantiles.iter().map(error).collect()
    }

    fn unknown(&self, size: f64) -> f64 {
        let clear = self.clear_share(size / self.per_flow * self.single);
        self.unknown_with(size, (1.0 - clear) / clear)
    }

    /// With so much noise in its counters, by the variance of its own packets there.
    fn unknown_with(&self, size: f64, noise: f64) -> f64 {
        if self.between <= 0.0 {
            return 0.0;
        }
        let total = size * self.single * noise;
        1.0 / (1.0 / self.between + size * size / total.max(1e-300))
    }

    /// The mean of q / (q + R) over counters.
    fn clear_share(&self, own: f64) -> f64 {
        self.weighted(|argument| own * argument * (-own * argument).exp())
    }

    /// The mean of its square.
    fn clear_square(&self, own: f64) -> f64 {
        self.weighted(|argument| (own * argument).powi(2) * (-own * argument).exp())
    }

    /// The mean of the transform with so much weight at each argument.
    fn weighted(&self, weight: impl Fn(f64) -> f64) -> f64 {
        let sums = self.transform.iter().fold((0.0, 0.0), |(all, sum), &(argument, mean)| {
            (all + weight(argument), sum + weight(argument) * mean)
        });
        (sums.1 / sums.0).clamp(1e-12, 1.0)
    }

    fn transformed(&self, classes: &[Class]) -> Vec<(f64, f64)> {
        let at = |step: u32| {
            let argument = (TRANSFORM_FROM + f64::from(step) * TRANSFORM_STEP).exp();
            let lacking: f64 = classes
                .iter()
                .map(|class| class.per_counter * (1.0 - self.transform_of(class, argument)))
                .sum();
            (argument, (-lacking).exp())
        };
        (0..TRANSFORM_STEPS).map(at).collect()
    }

    /// The mean of exp(- argument times noise), of one flow in one of its counters.
    fn transform_of(&self, class: &Class, argument: f64) -> f64 {
        let of = |packets: f64| {
            let noise = packets * self.single + packets * packets * class.unknown;
            (-argument * noise).exp()
        };
        let expected = class.size / self.per_flow;
        if expected >= FEW_PACKETS {
            return of(expected);
        }
        let mut chance = (-expected).exp();
        let mut mean = 0.0;
        for packets in 0..FEW_PACKETS_MAX {
            mean += chance * of(f64::from(packets));
            chance *= expected / f64::from(packets + 1);
        }
        mean
    }
}

/// Flows of about one size.
struct Class {
    size: f64,
    /// How many have a counter among theirs.
    per_counter: f64,
    /// Variance of what their means are off by.
    unknown: f64,
}

impl ColateTraffic {
    /// Equal steps of the sizes' logarithm have equal shares of the packets.
    fn classes(&self, packets: f64, share_of_counters: f64) -> Vec<Class> {
        let (steps, ratio) = (f64::from(SIZE_STEPS), self.largest / self.least);
        let class = |step: u32| {
            let size = self.least * ratio.powf((f64::from(step) + 0.5) / steps);
            let per_counter = packets / steps / size * share_of_counters;
            Class { size, per_counter, unknown: self.spread * self.spread }
        };
        (0..SIZE_STEPS).map(class).collect()
    }
}
