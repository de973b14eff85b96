//! How large a fridge for how small an error.

use super::config::{bytes_of, within};
use super::weights::{Compartment, LIFETIME_SHARE, horizon_lifetimes};

/// What a fridge is wanted for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FridgeNeed {
    /// State to use.
    pub memory_bytes: u64,
    /// Requests per second.
    pub rate: f64,
    /// Longest round trip of interest.
    pub longest_ns: f64,
    /// Length of an epoch.
    pub epoch_ns: f64,
    /// Share of requests that are answered.
    pub answered: f64,
}

/// A fridge and what to expect of it.
#[derive(Clone, Debug, PartialEq)]
pub struct FridgePlan {
    /// Its size.
    pub fridge: Compartment,
    /// Bytes of state, flows and one histogram included.
    pub synopsis_bytes: u64,
    /// Round trips that it measures in an epoch.
    pub matched: f64,
    /// Beyond this nothing is to be trusted.
    pub horizon_ns: f64,
    /// Half the width of the 95 % interval of a percentile, relative to it.
    pub expected: Vec<(f64, f64)>,
}

/// Shortest round trip of the distribution that a plan assumes.
const SHORTEST_NS: f64 = 1e3;
const STEPS: u32 = 400;
const Z95: f64 = 1.96;

impl FridgeNeed {
    /// The best fridge for it; `None` if the memory is too little for any, or nothing is to be
    /// measured.
    ///
    /// Errors assume times that are equally likely on every scale from 1 µs to the longest: as
    /// wide a spread as one meets, so others come out better. A share F of the round trips up to
    /// time t has the variance of a weighted ratio, the sum of (1/q - 1)(1{t_i <= t} - F)^2 over
    /// all of them, by N^2; with a density of 1/(t ln r) that is a relative error of t times ln r.
    #[must_use]
    pub fn plan(&self) -> Option<FridgePlan> {
        let (entries, watch) = within(self.memory_bytes)?;
        let longest_requests = self.rate * self.longest_ns / 1e9;
        let round_trips = self.rate * self.epoch_ns / 1e9 * self.answered;
        if !(longest_requests > 0.0 && round_trips >= 1.0 && self.longest_ns > SHORTEST_NS) {
            return None;
        }
        let probability = (f64::from(entries) / (LIFETIME_SHARE * longest_requests)).min(1.0);
        let fridge = Compartment { entries, probability };
        let found: Vec<f64> = self.times().map(|time_ns| self.found(&fridge, time_ns)).collect();
        let matched = round_trips * found.iter().sum::<f64>() / f64::from(STEPS);
        let lifetime_ns = fridge.lifetime_requests() / self.rate * 1e9;
        let error = |share: f64| (share, self.error(&found, round_trips, share));
        Some(FridgePlan {
            fridge,
            synopsis_bytes: bytes_of(entries, &watch),
            matched,
            horizon_ns: lifetime_ns * horizon_lifetimes(matched as u64),
            expected: twixt_model::Percentile::SHARES.map(error).to_vec(),
        })
    }

    /// Times that are equally likely.
    fn times(&self) -> impl Iterator<Item = f64> {
        let ratio = self.longest_ns / SHORTEST_NS;
        (0..STEPS)
            .map(move |step| SHORTEST_NS * ratio.powf((f64::from(step) + 0.5) / f64::from(STEPS)))
    }

    /// The chance that a round trip of this length is measured.
    fn found(&self, fridge: &Compartment, time_ns: f64) -> f64 {
        let per_request = (-fridge.probability / f64::from(fridge.entries)).ln_1p();
        fridge.probability * (per_request * self.rate * time_ns / 1e9).exp()
    }

    fn error(&self, found: &[f64], round_trips: f64, share: f64) -> f64 {
        let below = (share * f64::from(STEPS)) as usize;
        let variance: f64 = found
            .iter()
            .enumerate()
            .map(|(step, q)| {
                let away = if step < below { 1.0 - share } else { share };
                (1.0 / q - 1.0) * away * away
            })
            .sum();
        let deviation = (variance / f64::from(STEPS) / round_trips).sqrt();
        Z95 * deviation * (self.longest_ns / SHORTEST_NS).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEED: FridgeNeed = FridgeNeed {
        memory_bytes: 64 << 10,
        rate: 1e6,
        longest_ns: 1e8,
        epoch_ns: 1e9,
        answered: 0.4,
    };

    #[test]
    fn more_memory_gives_less_error() {
        let errors = |memory_bytes| {
            let plan = FridgeNeed { memory_bytes, ..NEED }.plan().unwrap();
            assert!((plan.fridge.lifetime_requests() - 5e4).abs() < 1.0);
            assert!(plan.horizon_ns > NEED.longest_ns);
            plan.expected
        };
        let (small, large) = (errors(32 << 10), errors(256 << 10));
        assert!(small.iter().zip(&large).all(|(small, large)| small.1 > 1.5 * large.1));
    }

    #[test]
    fn what_cannot_be_planned_is_not() {
        assert!(FridgeNeed { memory_bytes: 100, ..NEED }.plan().is_none());
        assert!(FridgeNeed { rate: 0.0, ..NEED }.plan().is_none());
        assert!(FridgeNeed { answered: 0.0, ..NEED }.plan().is_none());
        assert_eq!(FridgeNeed { rate: 10.0, ..NEED }.plan().unwrap().fridge.probability, 1.0);
    }
}
