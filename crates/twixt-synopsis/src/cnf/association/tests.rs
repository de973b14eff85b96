use twixt_model::{ClassId, FlowKey, PacketDigest};

use super::*;

/// Times in milliseconds.
fn record(first_ms: i64, last_ms: i64, packets: u64) -> FlowRecord {
    let time = |ms: i64| Timestamp::from_nanos(ms * 1_000_000);
    FlowRecord {
        key: FlowKey::default(),
        class: ClassId::default(),
        first: time(first_ms),
        last: time(last_ms),
        packets,
        bytes: packets * 100,
        tcp_flags: 0,
        first_label: None,
        last_label: None,
        end: twixt_model::FlowEnd::Idle,
        resolution_ns: 1,
    }
}

#[track_caller]
fn check(upstream: &[FlowRecord], downstream: &[FlowRecord], expected: &[TimingVerdict]) {
    assert_eq!(judge_by_timing(upstream, downstream, &TimingBounds::PUBLISHED), expected);
}

const FIRST: TimingVerdict = TimingVerdict::Accepted { downstream: 0 };

#[test]
fn the_window_is_that_of_the_paper() {
    assert_eq!(TimingBounds::PUBLISHED.window_ns(), (9_000_000, 68_600_000));
    assert_eq!(TimingBounds::PUBLISHED.slack_ns(), 59_600_000);
    check(&[record(100_000, 105_000, 9)], &[record(100_018, 105_060, 9)], &[FIRST]);
}

#[test]
fn both_ends_must_be_compatible() {
    check(&[record(0, 5_000, 9)], &[record(8, 5_020, 9)], &[TimingVerdict::NoPartner]);
    check(&[record(0, 5_000, 9)], &[record(20, 5_069, 9)], &[TimingVerdict::NoPartner]);
}

#[test]
fn counts_must_agree_and_a_disagreement_puts_the_flow_out_of_step() {
    let upstream = [record(0, 5_000, 9), record(5_100, 6_000, 4), record(20_000, 20_500, 3)];
    let downstream = [record(20, 5_020, 8), record(5_120, 6_020, 4), record(20_020, 20_520, 3)];
    check(
        &upstream,
        &downstream,
        &[
            TimingVerdict::DifferentCounts,
            TimingVerdict::OutOfStep,
            TimingVerdict::Accepted { downstream: 2 },
        ],
    );
}

#[test]
fn records_near_the_active_timeout_are_doubtful() {
    check(&[record(0, 29_990, 9)], &[record(20, 30_020, 9)], &[TimingVerdict::NearActiveTimeout]);
    check(&[record(0, 29_950, 9)], &[record(20, 29_970, 9)], &[TimingVerdict::NearSplit]);
    check(&[record(0, 29_900, 9)], &[record(20, 29_920, 9)], &[FIRST]);
}

#[test]
fn a_gap_near_the_inactive_timeout_is_doubtful_although_c4_holds() {
    // 10.02 s of silence at one point may have been 9.98 s at the other.
    let upstream = [record(0, 1_000, 2), record(11_020, 12_000, 2)];
    let downstream = [record(20, 1_020, 2), record(11_040, 12_020, 2)];
    check(&upstream, &downstream, &[TimingVerdict::NearSplit, TimingVerdict::NearSplit]);
    let upstream = [record(0, 1_000, 2), record(11_100, 12_000, 2)];
    let downstream = [record(20, 1_020, 2), record(11_120, 12_020, 2)];
    check(&upstream, &downstream, &[FIRST, TimingVerdict::Accepted { downstream: 1 }]);
}

#[test]
fn a_lost_record_leaves_the_others_in_place() {
    let upstream = [record(0, 0, 1), record(15_000, 15_000, 1), record(30_000, 30_000, 1)];
    let downstream = [record(20, 20, 1), record(30_020, 30_020, 1)];
    check(
        &upstream,
        &downstream,
        &[FIRST, TimingVerdict::NoPartner, TimingVerdict::Accepted { downstream: 1 }],
    );
}

#[test]
fn coarse_times_widen_the_window() {
    let coarse =
        |first_ms, last_ms| FlowRecord { resolution_ns: 1_000_000, ..record(first_ms, last_ms, 9) };
    check(&[coarse(0, 5_000)], &[coarse(9, 5_069)], &[FIRST]);
    check(&[record(0, 5_000, 9)], &[record(9, 5_069, 9)], &[TimingVerdict::NoPartner]);
}

fn labelled(first: (i64, u64), last: (i64, u64)) -> FlowRecord {
    FlowRecord {
        first_label: Some(PacketDigest(first.1)),
        last_label: Some(PacketDigest(last.1)),
        ..record(first.0, last.0, 1 + u64::from(first.1 != last.1))
    }
}

