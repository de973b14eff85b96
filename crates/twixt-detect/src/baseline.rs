//! How a series was before, and how likely an epoch is if nothing changed.

use std::collections::VecDeque;

use statrs::function::beta::beta_reg;
use twixt_model::Estimate;

/// What is known of one epoch of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EpochEvidence {
    /// Mean delay; `None` where nothing is known of it.
    pub mean_ns: Option<f64>,
    /// Standard error of that mean, as far as it comes from the algorithm.
    pub error_ns: Option<f64>,
    /// Packets that upstream counted.
    pub packets: u64,
    /// Packets that the network lost; `None` where that is not exactly known.
    pub lost: Option<u64>,
}

/// Half the width of a 95 % interval in standard errors, if the error is normal.
const HALF_WIDTH_ERRORS: f64 = 1.96;
/// An estimate is taken to be too large by so many of its standard errors: a normal error exceeds
/// that once in 10⁹ epochs, which is little beside what alarms are allowed.
const ERRORS_ALLOWED: f64 = 6.0;

impl EpochEvidence {
    /// What an estimate says of its epoch.
    #[must_use]
    pub fn of(estimate: &Estimate) -> Self {
        let delay = estimate.delay;
        Self {
            mean_ns: delay.map(|delay| delay.mean_ns()),
            error_ns: delay.and_then(|delay| delay.half_width_ns).map(|ns| ns / HALF_WIDTH_ERRORS),
            packets: estimate.evidence.packets,
            lost: estimate.evidence.lost,
        }
    }

    /// What the mean is at least.
    fn mean_at_least_ns(&self) -> Option<f64> {
        Some(self.mean_ns? - ERRORS_ALLOWED * self.error_ns?)
    }
}

/// Epochs of a series without a change: the newest, so many at most.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    epochs: VecDeque<EpochEvidence>, // at most `epochs_max`
    epochs_max: usize,
}

impl Baseline {
    /// Nothing known yet. Of more epochs than these the oldest is forgotten.
    #[must_use]
    pub const fn new(epochs_max: usize) -> Self {
        Self { epochs: VecDeque::new(), epochs_max }
    }

    /// Adds an epoch.
    pub fn add(&mut self, epoch: EpochEvidence) {
        self.epochs.push_back(epoch);
        while self.epochs.len() > self.epochs_max {
            self.epochs.pop_front();
        }
    }

    /// Epochs that it rests on.
    #[must_use]
    pub fn epochs(&self) -> usize {
        self.epochs.len()
    }

    /// Mean delay of these epochs; `None` if it is not known of any.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        let means: Vec<f64> = self.means_ns().collect();
        (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
    }

