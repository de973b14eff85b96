//! COLATE to the letter, to show why that cannot work. No algorithm of the registry.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use twixt_model::{FlowHash, Observation};

use crate::sketch::scaled;

/// Keeps the derived bits apart from those of the corrected algorithm.
const FLOW_SALT: u64 = 0x434f_4c41_e000_0000;

/// One vector as printed: every point draws at random which of a flow's counters a packet's time
/// is added to.
#[derive(Clone, Debug)]
pub struct PrintedColate {
    counters: Vec<f64>,
    per_flow: u32,
    draws: ChaCha8Rng,
}

impl PrintedColate {
    /// An empty vector of `counters` counters, `per_flow` of them to a flow. Points have different
    /// seeds: nothing in the paper makes them draw alike.
    #[must_use]
    pub fn new(counters: u32, per_flow: u32, seed: u64) -> Self {
        let draws = ChaCha8Rng::seed_from_u64(seed);
        Self { counters: vec![0.0; counters as usize], per_flow, draws }
    }

    /// Section 3.1: adds a packet's time, in nanoseconds since `start_ns`.
    pub fn update(&mut self, observation: &Observation, start_ns: i64) {
        let number = scaled(self.draws.next_u64(), self.per_flow);
        let counter = self.counter(observation.flow, number);
        self.counters[counter] += (observation.time.as_nanos() - start_ns) as f64;
    }

    /// Equation 4: an estimate of the sum of a flow's times.
    #[must_use]
    pub fn time_sum_ns(&self, flow: FlowHash) -> f64 {
        let (n, m) = (self.counters.len() as f64, f64::from(self.per_flow));
        let own = (0..self.per_flow).map(|number| self.counters[self.counter(flow, number)]);
        let all: f64 = self.counters.iter().sum();
        (n * own.sum::<f64>() - m * all) / (n - m)
    }

    fn counter(&self, flow: FlowHash, number: u32) -> usize {
        let bits = flow.derive(FLOW_SALT + u64::from(number));
        scaled(bits, self.counters.len() as u32) as usize
    }
}