/// Delays in milliseconds, by upstream record.
#[track_caller]
fn check_labels(upstream: &[FlowRecord], downstream: &[FlowRecord], expected: &[&[i64]]) {
    let mut association = Association::new(Rule::Label, 60_000_000_000, 100);
    let sides = [Side::Upstream, Side::Downstream];
    for (side, records) in sides.into_iter().zip([upstream, downstream]) {
        records.iter().for_each(|record| association.offer(side, *record));
    }
    association.finish();
    let pairs: Vec<Vec<i64>> = std::iter::from_fn(|| association.poll())
        .map(|pair| pair.delays().map(|(_, delay)| delay.as_nanos() / 1_000_000).collect())
        .collect();
    assert_eq!(pairs, expected);
    let counts = association.counts();
    assert_eq!(counts.associated + counts.unmatched, upstream.len() as u64);
}

#[test]
fn labels_associate_whatever_the_times() {
    check_labels(&[labelled((0, 1), (9, 2))], &[labelled((500, 1), (409, 2))], &[&[500, 400]]);
}

#[test]
fn one_lost_end_leaves_one_delay() {
    check_labels(&[labelled((0, 1), (9, 2))], &[labelled((5, 7), (12, 2))], &[&[3]]);
    check_labels(&[labelled((0, 1), (9, 2))], &[labelled((5, 7), (12, 8))], &[]);
}

#[test]
fn a_record_of_one_packet_is_one_delay() {
    check_labels(&[labelled((0, 1), (0, 1))], &[labelled((5, 1), (5, 1))], &[&[5]]);
}

#[test]
fn memory_is_bounded_by_the_window_and_by_the_bound() {
    let mut association = Association::new(Rule::Label, 1_000_000_000, 50);
    for number in 0..10_000_u64 {
        association
            .offer(Side::Upstream, labelled((number as i64, number), (number as i64, number)));
        assert!(association.waiting() <= 50);
    }
    assert!(association.counts().displaced > 0);
    let mut association = Association::new(Rule::Label, 1_000_000_000, usize::MAX);
    for number in 0..10_000_u64 {
        let record = FlowRecord {
            key: FlowKey { source_port: number as u16, ..FlowKey::default() },
            ..labelled((number as i64, number), (number as i64, number))
        };
        association.offer(Side::Upstream, record);
        assert!(association.waiting() <= 1_001, "{}", association.waiting());
    }
    assert_eq!(association.counts().displaced, 0);
}

/// Pairs found among records offered in the given order, and the counts.
fn offered(rule: Rule, records: &[(Side, FlowRecord)]) -> (usize, AssociationCounts) {
    let mut association = Association::new(rule, 50_000_000_000, 1000);
    records.iter().for_each(|(side, record)| association.offer(*side, *record));
    association.finish();
    assert_eq!(association.waiting(), 0);
    (std::iter::from_fn(|| association.poll()).count(), association.counts())
}

#[test]
fn a_flow_that_never_pauses_is_concluded_bit_by_bit_with_the_same_verdicts() {
    // Records of 5 s that follow each other at once, as an active timeout cuts a long flow; every
    // seventh has lost a packet, which puts what follows out of step.
    let upstream: Vec<FlowRecord> =
        (0..400).map(|number| record(number * 5_000, number * 5_000 + 4_990, 9)).collect();
    let lost = |number: usize| u64::from(number == 100);
    let downstream: Vec<FlowRecord> = upstream
        .iter()
        .enumerate()
        .map(|(number, sent)| {
            let ms = |time: Timestamp| time.as_nanos() / 1_000_000 + 20;
            record(ms(sent.first), ms(sent.last), 9 - lost(number))
        })
        .collect();
    let expected = judge_by_timing(&upstream, &downstream, &TimingBounds::PUBLISHED);
    let accepted =
        expected.iter().filter(|verdict| matches!(verdict, TimingVerdict::Accepted { .. })).count();
    assert_eq!(accepted, 100);
    let mut association =
        Association::new(Rule::Timing(TimingBounds::PUBLISHED), 50_000_000_000, usize::MAX);
    for (side, record) in in_order(upstream, downstream, u64::MAX) {
        association.offer(side, record);
        assert!(association.waiting() < 30, "{}", association.waiting());
    }
    association.finish();
    assert_eq!(association.counts().associated, accepted as u64);
    assert_eq!(association.counts().doubtful, 300);
}

#[test]
fn one_false_time_costs_a_few_records_not_all() {
    let pair = |number: i64| {
        let key = FlowKey { source_port: number as u16, ..FlowKey::default() };
        let sent = FlowRecord { key, ..labelled((number, number as u64), (number, number as u64)) };
        let later = Timestamp::from_nanos((number + 20) * 1_000_000);
        let received = FlowRecord { first: later, last: later, ..sent };
        [(Side::Upstream, sent), (Side::Downstream, received)]
    };
    for false_ms in [-1_000_000_000, 1_000_000_000] {
        let mut records: Vec<_> = (0..200).flat_map(pair).collect();
        records.insert(200, (Side::Upstream, record(false_ms, false_ms, 1)));
        for rule in [Rule::Label, Rule::Timing(TimingBounds::PUBLISHED)] {
            let (pairs, counts) = offered(rule, &records);
            assert!(pairs >= 190, "{rule:?}, {false_ms}: {pairs} {counts:?}");
            assert_eq!(counts.clock_steps, u64::from(false_ms > 0));
        }
    }
}
