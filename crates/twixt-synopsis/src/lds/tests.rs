//! Cells of 20 bytes tell what cells of four whole words would.

use proptest::prelude::*;
use twixt_model::{FlowKey, PacketDigest, Span, Timestamp, mix};

use super::*;
use crate::question::By;

/// Packets of a few flows in classes of their own, at any time that 64 bits hold, some very long.
fn packets() -> impl Strategy<Value = Vec<Observation>> {
    let length = prop_oneof![20..1500_u32, any::<u32>()];
    let packet = (any::<i64>(), any::<u64>(), 0..6_u64, length);
    let packet = packet.prop_map(|(time_ns, digest, flow, length)| Observation {
        time: Timestamp::from_nanos(time_ns),
        digest: PacketDigest(digest),
        flow: FlowHash(mix(flow)),
        length,
        class: ClassId(flow as u16),
        ..Observation::default()
    });
    prop::collection::vec(packet, 0..60)
}

/// What each cell has to know, in whole words.
fn wide(config: &LdsConfig, added: &[&[Observation]], removed: &[Observation]) -> Vec<Wide> {
    let mut cells = vec![Wide::default(); config.cells()];
    for packet in added.iter().copied().flatten() {
        for index in config.cells_for(packet.flow, packet.digest) {
            cells[index].add(&config.cell_of(packet));
        }
    }
    for packet in removed {
        for index in config.cells_for(packet.flow, packet.digest) {
            cells[index].subtract(&config.cell_of(packet));
        }
    }
    cells.iter_mut().for_each(|cell| cell.sums.digests &= 0xffff_ffff);
    cells
}

proptest! {
    #![proptest_config(twixt_testing::cases(128))]

    /// Weights make counts that no cell can count: there is room for all of these few.
    #[test]
    fn narrow_cells_know_what_wide_ones_do(
        one in packets(), other in packets(), is_weighted in any::<bool>(),
    ) {
        let weights: &[u32] = if is_weighted { &[1, 25, 100, 65_536] } else { &[] };
        let config = LdsConfig::new(2048, 3, &[1.0, 0.5]).unwrap().with_weights(weights).unwrap();
        let filled = |packets: &[Observation]| {
            let mut lds = Lds::new(&config);
            lds.update_all(packets);
            lds
        };
        let mut lds = filled(&one);
        lds.merge(&filled(&other));
        let moved = &other[..other.len() / 2];
        moved.iter().for_each(|packet| lds.remove(packet));
        prop_assert_eq!(lds.cells.counts_lost(), 0);
        prop_assert_eq!(lds.cells.iter().collect::<Vec<_>>(), wide(&config, &[&one, &other], moved));
        let mut bytes = Writer::new();
        lds.encode(&mut bytes);
        let read = Lds::decode(&mut Reader::new(bytes.as_slice())).unwrap();
        prop_assert_eq!(read, lds);
    }
}

/// More cells with huge counts than there is room for: every answer says so, and totals are known.
#[test]
fn lost_counts_leave_no_delay_and_are_the_reason() {
    let config = LdsConfig::new(16, 1, &[1.0]).unwrap();
    let mut hostile = Lds::new(&config);
    for cell in 0..2 {
        hostile.change_sums(cell, |sums| sums.packets = 1 << 25);
    }
    hostile.totals = Totals { packets: 1 << 26, bytes: 1 << 32 };
    let mut downstream = Lds::new(&config);
    downstream.totals = Totals { packets: (1 << 26) - 5, bytes: 1 << 32 };
    let flow = KnownFlow {
        hash: FlowHash(1),
        key: FlowKey::default(),
        group: GroupId::default(),
        packets: None,
        class: ClassId::default(),
    };
    for by in [By::All, By::Flow] {
        let span = Span::at(Timestamp::from_nanos(0));
        let question = Question { by, flows: &[flow], ..Question::about(span) };
        let pair = Pair { upstream: &hostile, downstream: &downstream };
        let estimates = Lds::estimate(pair, &question);
        assert_eq!(estimates.len(), 1);
        assert!(estimates[0].delay.is_none());
        let expected = if by == By::All { (1 << 26, Some(5)) } else { (0, None) };
        assert_eq!((estimates[0].evidence.packets, estimates[0].evidence.lost), expected);
        let reason = estimates[0].reason.as_deref().unwrap();
        assert!(reason.contains("counted more packets than a cell can"), "{reason}");
    }
}

/// 32 bytes a cell before, in memory and when written.
#[test]
fn memory_and_bytes_are_what_the_documentation_says() {
    let mut lds = Lds::new(&LdsConfig::new(10_000, 1, &[1.0; 4]).unwrap());
    assert_eq!(lds.state_bytes(), 16 + 40_000 * 20 + 625 * 24 + 16);
    for number in 0..1_000_000_u64 {
        lds.update(&Observation {
            time: Timestamp::from_nanos(1_700_000_000_000_000_000 + number as i64 * 1000),
            digest: PacketDigest(mix(number)),
            flow: FlowHash(mix(mix(number) % 20_000)),
            length: 40 + (mix(!number) % 1400) as u32,
            ..Observation::default()
        });
    }
    let mut bytes = Writer::new();
    lds.encode(&mut bytes);
    let per_cell = bytes.as_slice().len() as f64 / 40_000.0;
    println!("{per_cell:.2} bytes a cell");
    assert!(per_cell < 13.0, "{per_cell}");
}
