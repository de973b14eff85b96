//! How the cost of a packet grows with packets, flows and rows: for a sketch, it should not.

use std::time::Duration;

use twixt_model::{Batch, Detail, FlowHash, FlowKey, Observation, PacketDigest, Timestamp, mix};
use twixt_synopsis::{ALGORITHMS, Algorithm, Purpose};

use super::clock::Start;
use super::table::{Row, Table};

/// Packets, with flows as below.
const PACKETS: [u64; 4] = [100_000, 1_000_000, 10_000_000, 100_000_000];
const FLOWS_USUAL: u64 = 100_000;
/// Flows, with packets as below.
const FLOWS: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];
const PACKETS_USUAL: u64 = 10_000_000;
/// Rows, for sketches that have them.
const ROWS: [u64; 4] = [1, 2, 4, 8];
/// Rounds of fewer packets are repeated until there are so many, or they are too short to measure.
const PACKETS_MEASURED: u64 = 10_000_000;
const BATCH: usize = 256;

/// Nanoseconds of an update by packets, flows and rows.
pub(crate) fn tables(repeats: usize, is_asked_for: impl Fn(&str) -> bool) -> Vec<Table> {
    let sketches: Vec<_> = ALGORITHMS
        .iter()
        .filter(|entry| entry.purpose == Purpose::Delay && (entry.sized)(1 << 20).is_some())
        .map(|entry| (format!("growth of {}", entry.name), entry))
        .filter(|(name, _)| is_asked_for(name))
        .collect();
    if sketches.is_empty() {
        return Vec::new();
    }
    let usual = toml::Table::new();
    let by = |title, heads: [u64; 4], cost: &dyn Fn(&Algorithm, u64) -> Option<f64>| {
        let lines = sketches.iter().map(|(name, entry)| Row {
            name: name.clone(),
            values: heads.iter().map(|&head| cost(entry, head)).collect(),
        });
        let columns = heads.map(|head| head.to_string()).to_vec();
        Table { title, columns, lines: lines.collect() }
    };
    let tables = [
        by("ns, by packets", PACKETS, &|entry, packets| {
            Some(update_ns(entry, &usual, packets, FLOWS_USUAL, repeats))
        }),
        by("ns, by flows", FLOWS, &|entry, flows| {
            Some(update_ns(entry, &usual, PACKETS_USUAL, flows, repeats))
        }),
        by("ns, by rows", ROWS, &|entry, rows| {
            let settings = toml::toml! { rows = rows };
            (entry.start)(&settings).ok()?;
            Some(update_ns(entry, &settings, PACKETS_USUAL, FLOWS_USUAL, repeats))
        }),
    ];
    tables.into()
}

/// What updates cost beyond making up the packets.
fn update_ns(
    algorithm: &Algorithm,
    settings: &toml::Table,
    packets: u64,
    flows: u64,
    repeats: usize,
) -> f64 {
    let rounds = (PACKETS_MEASURED / packets).max(1);
    let mut synopsis = (algorithm.start)(settings).unwrap();
    let median = |mut update: Box<dyn FnMut(Batch<'_>)>| {
        let mut times: Vec<Duration> = (0..repeats)
            .map(|_| {
                let start = Start::now();
                (0..rounds).for_each(|_| make(packets, flows, algorithm, &mut update));
                start.elapsed()
            })
            .collect();
        times.sort();
        times[repeats / 2].as_nanos() as f64 / (rounds * packets) as f64
    };
    let alone = median(Box::new(|batch| {
        std::hint::black_box(batch);
    }));
    median(Box::new(move |batch| synopsis.update_batch(batch))) - alone
}

/// Packets of flows in turn without order.
fn make(packets: u64, flows: u64, algorithm: &Algorithm, update: &mut dyn FnMut(Batch<'_>)) {
    let mut observations = [Observation::default(); BATCH];
    let mut details = vec![Detail::default(); if algorithm.needs.detail { BATCH } else { 0 }];
    let mut number = 0;
    while number < packets {
        let count = (packets - number).min(BATCH as u64) as usize;
        for (place, observation) in observations[..count].iter_mut().enumerate() {
            let digest = mix(number + place as u64);
            let flow = ((digest >> 32) * flows) >> 32;
            observation.time = Timestamp::from_nanos(((number + place as u64) * 2000) as i64);
            observation.digest = PacketDigest(digest);
            observation.flow = FlowHash(mix(flow));
            if let Some(detail) = details.get_mut(place) {
                detail.key = key(flow);
            }
        }
        let details = &details[..count.min(details.len())];
        update(Batch { observations: &observations[..count], details });
        number += count as u64;
    }
}

fn key(flow: u64) -> FlowKey {
    let source = (flow as u32).to_be_bytes().into();
    FlowKey { source, source_port: flow as u16, ..FlowKey::default() }
}
