//! Narrow cells tell what wide ones would.

use proptest::prelude::*;

use super::*;

/// What is done to a cell.
#[derive(Clone, Copy, Debug)]
enum Step {
    Add(Wide),
    AddWide(Wide),
    Subtract(Wide),
    Set(Wide),
}

/// Plain words of 64 bits: what narrow cells are held to.
struct Reference {
    widths: Widths,
    cells: Vec<Wide>,
}

impl Reference {
    fn apply(&mut self, index: usize, step: Step) {
        let cell = &mut self.cells[index];
        match step {
            Step::Add(packets) | Step::AddWide(packets) => cell.add(&packets),
            Step::Subtract(packets) => cell.subtract(&packets),
            Step::Set(seen) => *cell = seen,
        }
        *cell = self.widths.trimmed(*cell);
    }
}

fn apply(cells: &mut Cells<Widths>, index: usize, step: Step) {
    match step {
        Step::Add(packets) => match Added::of(cells.shape, &packets) {
            Some(added) => cells.add(index, &added),
            None => cells.add_wide(index, &packets),
        },
        Step::AddWide(packets) => cells.add_wide(index, &packets),
        Step::Subtract(packets) => cells.subtract(index, &packets),
        Step::Set(seen) => cells.set(index, &seen),
    }
}

fn widths() -> impl Strategy<Value = Widths> {
    (8..=64_u8, 0..=64_u8, any::<bool>()).prop_map(|(time_bits, digest_bits, has_bytes)| Widths {
        time_bits,
        digest_bits,
        has_bytes,
    })
}

/// Counts of single packets, about as large as a cell can count, and hostile ones.
fn count() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => Just(1),
        2 => 0..2000_u64,
        1 => (1_u64 << 22)..=(1 << 24),
        1 => (1_u64 << 36)..=(1 << 38),
        1 => any::<u64>(),
    ]
}

