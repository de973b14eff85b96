//! Vectors read back, whole and in part, and hostile bytes.

use proptest::prelude::*;
use twixt_model::mix;

use super::*;

const WIDTHS: Widths = Widths { time_bits: 24, digest_bits: 8, has_bytes: false };

/// Counters of about 450 packets each, as in epochs of a minute at 500 000 packets per second.
fn vector(counters: usize) -> Vec<Wide> {
    let cell = |number: u64| {
        let packets = 400 + mix(number) % 100;
        let times = packets.wrapping_mul(123_456_789).wrapping_add(mix(!number) % 100_000);
        Sums { times: times & 0xff_ffff, packets, digests: mix(number ^ 77) & 0xff }.into()
    };
    (0..counters as u64).map(cell).collect()
}

fn packed(cells: &[Wide]) -> Vec<u8> {
    let mut out = Writer::new();
    encode(cells, WIDTHS, &mut out);
    out.into_bytes()
}

/// Reads some of a vector's counters; how many were looked at.
#[track_caller]
fn check(counters: usize, wanted: &[u32]) -> usize {
    let cells = vector(counters);
    let (bytes, mut found) = (packed(&cells), Vec::new());
    let mut input = Reader::new(&bytes);
    let read = decode_some(counters, wanted, WIDTHS, &mut input, |cell| found.push(cell)).unwrap();
    input.finish().unwrap();
    let expected: Vec<Wide> = wanted.iter().map(|&counter| cells[counter as usize]).collect();
    assert_eq!(found, expected);
    read
}

#[test]
fn a_counter_is_reached_without_reading_those_of_other_blocks() {
    assert_eq!(check(65_536, &[]), 0);
    assert_eq!(check(65_536, &[0]), 1);
    assert_eq!(check(65_536, &[65_535]), BLOCK_CELLS);
    assert_eq!(check(65_536, &[64 * 500 + 7, 64 * 500 + 9, 64 * 800]), 10 + 1);
    assert_eq!(check(1000, &[999]), 1000 - 64 * 15);
    assert_eq!(check(1, &[0]), 1);
}

/// Twenty counters of a flow take a block each at most.
#[test]
fn those_of_a_flow_are_a_small_part_of_the_vector() {
    let mut own: Vec<u32> = (0..20).map(|number| (mix(number) % 65_536) as u32).collect();
    own.sort_unstable();
    let read = check(65_536, &own);
    assert!(read <= 20 * BLOCK_CELLS, "{read}");
}

#[test]
fn lengths_of_blocks_take_little_room() {
    let cells = vector(65_536);
    let with = packed(&cells).len() as f64;
    let format = Format::of(&cells, WIDTHS);
    let mut bits = BitWriter::default();
    cells.iter().for_each(|cell| format.write(cell, WIDTHS, &mut bits));
    let without = bits.into_bytes().len() as f64;
    println!("{with} bytes, {without} without lengths of blocks");
    assert!(with < 1.005 * without, "{with} {without}");
}

#[test]
fn lengths_that_do_not_fit_the_counters_are_refused() {
    let cells = vector(256);
    let format = Format::of(&cells, WIDTHS);
    let mut out = Writer::new();
    format.encode(&mut out);
    let before = out.as_slice().len();
    let bytes = packed(&cells);
    for (at, whole) in [(before, true), (before + 4, true), (before + 9, true)] {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let read = decode(256, WIDTHS, &mut Reader::new(&changed), |_| ());
        assert_eq!(read.is_err(), whole, "byte {at}");
    }
}

/// Bytes of a hostile sender may hold more large counts than there is room for: that is noticed.
#[test]
fn counts_that_find_no_room_when_they_are_read_are_lost() {
    let widths = Widths { time_bits: 64, digest_bits: 64, has_bytes: false };
    let mut cells = Cells::with_escapes(widths, 8, 8);
    for cell in 0..4 {
        cells.set(cell, &Sums { times: 1, packets: u64::MAX, digests: 2 }.into());
    }
    cells.lose_counts(5);
    let mut out = Writer::new();
    encode_cells(&cells, 4, &mut out);
    let mut read = Cells::new(widths, 8);
    decode_cells(&mut read, 4, &mut Reader::new(out.as_slice())).unwrap();
    assert_eq!(read.counts_lost(), 5 + 3);
    assert_eq!(read.wide(0), cells.wide(0));
}

proptest! {
    /// Bytes are a column of their own; sums of any width and size read back.
    #[test]
    fn cells_of_any_widths_read_back(
        time_bits in 8..=64_u8, digest_bits in 0..=64_u8, has_bytes in any::<bool>(),
        wide in prop::collection::vec((any::<u64>(), 0..300_u64, any::<u64>(), 0..400_000_u64), 1..200),
        large in any::<u64>(),
    ) {
        let widths = Widths { time_bits, digest_bits, has_bytes };
        let cells: Vec<Wide> = wide.iter().map(|&(times, packets, digests, bytes)| {
            let packets = if times % 50 == 0 { large } else { packets };
            widths.trimmed(Wide { sums: Sums { times, packets, digests }, bytes })
        }).collect();
        let mut out = Writer::new();
        encode(&cells, widths, &mut out);
        let (bytes, mut found) = (out.into_bytes(), Vec::new());
        let mut input = Reader::new(&bytes);
        decode(cells.len(), widths, &mut input, |cell| found.push(cell)).unwrap();
        prop_assert!(input.finish().is_ok());
        prop_assert_eq!(found, cells);
    }

    #[test]
    fn any_bytes_are_read_without_panic(
        mut bytes in Just(packed(&vector(200))), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(), wanted in prop::collection::btree_set(0..200_u32, 0..20),
    ) {
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        let wanted: Vec<u32> = wanted.into_iter().collect();
        for has_bytes in [false, true] {
            let widths = Widths { has_bytes, ..WIDTHS };
            let _ = decode(200, widths, &mut Reader::new(&bytes), |_| ());
            let _ = decode_without_blocks(200, widths, &mut Reader::new(&bytes), |_| ());
            let _ = decode_some(200, &wanted, widths, &mut Reader::new(&bytes), |_| ());
        }
    }
}
