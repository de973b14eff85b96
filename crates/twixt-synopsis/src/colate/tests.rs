//! Counting, folding, and what is kept of sums.

use proptest::prelude::*;
use twixt_model::{FlowHash, GroupId, PacketDigest, Timestamp, mix};

use super::*;

fn packet(number: u64, time_ns: i64) -> Observation {
    Observation {
        time: Timestamp::from_nanos(time_ns),
        digest: PacketDigest(mix(number)),
        flow: FlowHash(mix(number % 13)),
        length: 100,
        group: GroupId((number % 13 % 5) as u16),
        ..Observation::default()
    }
}

fn config(counters: u32, banks: u32, sampling: &[f64]) -> ColateConfig {
    ColateConfig::new(counters, 5, sampling).unwrap().with_banks(banks).unwrap()
}

fn of(config: &ColateConfig, times_ns: &[i64]) -> Colate {
    let mut colate = Colate::new(config);
    for (number, &time_ns) in times_ns.iter().enumerate() {
        colate.update(&packet(number as u64, time_ns));
    }
    colate
}

#[test]
fn a_packet_is_counted_once_in_every_vector_that_samples_it() {
    let times: Vec<i64> = (0..10_000).collect();
    let colate = of(&config(64, 4, &[1.0, 0.25]), &times);
    let counted = |vector: std::ops::Range<usize>| -> u64 {
        vector.map(|cell| colate.sums(cell).packets).sum()
    };
    assert_eq!(counted(0..64), 10_000);
    // Ten standard deviations.
    assert!(counted(64..128).abs_diff(2500) < 433);
    assert_eq!(colate.state_bytes(), 16 + 128 * 19 + 2 * 24 + 16);
}

/// Of lengths around that of a batch, whatever the sampling and what is kept.
#[test]
fn many_packets_at_once_are_counted_as_one_by_one() {
    let stored = Stored { resolution_ns: 10, time_bits: 24, digest_bits: 8 };
    let config = config(64, 4, &[1.0, 0.25]).with_stored(stored).unwrap();
    for count in [0, 1, 255, 256, 257, 1000] {
        let times: Vec<i64> = (0..count).map(|number| number * 1_000_003).collect();
        let packets: Vec<Observation> =
            times.iter().enumerate().map(|(number, &time)| packet(number as u64, time)).collect();
        let mut at_once = Colate::new(&config);
        at_once.update_all(&packets);
        assert_eq!(at_once, of(&config, &times), "{count}");
    }
}

#[test]
fn a_flow_stays_within_one_bank() {
    let config = config(64, 4, &[1.0]);
    let times: Vec<i64> = (0..1000).collect();
    let alone: Vec<Observation> =
        times.iter().map(|&time| packet(13 * time as u64, time)).collect();
    let mut colate = Colate::new(&config);
    alone.iter().for_each(|packet| colate.update(packet));
    let cells: Vec<Wide> = colate.cells.iter().collect();
    let banks = cells.chunks(16).filter(|bank| bank.iter().any(|cell| cell.sums.packets > 0));
    assert_eq!(banks.count(), 1);
    let counters = cells.iter().filter(|cell| cell.sums.packets > 0).count();
    assert!((2..=5).contains(&counters), "{counters}");
}

proptest! {
    #![proptest_config(twixt_testing::cases(64))]

    /// Law 6.
    #[test]
    fn folding_equals_counting_in_fewer_counters(
        times in prop::collection::vec(any::<i64>(), 0..200), banks in 0..3_u32, counters in 0..3_u32,
    ) {
        let small = config(48, 2, &[1.0, 0.5]);
        let large = config(48 << banks << counters, 2 << banks, &[1.0, 0.5]);
        prop_assert_eq!(of(&large, &times).fold_to(&small), Some(of(&small, &times)));
    }

    #[test]
    fn bytes_read_back_whatever_the_sums(
        cells in prop::collection::vec((any::<u64>(), 0..50_u64, any::<u64>()), 48),
        time_bits in 8..=64_u8, digest_bits in 0..=64_u8, large in any::<u64>(),
    ) {
        let stored = Stored { resolution_ns: 1, time_bits, digest_bits };
        let config = config(48, 1, &[1.0]).with_stored(stored).unwrap();
        let mut colate = Colate::new(&config);
        for (cell, &(times, packets, digests)) in cells.iter().enumerate() {
            colate.cells.set(cell, &Sums { times, packets, digests }.into());
        }
        colate.cells.change(7, |cell| cell.sums.packets = large);
        let mut out = Writer::new();
        colate.encode(&mut out);
        let bytes = out.into_bytes();
        prop_assert_eq!(Colate::decode(&mut Reader::new(&bytes)).unwrap(), colate);
    }
}