fn wide() -> impl Strategy<Value = Wide> {
    (any::<u64>(), count(), any::<u64>(), count()).prop_map(|(times, packets, digests, bytes)| {
        Wide { sums: Sums { times, packets, digests }, bytes }
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => wide().prop_map(Step::Add),
        1 => wide().prop_map(Step::AddWide),
        3 => wide().prop_map(Step::Subtract),
        1 => wide().prop_map(Step::Set),
    ]
}

const COUNT: usize = 5;

proptest! {
    #![proptest_config(twixt_testing::cases(512))]

    /// With room for every cell, nothing is ever lost, whatever the sums; neighbours do not change.
    #[test]
    fn narrow_cells_are_wide_cells_modulo_their_widths(
        widths in widths(), steps in prop::collection::vec((0..COUNT, step()), 0..60),
    ) {
        let mut cells = Cells::with_escapes(widths, COUNT, COUNT);
        let mut reference = Reference { widths, cells: vec![Wide::default(); COUNT] };
        for &(index, step) in &steps {
            apply(&mut cells, index, step);
            reference.apply(index, step);
            prop_assert_eq!(cells.iter().collect::<Vec<_>>(), reference.cells.clone());
        }
        prop_assert_eq!(cells.counts_lost(), 0);
        // However they came to it, cells that have seen the same are equal.
        let mut copied = Cells::with_escapes(widths, COUNT, COUNT);
        reference.cells.iter().enumerate().for_each(|(index, seen)| copied.set(index, seen));
        prop_assert_eq!(copied, cells);
    }

    #[test]
    fn merged_cells_have_seen_both(
        widths in widths(), one in prop::collection::vec(wide(), COUNT), other in prop::collection::vec(wide(), COUNT),
    ) {
        let filled = |wide: &[Wide]| {
            let mut cells = Cells::with_escapes(widths, COUNT, COUNT);
            wide.iter().enumerate().for_each(|(index, seen)| cells.set(index, seen));
            cells
        };
        let mut merged = filled(&one);
        merged.merge(&filled(&other));
        let sums: Vec<Wide> = one.iter().zip(&other).map(|(one, other)| {
            let mut sum = *one;
            sum.add(other);
            widths.trimmed(sum)
        }).collect();
        prop_assert_eq!(merged.iter().collect::<Vec<_>>(), sums);
    }

    #[test]
    fn what_fits_into_memory_takes_no_more_than_that(widths in widths(), memory in 0..100_000_u64) {
        let count = widths.cells_within(memory);
        let bytes = |count: u64| widths.state_bytes(count as usize);
        prop_assert!(count == 0 || bytes(count) <= memory);
        // Nor could one more be there; a new entry may leave less than its own bytes.
        prop_assert!(bytes(count + 1) > memory);
    }
}

/// Packet by packet, across the limit of a count.
#[test]
fn a_count_goes_on_beyond_what_a_cell_can_count() {
    let widths = Widths { time_bits: 64, digest_bits: 64, has_bytes: false };
    let packet = Wide::from(Sums { times: 3, packets: 1, digests: 5 });
    let mut cells = Cells::new(widths, 3);
    let before = Wide::from(Sums { times: 0, packets: (1 << 23) - 1, digests: 0 });
    cells.set(1, &before);
    assert_eq!(cells.escapes.of(1), (0, 0));
    for more in 1..=3 {
        cells.add(1, &Added::of(widths, &packet).unwrap());
        let sums = Sums { times: 3 * more, packets: (1 << 23) - 1 + more, digests: 5 * more };
        assert_eq!(cells.wide(1).sums, sums);
    }
    assert_eq!(cells.escapes.of(1), (1 << 23, 0));
    for _ in 0..3 {
        cells.subtract(1, &packet);
    }
    assert_eq!(cells.wide(1), before);
    assert_eq!(cells.escapes.of(1), (0, 0), "it counts by itself again");
    assert_eq!((cells.wide(0), cells.wide(2)), (Wide::default(), Wide::default()));
}

/// More cells than there is room for: that is counted, and the others go on.
#[test]
fn counts_that_find_no_room_are_counted_as_lost() {
    let widths = Widths { time_bits: 64, digest_bits: 32, has_bytes: true };
    let mut cells = Cells::new(widths, 3);
    let large = Wide { bytes: 1 << 37, ..Wide::from(Sums { packets: 7, ..Sums::default() }) };
    cells.set(0, &large);
    assert_eq!((cells.wide(0), cells.counts_lost()), (large, 0));
    cells.set(1, &large);
    assert_eq!(cells.counts_lost(), 1);
    cells.add(1, &Added::of(widths, &Wide { bytes: 1, ..Wide::default() }).unwrap());
    assert_eq!((cells.wide(0), cells.counts_lost()), (large, 1));
    let merged = {
        let mut twice = cells.clone();
        twice.merge(&cells);
        twice
    };
    assert_eq!(merged.counts_lost(), 2);
}

/// Bytes of a cell, as the documentation has them.
#[test]
fn cells_take_the_bytes_that_their_widths_need() {
    let bytes = |time_bits, digest_bits, has_bytes| {
        Widths { time_bits, digest_bits, has_bytes }.cell_bytes()
    };
    assert_eq!(bytes(64, 64, false), 19);
    assert_eq!(bytes(64, 32, true), 20);
    assert_eq!(bytes(40, 16, false), 10);
    assert_eq!(bytes(33, 0, false), 8);
}

/// Of many packets at once, cells are relieved afterwards, and only those that have to be.
#[test]
fn cells_that_are_full_after_a_batch_are_relieved() {
    let widths = Widths { time_bits: 24, digest_bits: 8, has_bytes: false };
    let packet = Wide::from(Sums { times: 3, packets: 1, digests: 5 });
    let added = Added::of(widths, &packet).unwrap();
    let mut cells = Cells::new(widths, 3);
    cells.set(1, &Sums { times: 0, packets: (1 << 23) - 1, digests: 0 }.into());
    assert!(!cells.add_all([(0, added), (2, added)].into_iter()));
    assert!(cells.add_all([(0, added), (1, added), (1, added)].into_iter()));
    cells.relieve([0, 1, 1].into_iter());
    assert_eq!([0, 1, 2].map(|cell| cells.wide(cell).sums.packets), [2, (1 << 23) + 1, 1]);
    assert_eq!([0, 1, 2].map(|cell| cells.escapes.of(cell).0), [0, (1 << 23) + 1, 0]);
    assert_eq!(cells.wide(1).sums.times, 6);
}
