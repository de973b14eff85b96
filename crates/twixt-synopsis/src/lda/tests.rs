//! Cells of 19 bytes tell what cells of three whole words would.

use proptest::prelude::*;
use twixt_model::{PacketDigest, Timestamp};

use super::*;

/// Packets, some of them identical, at any time that 64 bits hold.
fn packets() -> impl Strategy<Value = Vec<Observation>> {
    let packet = (any::<i64>(), 0..200_u64).prop_map(|(time_ns, number)| Observation {
        time: Timestamp::from_nanos(time_ns),
        digest: PacketDigest(twixt_model::mix(number)),
        length: 100,
        ..Observation::default()
    });
    prop::collection::vec(packet, 0..80)
}

/// What each cell has to know, in whole words.
fn wide(config: &LdaConfig, added: &[&[Observation]], removed: &[Observation]) -> Vec<Sums> {
    let mut cells = vec![Sums::default(); config.cells()];
    for packet in added.iter().copied().flatten() {
        if let Some(index) = config.cell_for(packet.digest) {
            cells[index].add(&Sums::of(packet));
        }
    }
    for packet in removed {
        if let Some(index) = config.cell_for(packet.digest) {
            cells[index].subtract(&Sums::of(packet));
        }
    }
    cells
}

proptest! {
    #![proptest_config(twixt_testing::cases(128))]

    #[test]
    fn narrow_cells_know_what_wide_ones_do(one in packets(), other in packets(), removed in packets()) {
        let config = LdaConfig::new(64, &[1.0, 0.25]).unwrap();
        let filled = |packets: &[Observation]| {
            let mut lda = Lda::new(&config);
            lda.update_all(packets);
            lda
        };
        let mut lda = filled(&one);
        lda.merge(&filled(&other));
        // Packets that were never there are taken out, too: counts may be below 0.
        let moved = &removed[..removed.len().min(2)];
        moved.iter().for_each(|packet| lda.remove(packet));
        prop_assert_eq!(lda.cells.counts_lost(), 0);
        prop_assert_eq!(lda.sums(), wide(&config, &[&one, &other], moved));
        let mut bytes = Writer::new();
        lda.encode(&mut bytes);
        let read = Lda::decode(&mut Reader::new(bytes.as_slice())).unwrap();
        prop_assert_eq!(read, lda);
    }
}

/// 24 bytes a cell before.
#[test]
fn memory_and_bytes_are_what_the_documentation_says() {
    let mut lda = Lda::new(&LdaConfig::default());
    assert_eq!(lda.state_bytes(), 16 + 4096 * 19 + 64 * 24 + 16);
    for number in 0..1_000_000_u64 {
        lda.update(&Observation {
            time: Timestamp::from_nanos(1_700_000_000_000_000_000 + number as i64 * 1000),
            digest: PacketDigest(twixt_model::mix(number)),
            length: 100,
            ..Observation::default()
        });
    }
    let mut bytes = Writer::new();
    lda.encode(&mut bytes);
    let per_cell = bytes.as_slice().len() as f64 / 4096.0;
    println!("{per_cell:.2} bytes a cell");
    assert!(per_cell < 14.0, "{per_cell}");
}
