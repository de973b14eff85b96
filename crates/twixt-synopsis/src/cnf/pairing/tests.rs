use twixt_model::{Delay, FlowEnd, PacketDigest, mix};

use super::*;
use crate::cnf::{Merge, PairedRecords, TimingBounds, associate, conclude, in_order};

const SECOND_NS: i64 = 1_000_000_000;
const MILLISECOND_NS: i64 = 1_000_000;
const RECORDS: u64 = 6_000;
const FLOWS: u64 = 300;
/// Records begin so far from each other: the stream lasts 50 minutes.
const SPACING_NS: i64 = SECOND_NS / 2;
const ACTIVE_NS: i64 = 30 * SECOND_NS;
const INACTIVE_NS: i64 = 10 * SECOND_NS;

const BOUNDS: TimingBounds = TimingBounds {
    propagation_min_ns: 0,
    propagation_max_ns: 20 * MILLISECOND_NS,
    processing_ns: 50 * MILLISECOND_NS,
    clock_ns: MILLISECOND_NS,
    active_timeout_ns: ACTIVE_NS,
    inactive_timeout_ns: INACTIVE_NS,
};

fn record(number: u64, is_downstream: bool) -> FlowRecord {
    let late_ns = |salt: u64| match is_downstream {
        true => (mix(number ^ salt) % 60) as i64 * MILLISECOND_NS,
        false => 0,
    };
    let first_ns = number as i64 * SPACING_NS;
    let packets = 1 + mix(number ^ 1) % 12;
    let lasts_ns = if packets == 1 { 0 } else { (mix(number ^ 2) % 20_000) as i64 } * 1_000_000;
    let last_salt = if packets == 1 { 3 << 50 } else { 4 << 50 };
    let label = |salt: u64| Some(PacketDigest(mix(number ^ salt)));
    FlowRecord {
        key: FlowKey { source_port: (mix(number) % FLOWS) as u16, ..FlowKey::default() },
        class: ClassId((number % 2) as u16),
        first: Timestamp::from_nanos(first_ns + late_ns(3 << 50)),
        last: Timestamp::from_nanos(first_ns + lasts_ns + late_ns(last_salt)),
        packets,
        bytes: packets * 100,
        tcp_flags: 0,
        first_label: label(5 << 50),
        last_label: label(6 << 50),
        end: FlowEnd::Idle,
        resolution_ns: 1,
    }
}

/// As meters close them: some at once, some after the inactive timeout. One in twenty is lost.
fn point(is_downstream: bool) -> Vec<FlowRecord> {
    let kept = |number: &u64| !is_downstream || !mix(*number ^ 7).is_multiple_of(20);
    let mut records: Vec<(i64, FlowRecord)> = (0..RECORDS)
        .filter(kept)
        .map(|number| {
            let record = record(number, is_downstream);
            let waited_ns = if mix(number ^ 8).is_multiple_of(2) { INACTIVE_NS } else { 0 };
            (record.last.as_nanos() + waited_ns, record)
        })
        .collect();
    records.sort_by_key(|(closed_ns, _)| *closed_ns);
    records.into_iter().map(|(_, record)| record).collect()
}

fn config(rule: Rule, estimator: RecordEstimator) -> RecordPairingConfig {
    RecordPairingConfig {
        rule,
        window_ns: (ACTIVE_NS + 2 * INACTIVE_NS) as u64,
        active_timeout_ns: ACTIVE_NS as u64,
        by: By::Flow,
        estimator,
        outliers: 0.0,
        bounds: PairingBounds::DEFAULT,
    }
}

fn paired(
    config: RecordPairingConfig,
    upstream: &[FlowRecord],
    downstream: &[FlowRecord],
) -> RecordPairing {
    let mut pairing = RecordPairing::new(config);
    let (upstream, downstream) = (upstream.iter().copied(), downstream.iter().copied());
    for (side, record) in in_order(upstream, downstream, config.window_ns) {
        pairing.offer(side, record, 1.0);
    }
    pairing.finish(1.0);
    pairing
}

const SPAN: Span = Span { start: Timestamp::from_nanos(0), end: Timestamp::from_nanos(0) };

/// Scope, packets, used, lost and sum.
fn shown(estimate: &Estimate) -> (Scope, u64, u64, Option<u64>, Option<i128>) {
    let evidence = &estimate.evidence;
    let sum_ns = estimate.delay.map(|delay| delay.sum_ns);
    (estimate.scope.clone(), evidence.packets, evidence.used, evidence.lost, sum_ns)
}

