//! Large flows: what their experiments share.
//!
//! Streams of packets whose flows have sizes after Zipf's law.

pub(super) mod guarantee;
pub(super) mod memory;

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, Zipf};
use twixt_model::{
    BatchBuffer, Detail, FlowHash, FlowKey, HeavyFlow, Observation, Span, Timestamp, mix,
};
use twixt_synopsis::{Algorithm, Estimator, Purpose, Question};

use crate::experiment::Setting;

const FLOWS: u32 = 100_000;

/// Packets, and the truth of them.
struct Stream {
    /// The flow of each packet.
    flows: Vec<u32>,
    /// Every flow with its packets, the largest first.
    largest: Vec<(u64, u32)>,
}

impl Stream {
    fn new(exponent: f64, setting: Setting) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(setting.seed);
        let zipf = Zipf::new(f64::from(FLOWS), exponent).expect("the exponent is positive");
        let packets = setting.size.pick(200_000, 1_000_000);
        let flows: Vec<u32> = (0..packets).map(|_| zipf.sample(&mut random) as u32 - 1).collect();
        let mut counts = vec![0; FLOWS as usize];
        flows.iter().for_each(|&flow| counts[flow as usize] += 1);
        let mut largest: Vec<(u64, u32)> = counts.into_iter().zip(0..).collect();
        largest.sort_unstable_by(|one, other| other.cmp(one));
        Self { flows, largest }
    }

    /// What an algorithm tells of them.
    fn reported(&self, algorithm: &Algorithm, settings: &toml::Table) -> Vec<HeavyFlow> {
        let mut synopsis = (algorithm.start)(settings).expect("settings are in range");
        let mut buffer = BatchBuffer::new();
        for packets in self.flows.chunks(BatchBuffer::MAX) {
            for &flow in packets {
                let observation =
                    Observation { flow: hash(flow), length: 500, ..Observation::default() };
                buffer.push_detailed(observation, Detail { key: key(flow), ..Detail::default() });
            }
            synopsis.update_batch(buffer.as_batch());
            buffer.clear();
        }
        let Estimator::Heavy(estimator) = &algorithm.estimator else {
            unreachable!("algorithms for large flows conclude about flows")
        };
        let question = Question::about(Span::at(Timestamp::from_nanos(0)));
        (estimator.conclude)(synopsis.as_ref(), &question).expect("the synopsis is the algorithm's")
    }

    /// The share of the `most` truly largest flows that are reported, and the mean relative error
    /// of those.
    fn judged(&self, reported: &[HeavyFlow], most: usize) -> (f64, Option<f64>) {
        let reported: BTreeMap<FlowHash, u64> =
            reported.iter().map(|flow| (flow.hash, flow.packets)).collect();
        let found = self.largest.iter().take(most).filter_map(|&(packets, flow)| {
            let reported = *reported.get(&hash(flow))?;
            Some((reported as f64 / packets as f64 - 1.0).abs())
        });
        let errors: Vec<f64> = found.collect();
        let count = errors.len() as f64;
        (count / most as f64, (count > 0.0).then(|| errors.iter().sum::<f64>() / count))
    }
}

fn hash(flow: u32) -> FlowHash {
    FlowHash(mix(u64::from(flow)))
}

fn key(flow: u32) -> FlowKey {
    FlowKey {
        source_port: flow as u16,
        destination_port: (flow >> 16) as u16,
        ..FlowKey::default()
    }
}

fn algorithm(name: &str) -> &'static Algorithm {
    twixt_synopsis::find(Purpose::Heavy, name).expect("it is registered")
}
