//! Vectors read back, whole and in part, and hostile bytes.

use proptest::prelude::*;
use twixt_model::mix;

use super::*;

const STORED: Stored = Stored { resolution_ns: 1, time_bits: 24, digest_bits: 8 };

/// Counters of about 450 packets each, as in epochs of a minute at 500 000 packets per second.
fn vector(counters: usize) -> Vec<Sums> {
    let cell = |number: u64| {
        let packets = 400 + mix(number) % 100;
        let times = packets.wrapping_mul(123_456_789).wrapping_add(mix(!number) % 100_000);
        Sums { times: times & 0xff_ffff, packets, digests: mix(number ^ 77) & 0xff }
    };
    (0..counters as u64).map(cell).collect()
}

fn packed(cells: &[Sums]) -> Vec<u8> {
    let mut out = Writer::new();
    encode(cells, STORED, &mut out);
    out.into_bytes()
}

/// Reads some of a vector's counters; how many were looked at.
#[track_caller]
fn check(counters: usize, wanted: &[u32]) -> usize {
    let cells = vector(counters);
    let (bytes, mut found) = (packed(&cells), Vec::new());
    let mut input = Reader::new(&bytes);
    let read = decode_some(counters, wanted, STORED, &mut input, &mut found).unwrap();
    input.finish().unwrap();
    let expected: Vec<Sums> = wanted.iter().map(|&counter| cells[counter as usize]).collect();
    assert_eq!(found, expected);
    read
}

#[test]
fn a_counter_is_reached_without_reading_those_of_other_blocks() {
    assert_eq!(check(65_536, &[]), 0);
    assert_eq!(check(65_536, &[0]), 1);
    assert_eq!(check(65_536, &[65_535]), BLOCK_COUNTERS);
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
    assert!(read <= 20 * BLOCK_COUNTERS, "{read}");
}

#[test]
fn lengths_of_blocks_take_little_room() {
    let cells = vector(65_536);
    let with = packed(&cells).len() as f64;
    let format = Format::of(&cells, STORED);
    let mut bits = BitWriter::default();
    cells.iter().for_each(|cell| format.write(cell, STORED, &mut bits));
    let without = bits.into_bytes().len() as f64;
    println!("{with} bytes, {without} without lengths of blocks");
    assert!(with < 1.005 * without, "{with} {without}");
}

#[test]
fn lengths_that_do_not_fit_the_counters_are_refused() {
    let cells = vector(256);
    let format = Format::of(&cells, STORED);
    let mut out = Writer::new();
    format.encode(&mut out);
    let before = out.as_slice().len();
    let bytes = packed(&cells);
    for (at, whole) in [(before, true), (before + 4, true), (before + 9, true)] {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let mut found = Vec::new();
        let read = decode(256, STORED, &mut Reader::new(&changed), &mut found);
        assert_eq!(read.is_err(), whole, "byte {at}");
    }
}

proptest! {
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
        for version in [decode, decode_first] {
            let _ = version(200, STORED, &mut Reader::new(&bytes), &mut Vec::new());
        }
        let _ = decode_some(200, &wanted, STORED, &mut Reader::new(&bytes), &mut Vec::new());
    }
}