/// What comes of a stream is what comes of all records at once.
#[track_caller]
fn check(rule: Rule, estimator: RecordEstimator) {
    let (upstream, downstream) = (point(false), point(true));
    let pairs = associate(rule, &upstream, &downstream);
    let records = PairedRecords { upstream: &upstream, downstream: &downstream, pairs: &pairs };
    let question =
        FlowQuestion { by: By::Flow, estimator, packet_rate: 1.0, outliers: 0.0, span: SPAN };
    let expected = conclude(&records, &question);
    let mut evidence = expected.iter().map(|estimate| &estimate.evidence);
    assert!(evidence.all(|evidence| evidence.used <= evidence.packets));
    let pairing = paired(config(rule, estimator), &upstream, &downstream);
    let counts = pairing.counts();
    assert_eq!(counts.association.associated, pairs.len() as u64);
    assert!(pairs.len() as u64 > RECORDS / 2, "{} pairs", pairs.len());
    assert_eq!((counts.late_delays, counts.hurried, counts.association.overdue), (0, 0, 0));
    // At most four windows of 100 records and 200 delays each, of 50 minutes.
    assert!(pairing.held_max() < 2_000, "{}", pairing.held_max());
    let found = pairing.estimates(1.0, SPAN);
    assert_eq!(found.len(), expected.len());
    for (one, other) in found.iter().zip(&expected) {
        assert_eq!(shown(one), shown(other));
        let deviation = |estimate: &Estimate| estimate.delay.and_then(|delay| delay.deviation_ns);
        let (one, other) = (deviation(one), deviation(other));
        assert_eq!(one.is_some(), other.is_some());
        // Sums of squares are added up in another order: a part in a million of 60 ms.
        assert!((one.unwrap_or(0.0) - other.unwrap_or(0.0)).abs() < 60.0, "{one:?} {other:?}");
    }
}

#[test]
fn a_stream_tells_what_all_records_at_once_tell() {
    for rule in [Rule::Label, Rule::Timing(BOUNDS)] {
        for estimator in
            [RecordEstimator::Hybrid, RecordEstimator::Multiflow, RecordEstimator::Endpoint]
        {
            check(rule, estimator);
        }
    }
}

#[test]
fn what_meets_a_bound_is_counted() {
    let (upstream, downstream) = (point(false), point(true));
    let bounded = |records_max, scopes_max| RecordPairingConfig {
        bounds: PairingBounds { records_max, scopes_max },
        ..config(Rule::Label, RecordEstimator::Multiflow)
    };
    let pairing = paired(bounded(16, 100), &upstream, &downstream);
    let counts = pairing.counts();
    assert!(counts.hurried > 0 && counts.beyond_scopes > 0, "{counts:?}");
    assert!(counts.association.displaced > 0, "{counts:?}");
    assert!(pairing.held_max() <= 16 * 6, "{}", pairing.held_max());
    assert_eq!(pairing.estimates(1.0, SPAN).len(), 100);
}

#[test]
fn records_beyond_the_window_are_counted_and_a_clock_that_was_set_is_followed() {
    let (upstream, downstream) = (point(false), point(true));
    let later = |records: &[FlowRecord], by_ns: i64| -> Vec<FlowRecord> {
        let moved = |time: Timestamp| time + Delay::from_nanos(by_ns);
        let moved = |record: &FlowRecord| FlowRecord {
            first: moved(record.first),
            last: moved(record.last),
            ..*record
        };
        records.iter().map(moved).collect()
    };
    // A few records of an hour ago, in the middle.
    let mut stray = upstream.clone();
    let old = later(&upstream[3_000..3_005], -3_600 * SECOND_NS);
    stray.splice(3_100..3_100, old);
    let pairing = paired(config(Rule::Label, RecordEstimator::Hybrid), &stray, &downstream);
    assert_eq!(pairing.counts().association.overdue, 5);
    assert_eq!(pairing.counts().association.clock_steps, 0);
    // Everything a second time, a day earlier: the clocks were set back.
    let twice =
        |records: &[FlowRecord]| [later(records, 86_400 * SECOND_NS), records.to_vec()].concat();
    let (upstream, downstream) = (twice(&upstream), twice(&downstream));
    let pairing = paired(config(Rule::Label, RecordEstimator::Hybrid), &upstream, &downstream);
    let counts = pairing.counts().association;
    assert!(counts.clock_steps >= 1, "{counts:?}");
    let lost = 2 * RECORDS - counts.associated;
    // One in twenty is lost anyhow, and a few where the clocks were set.
    assert!(lost < 2 * RECORDS / 20 + 200, "{lost}");
}

#[test]
fn no_times_are_too_much() {
    let mut merge = Merge::new(1);
    let mut pairing = RecordPairing::new(config(Rule::Timing(BOUNDS), RecordEstimator::Multiflow));
    for time in [Timestamp::MIN, Timestamp::MAX, Timestamp::from_nanos(0)] {
        let record = FlowRecord { first: time, last: time, ..record(1, false) };
        merge.push(Side::Upstream, record);
        merge.push(Side::Downstream, record);
    }
    while let Some((side, record)) = merge.take() {
        pairing.offer(side, record, 1e-300);
    }
    pairing.finish(1e-300);
    let _ = pairing.estimates(1.0, SPAN);
}
