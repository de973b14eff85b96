//! Bits per packet, encoded in several ways, and what fewer of them cost.

use twixt_synopsis::{AnySynopsis, Colate, ColateConfig, Stored, encode};

use crate::colate::traffic::{Traffic, config, traffic};

/// Every counter as it is: sum of times, packets, sum of digests.
fn plain(colate: &Colate) -> Vec<u8> {
    let mut bytes = Vec::new();
    for sums in colate.counters() {
        sums.iter().for_each(|sum| bytes.extend(sum.to_le_bytes()));
    }
    bytes
}

struct Sizes {
    plain: f64,
    plain_zstd: f64,
    packed: f64,
    packed_zstd: f64,
}

fn sizes(colate: &Colate) -> Sizes {
    let (plain, packed) = (plain(colate), encode(colate));
    let packets = AnySynopsis::totals(colate).packets as f64;
    let bits = |bytes: &[u8]| bytes.len() as f64 * 8.0 / packets;
    let zstd = |bytes: &[u8]| bits(&zstd::encode_all(bytes, 19).unwrap());
    Sizes {
        plain: bits(&plain),
        plain_zstd: zstd(&plain),
        packed: bits(&packed),
        packed_zstd: zstd(&packed),
    }
}

/// One line of the table: all of a sum, or as little as serves.
fn line(traffic: &Traffic, seconds: u64, counters: u32, stored: Stored) -> (Sizes, f64) {
    let colate = ColateConfig::new(counters, 20, &[1.0]).unwrap().with_stored(stored).unwrap();
    let ends = traffic.ends(&colate);
    let found = sizes(&ends.0);
    let scores = traffic.scores(&traffic.ask(&ends, "joint", true));
    let packets = AnySynopsis::totals(&ends.0).packets;
    println!(
        "| {seconds} s | {:.0} | {} ns | {} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} % | {:.1} % |",
        packets as f64 / f64::from(counters),
        stored.resolution_ns,
        stored.time_bits,
        stored.digest_bits,
        found.plain,
        found.plain_zstd,
        found.packed,
        found.packed_zstd,
        scores[2].median_error() * 100.0,
        scores[1].median_error() * 100.0,
    );
    (found, scores[2].median_error())
}

fn narrow(resolution_ns: u32, time_bits: u8, digest_bits: u8) -> Stored {
    Stored { resolution_ns, time_bits, digest_bits }
}

#[test]
fn packed_counters_are_small_and_narrow_ones_smaller() {
    let traffic = traffic(&config(1, 200_000));
    let (whole, error) = line(&traffic, 12, 9_107, Stored::default());
    assert!(whole.packed < 0.6 * whole.plain && whole.packed < whole.plain_zstd);
    let (small, narrow_error) = line(&traffic, 12, 9_107, narrow(1000, 24, 8));
    assert!(small.packed < 0.45 * whole.packed, "{}", small.packed);
    assert!((narrow_error - error).abs() < 0.002, "{error} {narrow_error}");
}

/// The table of the documentation. Packets per counter decide on bits per packet, so that fewer
/// packets in fewer counters stand for 30 million in 65 536.
#[test]
#[ignore = "takes minutes"]
fn bits_per_packet() {
    println!(
        "| epoch | packets per counter | resolution | time bits | digest bits | plain | plain, zstd | packed | packed, zstd | error, 1000+ | error, 100–999 |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for (packets, seconds) in [(100_000, 6), (1_000_000, 60)] {
        let traffic = traffic(&config(1, packets));
        for counters in [packets * 10 / 22, packets / 22, packets / 88, packets / 458] {
            for stored in [Stored::default(), narrow(1000, 24, 16), narrow(1000, 24, 8)] {
                check(line(&traffic, seconds, counters as u32, stored));
            }
        }
    }
    for counters in [2_184, 1_000, 500] {
        let traffic = traffic(&config(2, 1_000_000));
        for stored in [narrow(1000, 28, 16), narrow(10_000, 24, 8), narrow(100_000, 18, 4)] {
            check(line(&traffic, 60, counters, stored));
        }
    }
}

/// Packing is worth its while, whatever is stored.
#[track_caller]
fn check((sizes, error): (Sizes, f64)) {
    assert!(sizes.packed < sizes.plain && error.is_finite(), "{} {error}", sizes.packed);
}