    /// Share of the packets that was lost in these epochs; `None` if it is not known of any.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        let (packets, lost) = self
            .losses()
            .fold((0.0, 0.0), |(all, gone), (packets, lost)| (all + packets, gone + lost));
        (packets > 0.0).then(|| lost / packets)
    }

    /// How likely a mean delay at least as large is if nothing changed; `None` if too little is known.
    ///
    /// With n earlier means x₁ … xₙ of a shifted exponential distribution, smallest m, and one more, x:
    /// P(x > m) = n / (n + 1), and beyond m the excess x − m is exponential and independent of
    /// S = Σ (xᵢ − m), which is the sum of n − 1 exponential variables of the same scale. So
    /// P(x − m > t S) = n / (n + 1) · (1 + t)^−(n − 1).
    #[must_use]
    pub fn delay_probability(&self, epoch: &EpochEvidence) -> Option<f64> {
        let now_ns = epoch.mean_at_least_ns()?;
        let smallest_ns = self.means_ns().fold(f64::INFINITY, f64::min);
        let spread_ns: f64 = self.means_ns().map(|mean_ns| mean_ns - smallest_ns).sum();
        // Without any spread there is no scale to judge by.
        if spread_ns <= 0.0 {
            return None;
        }
        let (excess_ns, count) = (now_ns - smallest_ns, self.means_ns().count() as f64);
        let share = count / (count + 1.0);
        let beyond = || share * (1.0 + excess_ns / spread_ns).powf(1.0 - count);
        Some(if excess_ns > 0.0 { beyond() } else { 1.0 })
    }

    /// How likely a loss of at least as many packets is if nothing changed; `None` if too little is known.
    ///
    /// Of all packets that were lost in n packets before and now, each is one of the newest epoch with
    /// probability q = packets / (packets + n) if the rate is the same: P(X ≥ x) is the tail of a
    /// binomial distribution, which is a regularised incomplete beta function.
    #[must_use]
    pub fn loss_probability(&self, epoch: &EpochEvidence) -> Option<f64> {
        let now = epoch.lost? as f64;
        let (packets, lost) = self
            .losses()
            .fold((0.0, 0.0), |(all, gone), (packets, lost)| (all + packets, gone + lost));
        if packets == 0.0 || epoch.packets == 0 {
            return None;
        }
        let dispersion = self.dispersion(packets, lost);
        let (now, before) = (now / dispersion, lost / dispersion);
        let share = epoch.packets as f64 / (epoch.packets as f64 + packets);
        Some(if now > 0.0 { beta_reg(now, before + 1.0, share) } else { 1.0 })
    }

    /// How many times as much as independent losses the losses of single epochs vary; never less than 1.
    fn dispersion(&self, packets: f64, lost: f64) -> f64 {
        let epochs = self.losses().count() as f64;
        if epochs < 2.0 || lost == 0.0 {
            return 1.0;
        }
        let deviations = self.losses().filter(|(of, _)| *of > 0.0).map(|(of, lost_of)| {
            let expected = of * lost / packets;
            (lost_of - expected).powi(2) / expected
        });
        (deviations.sum::<f64>() / (epochs - 1.0)).max(1.0)
    }

    fn means_ns(&self) -> impl Iterator<Item = f64> + '_ {
        self.epochs.iter().filter_map(|epoch| epoch.mean_ns)
    }

    /// Packets and lost packets of every epoch of which both are known.
    fn losses(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let known = |epoch: &EpochEvidence| Some((epoch.packets as f64, epoch.lost? as f64));
        self.epochs.iter().filter_map(known)
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::{Rng, SeedableRng};
    use twixt_testing::check_coverage;

    use super::*;

    const SEED: u64 = 20;

    fn epoch(mean_ns: f64) -> EpochEvidence {
        EpochEvidence { mean_ns: Some(mean_ns), error_ns: Some(0.0), ..EpochEvidence::default() }
    }

    fn losing(packets: u64, lost: u64) -> EpochEvidence {
        EpochEvidence { packets, lost: Some(lost), ..EpochEvidence::default() }
    }

    fn baseline(epochs: impl IntoIterator<Item = EpochEvidence>) -> Baseline {
        let mut baseline = Baseline::new(100);
        epochs.into_iter().for_each(|epoch| baseline.add(epoch));
        baseline
    }

    fn unit(random: &mut ChaCha8Rng) -> f64 {
        (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(random: &mut ChaCha8Rng) -> f64 {
        -(1.0 - unit(random)).ln()
    }

    /// In how many of 20 000 cases the probability of an epoch without a change is above `level`.
    fn above(level: f64, mut draw: impl FnMut(&mut ChaCha8Rng) -> f64) -> (u64, u64) {
        let mut random = ChaCha8Rng::seed_from_u64(SEED);
        let cases = 20_000;
        let held = (0..cases).filter(|_| {
            let past = baseline((0..15).map(|_| epoch(draw(&mut random))));
            past.delay_probability(&epoch(draw(&mut random))).unwrap() > level
        });
        (held.count() as u64, cases)
    }

    #[test]
    fn the_probability_is_exact_for_exponential_means() {
        for level in [0.1, 0.01, 0.001] {
            // Any scale, any offset.
            let (held, all) = above(level, |random| 1e12 + 300.0 * exponential(random));
            check_coverage("exponential", held, all, 1.0 - level);
            let too_many = 5.0 * (level * (1.0 - level) * all as f64).sqrt();
            let alarms = (all - held) as f64;
            assert!((alarms - level * all as f64).abs() < too_many, "{alarms} at {level}");
        }
    }

    #[test]
    fn lighter_tails_raise_fewer_alarms() {
        let sum = |random: &mut ChaCha8Rng, of: usize| -> f64 {
            (0..of).map(|_| exponential(random)).sum()
        };
        for level in [0.01, 0.001] {
            for of in [2, 10, 100] {
                let (held, all) = above(level, |random| sum(random, of));
                assert!((all - held) as f64 <= level * all as f64, "{of}: {held} of {all}");
            }
            let (held, all) = above(level, unit);
            assert!((all - held) as f64 <= level * all as f64, "uniform: {held} of {all}");
        }
    }

    #[test]
    fn a_change_far_beyond_the_past_is_certain() {
        let past = baseline((0..20).map(|number| epoch(5e6 + 1e4 * f64::from(number))));
        assert!(past.delay_probability(&epoch(4e6)).unwrap() == 1.0);
        assert!(past.delay_probability(&epoch(5.3e6)).unwrap() > 0.01);
        assert!(past.delay_probability(&epoch(40e6)).unwrap() < 1e-20);
        // The same far shift, but it may be an error of the algorithm.
        let unsure = EpochEvidence { error_ns: Some(6e6), ..epoch(40e6) };
        assert_eq!(past.delay_probability(&unsure), Some(1.0));
        let unknown = EpochEvidence { error_ns: None, ..epoch(40e6) };
        assert_eq!(past.delay_probability(&unknown), None);
        // One epoch, or epochs that do not differ, tell no scale.
        assert_eq!(baseline([epoch(1.0)]).delay_probability(&epoch(2.0)), None);
        assert_eq!(baseline([epoch(1.0); 9]).delay_probability(&epoch(2.0)), None);
    }

    /// By hand: of 2 + 8 lost packets, each is of the newest epoch with probability 1 / 10.
    #[test]
    fn the_probability_of_loss_is_that_of_a_binomial_tail() {
        let calm = (0..9).map(|number| losing(100, u64::from(number < 8)));
        let past = baseline(calm);
        // P(X ≥ 2) with 10 trials of 0.1: 1 − 0.9¹⁰ − 10 · 0.1 · 0.9⁹.
        let expected = 1.0 - 0.9_f64.powi(10) - 0.9_f64.powi(9);
        let found = past.loss_probability(&losing(100, 2)).unwrap();
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        assert_eq!(past.loss_probability(&losing(100, 0)), Some(1.0));
        assert!(past.loss_probability(&losing(100, 30)).unwrap() < 1e-18);
        assert_eq!(past.loss_probability(&losing(0, 0)), None);
        assert_eq!(past.loss_probability(&epoch(1.0)), None);
    }

    /// Losses come ten at a time: an epoch with twenty is nothing new.
    #[test]
    fn bursts_that_were_there_before_are_no_change() {
        let bursts = (0..40).map(|number| losing(1_000, if number % 5 == 0 { 10 } else { 0 }));
        let past = baseline(bursts);
        let single = baseline((0..40).map(|_| losing(1_000, 2)));
        let (bursty, steady) = (
            past.loss_probability(&losing(1_000, 20)).unwrap(),
            single.loss_probability(&losing(1_000, 20)).unwrap(),
        );
        assert!(bursty > 1e-3 && steady < 1e-10, "{bursty} {steady}");
    }

    #[test]
    fn independent_losses_raise_no_more_alarms_than_stated() {
        let mut random = ChaCha8Rng::seed_from_u64(SEED);
        let mut lost_of = |packets: u64| {
            losing(packets, (0..packets).filter(|_| unit(&mut random) < 0.01).count() as u64)
        };
        let (level, all) = (0.01, 4_000);
        let alarms = (0..all).filter(|_| {
            let past = baseline((0..12).map(|_| lost_of(100)));
            past.loss_probability(&lost_of(100)).unwrap() <= level
        });
        let alarms = alarms.count() as u64;
        // Counts are whole, so that the true level is below the nominal one.
        check_coverage("losses", all - alarms, all, 1.0 - level);
    }

    #[test]
    fn the_oldest_epochs_are_forgotten() {
        let mut past = Baseline::new(3);
        (0..10).for_each(|number| past.add(epoch(f64::from(number))));
        assert_eq!((past.epochs(), past.mean_ns()), (3, Some(8.0)));
        assert_eq!(Baseline::new(3).mean_ns(), None);
        assert_eq!(baseline([losing(100, 2), losing(100, 0)]).loss(), Some(0.01));
    }
}
