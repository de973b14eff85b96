//! Which prefixes with much reordering are found with how many records: on made traffic of 3000
//! prefixes, whose truth the referee knows. The table of `docs/algorithms/reorder.md`.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, Exp1, Pareto, StandardUniform};
use twixt_model::{
    Batch, Detail, FlowHash, FlowKey, Observation, Prefix, ReorderEstimate, ReorderVerdict, Span,
    TcpFields, Timestamp, mix, protocol, tcp_flag,
};
use twixt_synopsis::{Estimator, Purpose, Question, find};

const PREFIXES: u32 = 3000;
const FLOWS: u32 = 75_000;
const SECONDS: f64 = 30.0;
/// More of a prefix's packets out of order than this is too much ...
const THRESHOLD: f64 = 0.02;
/// ... if it has at least so many packets.
const PACKETS_MIN: u64 = 128;

/// Packets with details, in the order of their times.
struct Traffic {
    packets: Vec<(Observation, Detail)>,
}

impl Traffic {
    /// Prefixes of very different sizes; in 5 % of them 5 % of packets are overtaken by one to
    /// three others, elsewhere 0.5 % on average, exponentially distributed: some lie near the
    /// threshold.
    fn new(seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let weight = Pareto::new(1.0, 1.05).unwrap();
        let weights: Vec<f64> =
            (0..PREFIXES).map(|_| f64::min(weight.sample(&mut random), 300.0)).collect();
        let bounds: Vec<f64> = weights
            .iter()
            .scan(0.0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            })
            .collect();
        let total = *bounds.last().unwrap();
        let size = Pareto::new(3.0, 1.2).unwrap();
        let mut packets = Vec::new();
        for flow in 0..FLOWS {
            let uniform: f64 = StandardUniform.sample(&mut random);
            let prefix = bounds.partition_point(|bound| *bound < uniform * total) as u32;
            let count = f64::min(size.sample(&mut random), 5000.0) as u32;
            packets.extend(Flow { number: flow, prefix, count }.packets(&mut random));
        }
        packets.sort_by_key(|(observation, _)| observation.time);
        Self { packets }
    }

    fn estimates(&self, name: &str, settings: &str) -> Vec<ReorderEstimate> {
        let algorithm = find(Purpose::Reorder, name).unwrap();
        let mut synopsis = (algorithm.start)(&settings.parse().unwrap()).unwrap();
        let (observations, details): (Vec<_>, Vec<_>) = self.packets.iter().copied().unzip();
        synopsis.update_batch(Batch { observations: &observations, details: &details });
        let Estimator::Reorder(estimator) = &algorithm.estimator else { unreachable!() };
        let question = Question::about(Span::at(Timestamp::from_nanos(0)));
        (estimator.conclude)(synopsis.as_ref(), &question).unwrap()
    }

    /// What the referee says of prefixes that are large enough to be judged at all.
    fn truth(&self) -> Truth {
        let estimates = self.estimates("exact", "");
        let large = estimates.iter().filter(|estimate| estimate.packets >= PACKETS_MIN);
        let heavy = by_fraction(&estimates).filter(|estimate| estimate.packets >= PACKETS_MIN);
        Truth {
            large: large.map(|estimate| estimate.prefix).collect(),
            heavy: heavy.map(|estimate| estimate.prefix).collect(),
            above: by_fraction(&estimates).map(|estimate| estimate.prefix).collect(),
        }
    }
}

struct Truth {
    large: BTreeSet<Prefix>,
    heavy: BTreeSet<Prefix>,
    /// Of any size.
    above: BTreeSet<Prefix>,
}

struct Flow {
    number: u32,
    prefix: u32,
    count: u32,
}

impl Flow {
    fn packets(&self, random: &mut ChaCha8Rng) -> Vec<(Observation, Detail)> {
        let late = rate_of(self.prefix);
        let start: f64 = StandardUniform.sample(random);
        let mut time = start * SECONDS;
        let mut packets = Vec::new();
        for number in 0..self.count {
            let gap: f64 = Exp1.sample(random);
            time += gap * 0.005;
            let (chance, steps): (f64, f64) =
                (StandardUniform.sample(random), StandardUniform.sample(random));
            let delay = if chance < late { 0.005 * (1.0 + 2.0 * steps) } else { 0.0 };
            packets.push((self.observation(time + delay), self.detail(number)));
        }
        packets
    }

    fn observation(&self, time: f64) -> Observation {
        Observation {
            time: Timestamp::from_nanos((time * 1e9) as i64),
            flow: FlowHash(mix(u64::from(self.number) ^ 0x5eed)),
            length: 1500,
            ..Observation::default()
        }
    }

