//! What the tables promise, on a stream with few large flows and many small ones.

mod reference;

use proptest::prelude::*;
use twixt_model::{FlowHash, FlowKey, HeavyFlow, mix};

use super::*;

/// Flow `n` of a stream; its packets have `40 + n` bytes.
fn named(flow: u64) -> (FlowHash, FlowKey, u32) {
    let key = FlowKey { source_port: flow as u16, ..FlowKey::default() };
    (FlowHash(mix(flow)), key, 40 + flow as u32)
}

fn fill<T: FlowTable>(config: &T::Config, flows: &[u64]) -> T {
    let mut table = T::start(config);
    for &flow in flows {
        let (hash, key, bytes) = named(flow);
        table.add(hash, &key, bytes);
    }
    table
}

/// Packets of flows 0, 1, 2 …, of which each sends about half of what the one before does, and
/// other flows between them.
fn skewed() -> impl Strategy<Value = Vec<u64>> {
    let flow = prop_oneof![
        3 => any::<u64>().prop_map(|bits| u64::from(bits.trailing_zeros())),
        1 => 100..400_u64,
    ];
    prop::collection::vec(flow, 0..600)
}

fn truth(stream: &[u64], flow: &HeavyFlow) -> u64 {
    stream.iter().filter(|&&number| named(number).0 == flow.hash).count() as u64
}

/// Bounds hold, names are right, and bytes are in proportion to packets.
fn assert_true(stream: &[u64], flows: &[HeavyFlow]) {
    for flow in flows {
        let packets = truth(stream, flow);
        assert!(flow.packets_at_least <= packets, "{flow:?}, but {packets}");
        assert!(flow.packets_at_most.is_none_or(|most| packets <= most), "{flow:?}, {packets}");
        assert!(flow.packets_at_least <= flow.packets);
        assert_eq!(flow.bytes, flow.packets * u64::from(40 + flow.key.source_port));
        assert_eq!(named(u64::from(flow.key.source_port)).0, flow.hash);
    }
    assert!(flows.is_sorted_by(|one, other| one.packets >= other.packets));
    let hashes: std::collections::BTreeSet<_> = flows.iter().map(|flow| flow.hash).collect();
    assert_eq!(hashes.len(), flows.len(), "a flow is told twice");
}

fn holds<T: FlowTable>(config: &T::Config, stream: &[u64], cut: usize) {
    assert_true(stream, &fill::<T>(config, stream).flows());
    let (front, back) = stream.split_at(cut.min(stream.len()));
    let (front, back) = (fill::<T>(config, front), fill::<T>(config, back));
    let [mut merged, mut swapped] = [front.clone(), back.clone()];
    merged.merge(&back);
    swapped.merge(&front);
    assert_true(stream, &merged.flows());
    assert_eq!(merged.flows(), swapped.flows(), "merging has an order");
}

proptest! {
    #![proptest_config(twixt_testing::cases(64))]

    #[test]
    fn bounds_hold_also_after_merging(stream in skewed(), cut in 0..600_usize) {
        holds::<ExactTable>(&Default::default(), &stream, cut);
        holds::<SpaceSavingTable>(&EntriesConfig::new(24).unwrap(), &stream, cut);
        holds::<RapTable>(&EntriesConfig::new(24).unwrap(), &stream, cut);
        holds::<RapWayTable>(&WaysConfig::new(24, 4).unwrap(), &stream, cut);
        holds::<HashPipeTable>(&WaysConfig::new(24, 4).unwrap(), &stream, cut);
        holds::<PrecisionTable>(&WaysConfig::new(24, 2).unwrap(), &stream, cut);
    }

    /// Of N packets, a flow of more than N / m has one of m counters.
    #[test]
    fn space_saving_has_every_flow_above_its_threshold(stream in skewed(), cut in 0..600_usize) {
        let config = EntriesConfig::new(24).unwrap();
        let (front, back) = stream.split_at(cut.min(stream.len()));
        let mut merged = fill::<SpaceSavingTable>(&config, front);
        merged.merge(&fill(&config, back));
        for table in [fill::<SpaceSavingTable>(&config, &stream), merged] {
            for flow in 0..24 {
                let packets = stream.iter().filter(|&&number| number == flow).count();
                let known = table.flows().iter().any(|entry| entry.hash == named(flow).0);
                prop_assert!(known || packets * 24 <= stream.len(), "flow {flow}: {packets}");
            }
        }
    }

    #[test]
    fn what_was_read_back_counts_on_as_before(stream in skewed(), more in skewed()) {
        fn check<T: FlowTable>(config: &T::Config, stream: &[u64], more: &[u64]) {
            let mut table = fill::<T>(config, stream);
            let mut out = crate::Writer::new();
            table.encode(&mut out);
            let bytes = out.into_bytes();
            let mut again = T::decode(&mut crate::Reader::new(&bytes)).unwrap();
            assert_eq!(again, table);
            for (hash, key, bytes) in more.iter().map(|&flow| named(flow)) {
                table.add(hash, &key, bytes);
                again.add(hash, &key, bytes);
            }
            assert_eq!(again, table);
        }
        check::<ExactTable>(&Default::default(), &stream, &more);
        check::<SpaceSavingTable>(&EntriesConfig::new(24).unwrap(), &stream, &more);
        check::<RapTable>(&EntriesConfig::new(24).unwrap(), &stream, &more);
        check::<RapWayTable>(&WaysConfig::new(24, 4).unwrap(), &stream, &more);
        check::<HashPipeTable>(&WaysConfig::new(24, 4).unwrap(), &stream, &more);
        check::<PrecisionTable>(&WaysConfig::new(24, 2).unwrap(), &stream, &more);
    }
}

/// A table within so much memory states no more of it, and wastes less than a third
/// (indexes and ways come in steps).
#[track_caller]
fn check_size<T: FlowTable>(memory_bytes: u64) {
    let table = T::start(&T::sized(memory_bytes).unwrap());
    let stated = table.state_bytes();
    assert!(stated <= memory_bytes && stated * 10 >= memory_bytes * 7, "{} {stated}", T::NAME);
}

#[test]
fn tables_fill_the_memory_that_they_are_given() {
    for memory_bytes in [4096, 65_536, 1_000_000] {
        check_size::<SpaceSavingTable>(memory_bytes);
        check_size::<RapTable>(memory_bytes);
        check_size::<RapWayTable>(memory_bytes);
        check_size::<HashPipeTable>(memory_bytes);
        check_size::<PrecisionTable>(memory_bytes);
    }
    assert_eq!(ExactTable::sized(1_000_000), None);
    assert_eq!(RapTable::sized(50), None);
    assert!(RapWayTable::sized(500).is_none(), "a set takes more");
}

#[test]
fn sizes_out_of_range_are_refused() {
    assert!(RapTable::new(0).is_err());
    assert!(EntriesConfig::new(u32::MAX).is_err());
    assert!(WaysConfig::<2>::new(3, 4).unwrap_err().contains("between 4 and"));
    assert!(WaysConfig::<2>::new(100, 0).unwrap_err().contains("ways"));
    assert_eq!(WaysConfig::<2>::new(103, 4).unwrap().entries(), 100);
}
