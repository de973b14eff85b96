//! Delays out of two million flow records of either side in one pass, beside the cost of sorting
//! them.
//!
//! `cargo run --release -p twixt-flow --example pair_records [RECORDS]`

mod made;

use std::time::{Duration, SystemTime};

use twixt_model::{FlowRecord, Span, Timestamp};
use twixt_synopsis::By;
use twixt_synopsis::cnf::{
    Association, PairingBounds, RecordEstimator, RecordPairing, RecordPairingConfig, Rule,
    TimingBounds, in_order,
};

/// Records upstream, unless the user says otherwise. One in a hundred has no partner.
const RECORDS: u64 = 2_000_000;
const ROUNDS: usize = 2;

fn main() {
    let records = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(RECORDS);
    let [upstream, downstream] = made::records(records);

    println!("{records} records a side, of {} bytes", size_of::<FlowRecord>());
    // The quickest of a few rounds each: others use the machine as well.
    let mut best = [Measured::NONE; 5];
    for _ in 0..ROUNDS {
        let timing = Rule::Timing(TimingBounds::PUBLISHED);
        let round = [
            sorting(&upstream).plus(sorting(&downstream)),
            associating(Rule::Label, &upstream, &downstream),
            associating(timing, &upstream, &downstream),
            concluding(Rule::Label, &upstream, &downstream),
            concluding(timing, &upstream, &downstream),
        ];
        best = std::array::from_fn(|index| best[index].or_quicker(round[index]));
    }
    let sort_s = best[0].taken.as_secs_f64();
    println!("sorting both sides by flow and time: {sort_s:.2} s");
    let names = ["pairs, by label", "pairs, by timing", "delays of flows, by label", "by timing"];
    for (name, Measured { taken, pairs, held_max }) in names.iter().zip(&best[1..]) {
        let taken_s = taken.as_secs_f64();
        let ratio = taken_s / sort_s;
        println!(
            "{name}: {taken_s:.2} s, {ratio:.2} times sorting; {pairs} pairs, {held_max} held"
        );
    }
}

/// What a step cost, in time of the processor.
#[derive(Clone, Copy)]
struct Measured {
    taken: Duration,
    pairs: u64,
    /// Records, pairs and delays that were held at most.
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

/// Time that this thread had the processor, where the system tells; else since 1970.
fn processor_time() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.as_deref().and_then(|text| text.split_whitespace().next()?.parse().ok());
    let since_1970 = || SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    nanos.map_or_else(since_1970, Duration::from_nanos)
}

fn sorting(records: &[FlowRecord]) -> Measured {
    let mut records = records.to_vec();
    let start = processor_time();
    records.sort_unstable_by_key(|record| (record.key, record.first));
    let taken = processor_time() - start;
    assert!(records.is_sorted_by_key(|record| (record.key, record.first)));
    Measured { taken, ..Measured::NONE }
}

const WINDOW_NS: u64 = (TimingBounds::PUBLISHED.active_timeout_ns
    + 2 * TimingBounds::PUBLISHED.inactive_timeout_ns) as u64;

/// Brings records together, and no more.
fn associating(rule: Rule, upstream: &[FlowRecord], downstream: &[FlowRecord]) -> Measured {
    let start = processor_time();
    let mut association = Association::new(rule, WINDOW_NS, Association::RECORDS_MAX);
    let (mut held_max, mut pairs) = (0, 0);
    let (up, down) = (upstream.iter().copied(), downstream.iter().copied());
    for (side, record) in in_order(up, down, WINDOW_NS) {
        association.offer(side, record);
        held_max = held_max.max(association.waiting());
        pairs += std::iter::from_fn(|| association.poll()).count() as u64;
    }
    association.finish();
    pairs += std::iter::from_fn(|| association.poll()).count() as u64;
    Measured { taken: processor_time() - start, pairs, held_max }
}

/// Everything that `twixt flow pair` does between reading and printing.
fn concluding(rule: Rule, upstream: &[FlowRecord], downstream: &[FlowRecord]) -> Measured {
    let start = processor_time();
    let mut pairing = RecordPairing::new(RecordPairingConfig {
        rule,
        window_ns: WINDOW_NS,
        active_timeout_ns: TimingBounds::PUBLISHED.active_timeout_ns as u64,
        by: By::Flow,
        estimator: RecordEstimator::Hybrid,
        outliers: 0.0,
        bounds: PairingBounds::DEFAULT,
    });
    let (up, down) = (upstream.iter().copied(), downstream.iter().copied());
    for (side, record) in in_order(up, down, WINDOW_NS) {
        pairing.offer(side, record, 1.0);
    }
    pairing.finish(1.0);
    let (pairs, held_max) = (pairing.counts().association.associated, pairing.held_max());
    let estimates = pairing.estimates(1.0, Span::at(Timestamp::from_nanos(0)));
    assert!(!estimates.is_empty());
    Measured { taken: processor_time() - start, pairs, held_max }
}