    fn detail(&self, number: u32) -> Detail {
        let key = FlowKey {
            source: Ipv4Addr::from_bits(0x0a00_0000 | (self.prefix << 8) | (self.number % 250))
                .into(),
            destination: Ipv4Addr::from_bits(0xc0a8_0001).into(),
            source_port: (self.number / 250) as u16,
            destination_port: 443,
            protocol: protocol::TCP,
        };
        let tcp = TcpFields {
            sequence: number.wrapping_mul(1460).wrapping_add(mix(self.number.into()) as u32),
            flags: tcp_flag::ACK,
            payload_bytes: 1460,
            ..TcpFields::default()
        };
        // As senders count them: late packets are known to be older.
        Detail { key, tcp: Some(tcp), identification: number as u16, ..Detail::default() }
    }
}

/// The share of a prefix's packets that are late.
fn rate_of(prefix: u32) -> f64 {
    let mut random = ChaCha8Rng::seed_from_u64(u64::from(prefix));
    let (bad, other): (f64, f64) = (StandardUniform.sample(&mut random), Exp1.sample(&mut random));
    if bad < 0.05 { 0.05 } else { 0.005 * other }
}

/// Of the heavy prefixes, how many are told; of the large ones told, how many are heavy; of all
/// told, how many are truly above the threshold; and of all told, where no small one counts as
/// right.
fn judged(truth: &Truth, told: &BTreeSet<Prefix>) -> [f64; 4] {
    let [heavy, large, above] = [&truth.heavy, &truth.large, &truth.above]
        .map(|prefixes| prefixes.intersection(told).count() as f64);
    let all = (told.len() as f64).max(1.0);
    [heavy / truth.heavy.len() as f64, heavy / large.max(1.0), above / all, heavy / all]
}

/// Those with a larger share than the threshold, of packets that are not too few.
fn by_share(estimates: &[ReorderEstimate]) -> BTreeSet<Prefix> {
    const JUDGED_MIN: u64 = 32;
    let above = by_fraction(estimates).filter(|estimate| estimate.packets >= JUDGED_MIN);
    above.map(|estimate| estimate.prefix).collect()
}

fn by_fraction(estimates: &[ReorderEstimate]) -> impl Iterator<Item = &ReorderEstimate> {
    estimates.iter().filter(|estimate| estimate.fraction() > Some(THRESHOLD))
}

/// Those that are surely above the threshold.
fn by_test(estimates: &[ReorderEstimate]) -> BTreeSet<Prefix> {
    let above = estimates.iter().filter(|it| it.verdict(THRESHOLD) == ReorderVerdict::Above);
    above.map(|estimate| estimate.prefix).collect()
}

#[test]
fn most_bad_prefixes_are_found_with_a_thousand_records() {
    let seed = 1;
    let traffic = Traffic::new(seed);
    let truth = traffic.truth();
    for name in ["sampled", "hybrid"] {
        let estimates = traffic.estimates(name, "records = 1024");
        let [recall, precision, ..] = judged(&truth, &by_share(&estimates));
        println!("seed {seed}, {name}: recall {recall:.3}, precision {precision:.3}");
        assert!(recall >= 0.85 && precision >= 0.70, "{recall} {precision}");
    }
}

/// Run by hand: `cargo nextest run --release -p twixt-synopsis --run-ignored only
/// bad_prefixes_by --no-capture`.
#[test]
#[ignore = "prints the table of the documentation"]
fn bad_prefixes_by_records() {
    let traffics: Vec<Traffic> = (1..=4).map(Traffic::new).collect();
    let truths: Vec<Truth> = traffics.iter().map(Traffic::truth).collect();
    for (traffic, truth) in traffics.iter().zip(&truths) {
        let (large, heavy) = (truth.large.len(), truth.heavy.len());
        println!("{} packets, {large} large prefixes, {heavy} heavy", traffic.packets.len());
    }
    println!("| algorithm | records | stale | share above threshold | surely above |");
    for records in [256, 1024, 4096] {
        for stale_ms in [20, 50, 500] {
            for name in ["sampled", "hybrid"] {
                let settings = format!("records = {records}\nstale = {}", stale_ms * 1_000_000);
                let [share, test] = mean(name, &settings, &traffics, &truths);
                println!("| {name} | {records} | {stale_ms} ms | {share} | {test} |");
            }
        }
    }
}

/// Recall and the three precisions in percent, by share and by test, averaged over traffics.
fn mean(name: &str, settings: &str, traffics: &[Traffic], truths: &[Truth]) -> [String; 2] {
    let mut sums = [[0.0; 4]; 2];
    for (traffic, truth) in traffics.iter().zip(truths) {
        let estimates = traffic.estimates(name, settings);
        for (sum, told) in sums.iter_mut().zip([by_share(&estimates), by_test(&estimates)]) {
            for (sum, value) in sum.iter_mut().zip(judged(truth, &told)) {
                *sum += 100.0 * value / traffics.len() as f64;
            }
        }
    }
    sums.map(|sum| sum.map(|percent| format!("{percent:.0}")).join(" / "))
}