#[test]
fn only_powers_of_two_are_folded_and_nothing_else_may_differ() {
    let colate = of(&config(60, 2, &[1.0]), &[1, 2, 3]);
    assert!(colate.fold_to(&config(30, 2, &[1.0])).is_some());
    assert!(colate.fold_to(&config(30, 1, &[1.0])).is_some());
    for other in [config(20, 2, &[1.0]), config(120, 2, &[1.0]), config(30, 2, &[0.5])] {
        assert_eq!(colate.fold_to(&other), None);
    }
    assert_eq!(colate.fold_to(&ColateConfig::new(30, 4, &[1.0]).unwrap()), None);
}

#[test]
fn what_is_postponed_is_what_would_have_been_recorded() {
    let stored = Stored { resolution_ns: 1000, time_bits: 24, digest_bits: 8 };
    let config = config(48, 2, &[1.0, 0.5]).with_stored(stored).unwrap();
    let times: Vec<i64> = (0..500).map(|number| number * 777_777 - 9_999).collect();
    let hour_ns = 3_600_000_000_000;
    let later: Vec<i64> = times.iter().map(|time| time + hour_ns).collect();
    let postponed = of(&config, &times).postponed(Delay::from_nanos(hour_ns));
    assert_eq!(postponed, Some(of(&config, &later)));
    assert_eq!(of(&config, &times).postponed(Delay::from_nanos(999)), None);
}

/// Delays of 1 ms plus a packet's number, and a reference of 900 us.
#[track_caller]
fn check_sums(stored: Stored, within_ns: i64) {
    let config = ColateConfig::new(4, 1, &[1.0]).unwrap().with_stored(stored).unwrap();
    let sent: Vec<i64> = (0..100).map(|number| 1_700_000_000_000_000_000 + number * 777).collect();
    let arrived: Vec<i64> =
        sent.iter().zip(0..).map(|(time, number)| time + 1_000_000 + number).collect();
    let (upstream, downstream) = (of(&config, &sent), of(&config, &arrived));
    let cells = (0..4).filter_map(|cell| Colate::usable(&upstream, &downstream, cell, 900_000));
    let (mut packets, mut sum_ns) = (0, 0);
    for cell in cells {
        packets += cell.packets;
        sum_ns += cell.delay_sum_ns;
    }
    assert_eq!(packets, 100);
    assert!((sum_ns - (100 * 100_000 + 4950)).abs() <= within_ns, "{sum_ns}");
}

#[test]
fn differences_survive_narrow_sums() {
    let stored = Stored::default();
    check_sums(stored, 0);
    check_sums(Stored { time_bits: 25, digest_bits: 8, ..stored }, 0);
    // Rounding is off by a unit per packet at most, and by a tenth of that on average.
    check_sums(Stored { resolution_ns: 1000, time_bits: 20, ..stored }, 20_000);
}

#[test]
fn counters_announced_but_not_there_are_refused_before_they_are_reserved() {
    let mut out = Writer::new();
    ColateConfig::new(1 << 24, 20, &[1.0]).unwrap().encode(&mut out);
    Totals::default().encode(&mut out);
    out.raw(&[0; 32]);
    let bytes = out.into_bytes();
    let error = Colate::decode(&mut Reader::new(&bytes)).unwrap_err().to_string();
    assert!(error.contains("fewer than announced"), "{error}");
}

fn known(flow: u64) -> KnownFlow {
    let hash = FlowHash(mix(flow));
    let group = GroupId((flow % 5) as u16);
    KnownFlow {
        hash,
        key: twixt_model::FlowKey::default(),
        group,
        packets: None,
        class: twixt_model::ClassId(0),
    }
}

