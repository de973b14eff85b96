//! Which of the largest flows have counters, and how right these are: on streams whose flow
//! sizes follow Zipf's law. The tables of `docs/algorithms/heavy.md`.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, Zipf};
use twixt_model::{
    BatchBuffer, Detail, FlowHash, FlowKey, HeavyFlow, Observation, Span, Timestamp, mix,
};
use twixt_synopsis::{ALGORITHMS, Algorithm, Estimator, Purpose, Question};

/// Flows by rank, 0 the largest by expectation, one per packet.
fn stream(flows: u32, exponent: f64, packets: usize, seed: u64) -> Vec<u32> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let zipf = Zipf::new(f64::from(flows), exponent).unwrap();
    (0..packets).map(|_| zipf.sample(&mut random) as u32 - 1).collect()
}

fn told(algorithm: &Algorithm, settings: &toml::Table, stream: &[u32]) -> (u64, Vec<HeavyFlow>) {
    let mut synopsis = (algorithm.start)(settings).unwrap();
    let mut buffer = BatchBuffer::new();
    for packets in stream.chunks(BatchBuffer::MAX) {
        for &flow in packets {
            let port = |bits: u32| bits as u16;
            let key = FlowKey {
                source_port: port(flow),
                destination_port: port(flow >> 16),
                ..FlowKey::default()
            };
            let hash = FlowHash(mix(u64::from(flow)));
            let observation = Observation { flow: hash, length: 500, ..Observation::default() };
            buffer.push_detailed(observation, Detail { key, ..Detail::default() });
        }
        synopsis.update_batch(buffer.as_batch());
        buffer.clear();
    }
    let Estimator::Heavy(estimator) = &algorithm.estimator else { unreachable!() };
    let question = Question::about(Span::at(Timestamp::from_nanos(0)));
    (synopsis.state_bytes(), (estimator.conclude)(synopsis.as_ref(), &question).unwrap())
}

/// How many of the `most` truly largest flows are told, and the mean relative error of those.
fn judged(stream: &[u32], told: &[HeavyFlow], most: usize) -> (usize, f64) {
    let mut truth: BTreeMap<u32, u64> = BTreeMap::new();
    for &flow in stream {
        *truth.entry(flow).or_default() += 1;
    }
    let mut largest: Vec<(u64, u32)> =
        truth.into_iter().map(|(flow, packets)| (packets, flow)).collect();
    largest.sort_unstable_by(|one, other| other.cmp(one));
    let told: BTreeMap<FlowHash, u64> = told.iter().map(|flow| (flow.hash, flow.packets)).collect();
    let found = largest.iter().take(most).filter_map(|(packets, flow)| {
        let told = *told.get(&FlowHash(mix(u64::from(*flow))))?;
        Some((told as f64 / *packets as f64 - 1.0).abs())
    });
    let errors: Vec<f64> = found.collect();
    (errors.len(), errors.iter().sum::<f64>() / errors.len().max(1) as f64)
}

fn bounded() -> impl Iterator<Item = &'static Algorithm> {
    let heavy = ALGORITHMS.iter().filter(|entry| entry.purpose == Purpose::Heavy);
    heavy.filter(|entry| entry.name != "exact")
}

fn find(name: &str) -> &'static Algorithm {
    twixt_synopsis::find(Purpose::Heavy, name).unwrap()
}

fn with_entries(entries: usize) -> toml::Table {
    toml::Table::from_iter([("entries".to_owned(), toml::Value::from(entries as i64))])
}

/// The guarantee in small: with k counters RAP has most of the k largest flows of a skewed
/// stream, and SpaceSaving far fewer. The bounds are loose: the table below varies by a few
/// hundredths from seed to seed.
#[test]
fn rap_keeps_a_constant_share_of_k_flows_with_k_counters() {
    let (k, seed) = (256, 1);
    let stream = stream(50_000, 1.2, 300_000, seed);
    let share = |name: &str| {
        let (_, told) = told(find(name), &with_entries(k), &stream);
        judged(&stream, &told, k).0 as f64 / k as f64
    };
    let (rap, space_saving) = (share("rap"), share("space-saving"));
    println!("seed {seed}: rap {rap:.3}, space-saving {space_saving:.3}");
    assert!(rap > 0.6 && rap > space_saving + 0.1);
}

/// Run by hand, in release: `cargo nextest run --release -p twixt-synopsis --run-ignored only
/// heavy_flows --no-capture`.
#[test]
#[ignore = "prints the tables of the documentation"]
fn heavy_flows_by_algorithm_and_memory() {
    println!("| counters k | exponent 0.8 | 1.0 | 1.2 | 1.5 |");
    for k in [64, 256, 1024] {
        let shares = [0.8, 1.0, 1.2, 1.5].map(|exponent| {
            let share = |name: &str| {
                let one = |seed| {
                    let stream = stream(100_000, exponent, 1_000_000, seed);
                    let (_, told) = told(find(name), &with_entries(k), &stream);
                    judged(&stream, &told, k).0 as f64 / k as f64
                };
                (1..=5).map(one).sum::<f64>() / 5.0
            };
            format!("{:.2} / {:.2}", share("rap"), share("space-saving"))
        });
        println!("| {k} | {} |", shares.join(" | "));
    }
    println!("\n| algorithm | memory | entries | exponent 0.8 | 1.0 | 1.2 |");
    for algorithm in bounded() {
        for memory_bytes in [16_384_u64, 65_536, 262_144] {
            let settings = (algorithm.sized)(memory_bytes).unwrap();
            let cells = [0.8, 1.0, 1.2].map(|exponent| {
                let stream = stream(100_000, exponent, 1_000_000, 1);
                let (bytes, told) = told(algorithm, &settings, &stream);
                assert!(bytes <= memory_bytes);
                let (present, error) = judged(&stream, &told, 100);
                format!("{present} ± {:.1} %", error * 100.0)
            });
            let (name, cells) = (algorithm.name, cells.join(" | "));
            let kib = memory_bytes / 1024;
            println!("| {name} | {kib} KiB | {} | {cells} |", settings["entries"]);
        }
    }
}
