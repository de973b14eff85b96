//! Round trips in small tables: what their experiments share.
//!
//! The synthetic trace of the fridge's authors: a million requests per second, of which 40 % are
//! answered, after times that are equally likely on every scale from 1 us to 100 ms.

pub(super) mod bias;
pub(super) mod percentiles;
pub(super) mod plan;
pub(super) mod probability;
pub(super) mod several;
pub(super) mod stages;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rand_distr::{Distribution, StandardUniform};
use twixt_model::{ClassId, RoundTripKind, Timestamp};
use twixt_synopsis::rtt::{FridgeConfig, Request, SimpleConfig, Store, Variant, Watch};

const REQUESTS: u64 = 500_000;
const GAP_NS: i64 = 1_000;
const ANSWERED: f64 = 0.4;
const SHORTEST_NS: f64 = 1e3;
const LONGEST_NS: f64 = 1e8;
/// How many requests pass in half of the longest round trip: the lifetime to aim for.
const LIFETIME_REQUESTS: f64 = 50_000.0;

/// The round trip that a share of all round trips is below.
fn quantile_ns(share: f64) -> f64 {
    SHORTEST_NS * (LONGEST_NS / SHORTEST_NS).powf(share)
}

/// Requests one by one, with the times of those that are answered.
struct Trace {
    /// In the order of time.
    events: Vec<Event>,
    /// How long the answered ones took, ascending.
    truth_ns: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    time_ns: i64,
    id: u64,
    response: bool,
}

/// A measured round trip, and how many it stands for.
#[derive(Clone, Copy)]
struct WeightedRoundTrip {
    rtt_ns: i64,
    weight: f64,
}

impl Trace {
    fn new(seed: u64, requests: u64, answered: f64) -> Self {
        Self::with_longest(seed, requests, answered, LONGEST_NS)
    }

    /// With other times than up to 100 ms.
    fn with_longest(seed: u64, requests: u64, answered: f64, longest_ns: f64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (mut events, mut truth_ns) = (Vec::new(), Vec::new());
        for number in 0..requests {
            let (time_ns, id) = (number as i64 * GAP_NS, random.next_u64());
            events.push(Event { time_ns, id, response: false });
            let [chance, scale]: [f64; 2] = StandardUniform.sample(&mut random);
            if chance < answered {
                let rtt_ns = (SHORTEST_NS * (longest_ns / SHORTEST_NS).powf(scale)) as i64;
                events.push(Event { time_ns: time_ns + rtt_ns, id, response: true });
                truth_ns.push(rtt_ns);
            }
        }
        events.sort_unstable();
        truth_ns.sort_unstable();
        Self { events, truth_ns }
    }

    /// What a table makes of it.
    fn through<S: Store>(&self, config: &S::Config) -> Vec<WeightedRoundTrip> {
        let mut store = S::new(config);
        let mut found = Vec::new();
        for event in &self.events {
            let time = Timestamp::from_nanos(event.time_ns);
            if event.response {
                found.extend(store.answer(event.id, time).map(|answer| WeightedRoundTrip {
                    rtt_ns: (time - answer.asked).as_nanos(),
                    weight: answer.weight,
                }));
            } else {
                let (id, kind, class) = (event.id, RoundTripKind::Dns, ClassId(0));
                let variant = Variant::default();
                store.ask(&Request { id, kind, time, class, canonical: true, variant });
            }
        }
        found
    }

    fn percentile_ns(&self, share: f64) -> f64 {
        self.truth_ns[(share * self.truth_ns.len() as f64) as usize] as f64
    }

    /// How many round trips took at least so long, and less than so long.
    fn between(&self, from_ns: i64, to_ns: i64) -> f64 {
        let below = |limit_ns| self.truth_ns.partition_point(|&rtt_ns| rtt_ns < limit_ns);
        (below(to_ns) - below(from_ns)) as f64
    }
}

/// The estimate of [`Trace::between`].
fn weight_between(found: &[WeightedRoundTrip], from_ns: i64, to_ns: i64) -> f64 {
    let inside = found.iter().filter(|found| (from_ns..to_ns).contains(&found.rtt_ns));
    inside.map(|found| found.weight).sum()
}

fn fridge(entries: u32, probability: f64) -> FridgeConfig {
    let probability = Some(probability.min(1.0));
    FridgeConfig::new(Watch::default(), entries, probability, 1).expect("sizes are in range")
}

/// A fridge whose requests live half of the longest round trip on average.
fn tuned(entries: u32) -> FridgeConfig {
    fridge(entries, f64::from(entries) / LIFETIME_REQUESTS)
}

/// A plain table; if it expires, by the true p99: the best limit that it can have.
fn plain(entries: u32, expires: bool) -> SimpleConfig {
    let limit_ns = expires.then_some(quantile_ns(0.99) as u64);
    SimpleConfig::new(Watch::default(), entries, limit_ns).expect("sizes are in range")
}