/// An excerpt is what is read of bytes, what is picked from what was read whole, and what counts
/// the same packets itself.
#[track_caller]
fn check_excerpt(banks: u32, sampling: &[f64], flows: &[u64], counters_left: Option<usize>) {
    let config = config(1 << 15, banks, sampling);
    let flows: Vec<KnownFlow> = flows.iter().map(|&flow| known(flow)).collect();
    let times: Vec<i64> = (0..5000).map(|number| number * 777).collect();
    let whole = of(&config, &times);
    let excerpt = whole.about(&flows);
    assert_eq!(excerpt.as_ref().map(|excerpt| excerpt.cells.len()), counters_left);
    let mut out = Writer::new();
    whole.encode(&mut out);
    let bytes = out.into_bytes();
    let reading = Reading { version: Colate::VERSION, flows: Some(&flows) };
    let read = Colate::decode_for(&mut Reader::new(&bytes), reading).unwrap();
    assert_eq!(read, excerpt.clone().unwrap_or(whole));
    let Some(excerpt) = excerpt else { return };
    let mut counted = of(excerpt.config(), &times);
    assert_eq!(counted, excerpt);
    counted.update(&packet(3, 9));
    counted.remove(&packet(3, 9));
    assert_eq!(counted, excerpt);
}

#[test]
fn excerpts_count_as_the_whole_does() {
    check_excerpt(1, &[1.0], &[4], Some(1024 + 5));
    check_excerpt(1, &[1.0], &[4, 4], Some(1024 + 5));
    check_excerpt(1, &[1.0, 0.1], &[4], Some(2 * (1024 + 5)));
    check_excerpt(4, &[1.0], &[3], Some(1024 + 5));
    // Two flows in a bank each, or in one.
    check_excerpt(4, &[1.0], &[0, 5], Some(1024 + 10));
    // No flow is queried, or so many that reading all is as good.
    check_excerpt(1, &[1.0], &[], None);
    check_excerpt(1, &[1.0], &(0..3000).collect::<Vec<_>>(), None);
    check_excerpt(32, &[1.0], &[3], None);
}

#[test]
fn excerpts_are_compared_with_their_like_only() {
    let whole = of(&config(1 << 15, 1, &[1.0]), &[1, 2, 3]);
    let (one, other) = (whole.about(&[known(1)]).unwrap(), whole.about(&[known(2)]).unwrap());
    assert_ne!(one.config(), other.config());
    assert_eq!(one.fold_to(whole.config()), None);
    assert_eq!(whole.fold_to(one.config()), None);
}

proptest! {
    #![proptest_config(twixt_testing::cases(128))]

    /// Counters as wide as is configured tell what three whole words would.
    #[test]
    fn narrow_counters_know_what_wide_ones_do(
        one in prop::collection::vec(any::<i64>(), 0..80), other in prop::collection::vec(any::<i64>(), 0..80),
        time_bits in 8..=64_u8, digest_bits in 0..=64_u8, resolution_ns in 1..2000_u32,
    ) {
        let stored = Stored { resolution_ns, time_bits, digest_bits };
        let config = config(48, 2, &[1.0, 0.5]).with_stored(stored).unwrap();
        let mut colate = of(&config, &one);
        colate.merge(&of(&config, &other));
        let removed = &other[..other.len() / 2];
        let numbered = |times: &[i64]| -> Vec<Observation> {
            times.iter().enumerate().map(|(number, &time)| packet(number as u64, time)).collect()
        };
        numbered(removed).iter().for_each(|packet| colate.remove(packet));
        let mut wide = vec![Sums::default(); config.cells()];
        for packet in numbered(&one).iter().chain(&numbered(&other)[removed.len()..]) {
            let times = packet.time.as_nanos().div_euclid(i64::from(resolution_ns)) as u64;
            let sums = Sums { times, packets: 1, digests: packet.digest.0 };
            config.placing().cells_for(packet).for_each(|cell| wide[cell].add(&sums));
        }
        for (index, cell) in wide.iter().enumerate() {
            let expected = stored.widths().trimmed((*cell).into());
            prop_assert_eq!(colate.sums(index), expected.sums);
        }
        prop_assert_eq!(colate.cells.counts_lost(), 0);
    }
}

/// Bytes of a counter follow from the settings: 24 before, whatever they were.
#[test]
fn counters_take_the_bytes_that_are_configured() {
    let bytes = |time_bits, digest_bits| {
        let stored = Stored { resolution_ns: 1000, time_bits, digest_bits };
        let config = config(64 << 10, 1, &[1.0]).with_stored(stored).unwrap();
        (config.state_bytes() - 32 - 1024 * 24) as f64 / 65_536.0
    };
    assert_eq!(bytes(64, 64), 19.0);
    assert_eq!(bytes(24, 8), 7.0);
    assert_eq!(bytes(24, 0), 6.0);
}
