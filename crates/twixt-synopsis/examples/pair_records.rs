//! Delays out of two million flow records of either side in one pass, beside the cost of sorting
//! them.
//!
//! `cargo run --release -p twixt-synopsis --example pair_records [RECORDS]`

use std::time::{Duration, Instant};

use twixt_model::{ClassId, FlowEnd, FlowKey, FlowRecord, PacketDigest, Span, Timestamp, mix};
use twixt_synopsis::By;
use twixt_synopsis::cnf::{
    PairingBounds, PairingConfig, RecordEstimator, RecordPairing, Rule, TimingBounds, in_order,
};

/// Records upstream, unless the user says otherwise. One in a hundred has no partner.
const RECORDS: u64 = 2_000_000;
/// Flows that take turns.
const FLOWS: u64 = 200_000;
/// Records that are closed in a second.
const RECORDS_PER_SECOND: u64 = 3_000;
const ROUNDS: usize = 4;
const SECOND_NS: i64 = 1_000_000_000;
const DELAY_NS: i64 = 20_000_000;

const BOUNDS: TimingBounds = TimingBounds {
    propagation_min_ns: 10_000_000,
    propagation_max_ns: 20_000_000,
    processing_ns: 47_600_000,
    clock_ns: 1_000_000,
    active_timeout_ns: 30 * SECOND_NS,
    inactive_timeout_ns: 10 * SECOND_NS,
};

fn main() {
    let records = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(RECORDS);
    let upstream = by_close((0..records).map(|number| record(number, 0)));
    let arrived = (0..records).filter(|number| !mix(*number).is_multiple_of(100));
    let downstream = by_close(arrived.map(|number| record(number, DELAY_NS)));

    println!("{records} records a side, of {} bytes", size_of::<FlowRecord>());
    // The quickest of a few rounds each: others use the machine as well.
    let [mut sort, mut label, mut timing] = [Measured::NONE; 3];
    for _ in 0..ROUNDS {
        sort = sort.or_quicker(sorting(&upstream).plus(sorting(&downstream)));
        label = label.or_quicker(pairing(Rule::Label, &upstream, &downstream));
        timing = timing.or_quicker(pairing(Rule::Timing(BOUNDS), &upstream, &downstream));
    }
    println!("sorting both sides by flow and time: {:.2} s", sort.taken.as_secs_f64());
    for (name, measured) in [("label", label), ("timing", timing)] {
        println!(
            "delays of flows, by {name}: {:.2} s, {:.2} times sorting; {} pairs, {} records, pairs \
             and delays held at most",
            measured.taken.as_secs_f64(),
            measured.taken.as_secs_f64() / sort.taken.as_secs_f64(),
            measured.pairs,
            measured.held_max,
        );
    }
}

#[derive(Clone, Copy)]
struct Measured {
    taken: Duration,
    pairs: u64,
    held_max: usize,
}

impl Measured {
    const NONE: Self = Self { taken: Duration::MAX, pairs: 0, held_max: 0 };

    fn or_quicker(self, other: Self) -> Self {
        if other.taken < self.taken { other } else { self }
    }

    fn plus(self, other: Self) -> Self {
        Self { taken: self.taken + other.taken, ..self }
    }
}

/// In the order in which a meter closes records.
fn by_close(records: impl Iterator<Item = FlowRecord>) -> Vec<FlowRecord> {
    let mut records: Vec<FlowRecord> = records.collect();
    records.sort_by_key(|record| record.last);
    records
}

fn record(number: u64, delay_ns: i64) -> FlowRecord {
    let flow = mix(number) % FLOWS;
    let first_ns = (number * 1_000_000_000 / RECORDS_PER_SECOND) as i64;
    let duration_ns = (mix(number ^ 1) % 5_000_000_000) as i64;
    let time = |sent_ns: i64, salt: u64| {
        let waited_ns = if delay_ns > 0 { (mix(number ^ salt) % 40_000_000) as i64 } else { 0 };
        Timestamp::from_nanos(sent_ns + delay_ns + waited_ns)
    };
    let [a, b, c, d, e, f, g, h] = mix(flow).to_be_bytes();
    FlowRecord {
        key: FlowKey {
            source: [a, b, c, d].into(),
            destination: [e, f, g, h].into(),
            source_port: flow as u16,
            destination_port: 443,
            protocol: 6,
        },
        class: ClassId::default(),
        first: time(first_ns, 2),
        last: time(first_ns + duration_ns, 3),
        packets: 5,
        bytes: 500,
        tcp_flags: 0,
        first_label: Some(PacketDigest(mix(number ^ 4 << 60))),
        last_label: Some(PacketDigest(mix(number ^ 5 << 60))),
        end: FlowEnd::Idle,
        resolution_ns: 1,
    }
}

fn sorting(records: &[FlowRecord]) -> Measured {
    let mut records = records.to_vec();
    let start = Instant::now();
    records.sort_unstable_by_key(|record| (record.key, record.first));
    let taken = start.elapsed();
    assert!(records.is_sorted_by_key(|record| (record.key, record.first)));
    Measured { taken, ..Measured::NONE }
}

/// Everything that `twixt flow pair` does between reading and printing.
fn pairing(rule: Rule, upstream: &[FlowRecord], downstream: &[FlowRecord]) -> Measured {
    let window_ns = (BOUNDS.active_timeout_ns + 2 * BOUNDS.inactive_timeout_ns) as u64;
    let start = Instant::now();
    let mut pairing = RecordPairing::new(PairingConfig {
        rule,
        window_ns,
        active_timeout_ns: BOUNDS.active_timeout_ns as u64,
        by: By::Flow,
        estimator: RecordEstimator::Hybrid,
        outliers: 0.0,
        bounds: PairingBounds::DEFAULT,
    });
    let (up, down) = (upstream.iter().copied(), downstream.iter().copied());
    for (side, record) in in_order(up, down, window_ns) {
        pairing.offer(side, record, 1.0);
    }
    pairing.finish(1.0);
    let (pairs, held_max) = (pairing.counts().association.associated, pairing.held_max());
    let estimates = pairing.estimates(1.0, Span::at(Timestamp::from_nanos(0)));
    assert!(!estimates.is_empty());
    Measured { taken: start.elapsed(), pairs, held_max }
}
