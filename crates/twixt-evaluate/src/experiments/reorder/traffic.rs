//! Made traffic of 3000 prefixes, in some of which packets are often overtaken.

use std::net::Ipv4Addr;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, Exp1, Pareto, StandardUniform};
use twixt_model::{
    Detail, FlowHash, FlowKey, Observation, TcpFields, Timestamp, mix, protocol, tcp_flag,
};

const PREFIXES: u32 = 3000;
const FLOWS: u32 = 75_000;
const SECONDS: f64 = 30.0;
/// Between two packets of a flow, on average.
const GAP_S: f64 = 0.005;
const PAYLOAD_BYTES: u32 = 1460;

/// Packets with details, in the order of their times.
pub(super) struct Traffic {
    pub(super) observations: Vec<Observation>,
    pub(super) details: Vec<Detail>,
}

impl Traffic {
    /// Prefixes of very different sizes; in 5 % of them 5 % of packets are overtaken by one to
    /// three others, elsewhere 0.5 % on average, exponentially distributed: some lie near the
    /// threshold.
    pub(super) fn new(seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let bounds = bounds_of_prefixes(&mut random);
        let total = bounds.last().copied().unwrap_or_default();
        let size = Pareto::new(3.0, 1.2).expect("scale and shape are positive");
        let mut packets = Vec::new();
        for number in 0..FLOWS {
            let uniform: f64 = StandardUniform.sample(&mut random);
            let prefix = bounds.partition_point(|bound| *bound < uniform * total) as u32;
            let count = f64::min(size.sample(&mut random), 5000.0) as u32;
            packets.extend(Flow { number, prefix, count }.packets(&mut random));
        }
        packets.sort_by_key(|(observation, _)| observation.time);
        let (observations, details) = packets.into_iter().unzip();
        Self { observations, details }
    }
}

/// Where the weight of each prefix ends, if they are laid one after the other.
fn bounds_of_prefixes(random: &mut ChaCha8Rng) -> Vec<f64> {
    let weight = Pareto::new(1.0, 1.05).expect("scale and shape are positive");
    let add = |sum: &mut f64, _| {
        *sum += f64::min(weight.sample(random), 300.0);
        Some(*sum)
    };
    (0..PREFIXES).scan(0.0, add).collect()
}

/// The share of a prefix's packets that are late.
fn late_share(prefix: u32) -> f64 {
    let mut random = ChaCha8Rng::seed_from_u64(u64::from(prefix));
    let (bad, other): (f64, f64) = (StandardUniform.sample(&mut random), Exp1.sample(&mut random));
    if bad < 0.05 { 0.05 } else { 0.005 * other }
}

struct Flow {
    number: u32,
    prefix: u32,
    count: u32,
}

impl Flow {
    fn packets(&self, random: &mut ChaCha8Rng) -> Vec<(Observation, Detail)> {
        let late = late_share(self.prefix);
        let start: f64 = StandardUniform.sample(random);
        let mut time_s = start * SECONDS;
        let mut packets = Vec::new();
        for number in 0..self.count {
            let gap: f64 = Exp1.sample(random);
            time_s += gap * GAP_S;
            let [chance, steps]: [f64; 2] = StandardUniform.sample(random);
            let delay_s = if chance < late { GAP_S * (1.0 + 2.0 * steps) } else { 0.0 };
            packets.push((self.observation(time_s + delay_s), self.detail(number)));
        }
        packets
    }

    fn observation(&self, time_s: f64) -> Observation {
        Observation {
            time: Timestamp::from_nanos((time_s * 1e9) as i64),
            flow: FlowHash(mix(u64::from(self.number) ^ 0x5eed)),
            length: 1500,
            ..Observation::default()
        }
    }

    fn detail(&self, number: u32) -> Detail {
        let host = (self.prefix << 8) | (self.number % 250);
        let key = FlowKey {
            source: Ipv4Addr::from_bits(0x0a00_0000 | host).into(),
            destination: Ipv4Addr::from_bits(0xc0a8_0001).into(),
            source_port: (self.number / 250) as u16,
            destination_port: 443,
            protocol: protocol::TCP,
        };
        let start = mix(self.number.into()) as u32;
        let tcp = TcpFields {
            sequence: number.wrapping_mul(PAYLOAD_BYTES).wrapping_add(start),
            flags: tcp_flag::ACK,
            payload_bytes: PAYLOAD_BYTES,
            ..TcpFields::default()
        };
        // As senders count them: late packets are known to be older.
        Detail { key, tcp: Some(tcp), identification: number as u16, ..Detail::default() }
    }
}
