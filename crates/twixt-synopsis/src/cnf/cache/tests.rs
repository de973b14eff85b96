use proptest::prelude::*;
use twixt_model::{PacketDigest, TcpFields, protocol};

use super::*;

/// A packet: milliseconds, flow, flags.
type Packet = (i64, u16, u8);

const FIN: u8 = tcp_flag::FIN | tcp_flag::ACK;

fn config(entries_max: u32) -> FlowCacheConfig {
    let (active_timeout_ns, inactive_timeout_ns) = (60_000_000_000, 15_000_000_000);
    FlowCacheConfig { active_timeout_ns, inactive_timeout_ns, entries_max }
}

fn metered(config: FlowCacheConfig, packets: &[Packet]) -> (Vec<FlowRecord>, FlowCacheCounts) {
    let mut cache = FlowCache::new(config);
    let mut records = Vec::new();
    for (number, &(time_ms, flow, flags)) in packets.iter().enumerate() {
        let observation = Observation {
            time: Timestamp::from_nanos(time_ms * 1_000_000),
            digest: PacketDigest(number as u64),
            length: 100,
            ..Observation::default()
        };
        let key = FlowKey { source_port: flow, protocol: protocol::TCP, ..FlowKey::default() };
        let tcp = Some(TcpFields { flags, ..TcpFields::default() });
        cache.observe(&observation, &Detail { key, tcp, ..Detail::default() });
        records.extend(std::iter::from_fn(|| cache.poll()));
        assert!(cache.open_flows() <= config.entries_max as usize);
    }
    cache.finish();
    records.extend(std::iter::from_fn(|| cache.poll()));
    assert_eq!(cache.open_flows(), 0);
    (records, cache.counts())
}

/// Each record as `flow: packets, first..last ms, reason, labels`.
#[track_caller]
fn check(entries_max: u32, packets: &[Packet], expect: &[&str]) {
    let (records, _) = metered(config(entries_max), packets);
    let shown: Vec<String> = records
        .iter()
        .map(|record| {
            let ms = |time: Timestamp| time.as_nanos() / 1_000_000;
            let label = |label: Option<PacketDigest>| label.unwrap().0;
            format!(
                "{}: {}, {}..{}, {:?}, {}-{}",
                record.key.source_port,
                record.packets,
                ms(record.first),
                ms(record.last),
                record.end,
                label(record.first_label),
                label(record.last_label)
            )
        })
        .collect();
    assert_eq!(shown, expect);
}

#[test]
fn packets_of_a_flow_make_one_record() {
    check(
        9,
        &[(0, 1, 0), (5, 2, 0), (9, 1, 0)],
        &["1: 2, 0..9, Forced, 0-2", "2: 1, 5..5, Forced, 1-1"],
    );
}

#[test]
fn idle_flows_are_split_by_their_next_packet() {
    check(
        9,
        &[(0, 1, 0), (14_999, 1, 0), (29_999, 1, 0)],
        &["1: 2, 0..14999, Idle, 0-1", "1: 1, 29999..29999, Forced, 2-2"],
    );
}

#[test]
fn long_flows_are_cut_at_the_active_timeout() {
    let packets: Vec<Packet> = (0..8).map(|number| (number * 10_000, 1, 0)).collect();
    check(9, &packets, &["1: 6, 0..50000, Active, 0-5", "1: 2, 60000..70000, Forced, 6-7"]);
}

#[test]
fn a_connection_ends_with_its_fin() {
    check(
        9,
        &[(0, 1, 2), (1, 1, FIN), (2, 1, 16)],
        &["1: 2, 0..1, Finished, 0-1", "1: 1, 2..2, Forced, 2-2"],
    );
}

#[test]
fn the_idlest_flow_makes_place() {
    check(
        2,
        &[(0, 1, 0), (1, 2, 0), (2, 1, 0), (3, 3, 0)],
        &["2: 1, 1..1, Evicted, 1-1", "1: 2, 0..2, Forced, 0-2", "3: 1, 3..3, Forced, 3-3"],
    );
}

#[test]
fn times_that_run_backwards_count_and_do_not_turn_a_record_around() {
    check(9, &[(5, 1, 0), (3, 1, 0), (9, 1, 0)], &["1: 3, 5..9, Forced, 0-2"]);
    assert_eq!(metered(config(9), &[(5, 1, 0), (3, 1, 0)]).1.backwards, 1);
}

#[test]
fn silence_closes_records_when_the_time_is_told() {
    let mut cache = FlowCache::new(config(9));
    let observation = Observation::default();
    cache.observe(&observation, &Detail::default());
    cache.advance(Timestamp::from_nanos(14_999_999_999));
    assert_eq!(cache.poll(), None);
    cache.advance(Timestamp::from_nanos(15_000_000_000));
    assert_eq!(cache.poll().unwrap().end, FlowEnd::Idle);
    cache.advance(Timestamp::from_nanos(i64::MAX));
    assert_eq!(cache.counts().idle, 1);
}

proptest! {
    /// Whatever comes, in whatever order of time: every packet is in one record, and no more
    /// flows are open than may be.
    #[test]
    fn no_packet_is_counted_twice_or_lost(
        packets in prop::collection::vec((-100_000..100_000_i64, 0..6_u16, any::<u8>()), 0..200),
        entries_max in 1..5_u32,
    ) {
        let (records, counts) = metered(config(entries_max), &packets);
        let counted: u64 = records.iter().map(|record| record.packets).sum();
        prop_assert_eq!(counted, packets.len() as u64);
        prop_assert_eq!(counts.packets, counted);
        let closed = counts.idle + counts.active + counts.finished + counts.evicted + counts.forced;
        prop_assert_eq!(closed, records.len() as u64);
        for record in &records {
            prop_assert!(record.first <= record.last);
            prop_assert_eq!(record.bytes, record.packets * 100);
        }
    }
}
