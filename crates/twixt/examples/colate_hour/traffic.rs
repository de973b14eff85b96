//! Flows and their packets, from a seed.

use twixt_model::{ClassId, FlowHash, FlowKey, GroupId, Observation, PacketDigest, Timestamp, mix};
use twixt_synopsis::KnownFlow;

/// Sizes of flows are Pareto between these.
pub(crate) const SMALLEST: f64 = 34.0;
pub(crate) const LARGEST: f64 = 200_000.0;
const SHAPE: f64 = 1.05;
/// Deviations of flows' means and of their packets, of log-normal numbers.
pub(crate) const SPREAD: f64 = 0.5;
pub(crate) const JITTER: f64 = 0.7;
const MEDIAN_NS: f64 = 1e6;
/// Counters of a flow, as the paper has them.
pub(crate) const PER_FLOW: u32 = 20;
/// Packets' delays are taken from so many quantiles of their distribution.
const QUANTILES: usize = 4096;

/// A flow of one epoch.
pub(crate) struct Flow {
    pub(crate) hash: FlowHash,
    pub(crate) packets: u64,
    mean_ns: f64,
}

/// How delays are around the mean of a flow, and the flows of an epoch.
pub(crate) struct Traffic {
    quantiles: Vec<f64>,
}

impl Traffic {
    pub(crate) fn new() -> Self {
        let sigma = JITTER.mul_add(JITTER, 1.0).ln().sqrt();
        let quantile = |index: usize| {
            let share = (index as f64 + 0.5) / QUANTILES as f64;
            sigma.mul_add(normal(share), -sigma * sigma / 2.0).exp()
        };
        Self { quantiles: (0..QUANTILES).map(quantile).collect() }
    }

    /// Flows of so many packets together; the last one is cut.
    pub(crate) fn flows(&self, epoch: u64, packets: u64) -> Vec<Flow> {
        let mut left = packets;
        let mut flows = Vec::new();
        while left > 0 {
            let seed = mix((epoch << 32) | (flows.len() as u64 + 1));
            let size = (size(uniform(mix(seed ^ 1))) as u64).min(left);
            let mean_ns = MEDIAN_NS * (SPREAD * normal(uniform(mix(seed ^ 2)))).exp();
            flows.push(Flow { hash: FlowHash(seed), packets: size, mean_ns });
            left -= size;
        }
        flows
    }

    /// A flow's packets: as upstream saw each, and its delay.
    pub(crate) fn packets<'a>(
        &'a self,
        flow: &'a Flow,
        start_ns: i64,
        length_ns: i64,
    ) -> impl Iterator<Item = (Observation, i64)> + 'a {
        (0..flow.packets).map(move |number| {
            let digest = mix(flow.hash.0 ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let bits = mix(digest);
            let into_ns = ((u128::from(bits) * length_ns as u128) >> 64) as i64;
            let quantile = self.quantiles[(digest % QUANTILES as u64) as usize];
            let observation = Observation {
                time: Timestamp::from_nanos(start_ns + into_ns),
                digest: PacketDigest(digest),
                flow: flow.hash,
                length: 340,
                ..Observation::default()
            };
            (observation, (flow.mean_ns * quantile) as i64)
        })
    }
}

impl Flow {
    pub(crate) fn known(&self) -> KnownFlow {
        KnownFlow {
            hash: self.hash,
            key: FlowKey::default(),
            group: GroupId::default(),
            packets: Some(self.packets),
            class: ClassId(0),
        }
    }
}

/// A number between 0 and 1.
fn uniform(bits: u64) -> f64 {
    ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

fn size(share: f64) -> f64 {
    let cut = 1.0 - (SMALLEST / LARGEST).powf(SHAPE);
    SMALLEST * (1.0 - share * cut).powf(-1.0 / SHAPE)
}

/// Quantile of the normal distribution, by halving.
fn normal(share: f64) -> f64 {
    let (mut low, mut high) = (-9.0, 9.0);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if distribution(middle) < share { low = middle } else { high = middle }
    }
    low
}

/// Share of a normal distribution below a value (Zelen and Severo, as in Abramowitz and Stegun
/// 26.2.17: right to seven digits).
fn distribution(value: f64) -> f64 {
    let t = 1.0 / 0.231_641_9_f64.mul_add(value.abs(), 1.0);
    let factors = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530];
    let series = factors.iter().fold(0.0, |sum: f64, factor| sum.mul_add(t, *factor)) * t;
    let density = (-value * value / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if value >= 0.0 { 1.0 - density * series } else { density * series }
}
