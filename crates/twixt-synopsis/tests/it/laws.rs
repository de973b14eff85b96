//! The laws of `Synopsis` and `TwoPoint`, for every entry of the registry, and golden bytes.

use proptest::prelude::*;
use twixt_model::{
    Batch, ClassId, Detail, FlowHash, FlowKey, GroupId, Observation, PacketDigest, Timestamp,
};
use twixt_synopsis::{
    ALGORITHMS, Algorithm, AnySynopsis, Estimator, Purpose, SplitMerge, decode, encode,
};
use twixt_testing::{check_golden, golden};

/// Packets of a few flows; digests from a small range, so that some packets are identical.
fn packets(most: usize) -> impl Strategy<Value = Vec<Observation>> {
    let packet = (any::<i64>(), 0..500_u64, 0..9_u64, 20..1500_u32, 0..3_u16);
    let observation = packet.prop_map(|(time_ns, digest, flow, length, class)| Observation {
        time: Timestamp::from_nanos(time_ns),
        digest: PacketDigest(digest.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        flow: FlowHash(flow),
        length,
        class: ClassId(class),
        group: GroupId((flow * 0x1357) as u16),
    });
    prop::collection::vec(observation, 0..most)
}

/// Equal flow hashes have equal keys.
fn details(packets: &[Observation]) -> Vec<Detail> {
    let key =
        |packet: &Observation| FlowKey { source_port: packet.flow.0 as u16, ..FlowKey::default() };
    packets.iter().map(|packet| Detail { key: key(packet), ..Detail::default() }).collect()
}

/// Small where the algorithm can be, so that cells fill up and golden files stay short.
const MEMORY_BYTES: u64 = 4096;

fn of(algorithm: &Algorithm, packets: &[Observation]) -> Box<dyn AnySynopsis> {
    let settings = (algorithm.sized)(MEMORY_BYTES).unwrap_or_default();
    let mut synopsis = (algorithm.start)(&settings).unwrap();
    synopsis.update_batch(Batch { observations: packets, details: &details(packets) });
    synopsis
}

fn merged(one: &dyn AnySynopsis, other: &dyn AnySynopsis) -> Box<dyn AnySynopsis> {
    let mut sum = one.duplicate();
    sum.try_merge(other).unwrap();
    sum
}

fn exact_mergers() -> impl Iterator<Item = &'static Algorithm> {
    ALGORITHMS.iter().filter(|algorithm| algorithm.split_merge == SplitMerge::Exact)
}

proptest! {
    #![proptest_config(twixt_testing::cases(48))]

    #[test]
    fn law_1_merge_is_commutative_and_associative(a in packets(60), b in packets(60), c in packets(60)) {
        for algorithm in exact_mergers() {
            let (a, b, c) = (of(algorithm, &a), of(algorithm, &b), of(algorithm, &c));
            let (a, b, c) = (a.as_ref(), b.as_ref(), c.as_ref());
            prop_assert_eq!(encode(merged(a, b).as_ref()), encode(merged(b, a).as_ref()));
            let left = merged(merged(a, b).as_ref(), c);
            let right = merged(a, merged(b, c).as_ref());
            prop_assert_eq!(encode(left.as_ref()), encode(right.as_ref()));
            prop_assert_eq!(encode(merged(a, a.fresh().as_ref()).as_ref()), encode(a));
        }
    }

    #[test]
    fn law_2_split_and_merge_is_the_whole(packets in packets(120), cut in 0..120_usize) {
        let (front, back) = packets.split_at(cut.min(packets.len()));
        for algorithm in exact_mergers() {
            let parts = merged(of(algorithm, front).as_ref(), of(algorithm, back).as_ref());
            prop_assert_eq!(encode(parts.as_ref()), encode(of(algorithm, &packets).as_ref()));
        }
    }

    #[test]
    fn law_3_what_is_written_reads_back(packets in packets(120)) {
        for algorithm in ALGORITHMS {
            let synopsis = of(algorithm, &packets);
            let bytes = encode(synopsis.as_ref());
            let (found, decoded) = decode(&bytes).unwrap();
            prop_assert_eq!(found.name, algorithm.name);
            prop_assert_eq!(encode(decoded.as_ref()), bytes);
            prop_assert_eq!(decoded.totals(), synopsis.totals());
            prop_assert_eq!(decoded.config(), synopsis.config());
        }
    }

    #[test]
    fn law_3_damaged_bytes_are_refused_without_panic(
        packets in packets(30), position in any::<prop::sample::Index>(), bit in 0..8_u32,
    ) {
        for algorithm in ALGORITHMS {
            let mut bytes = encode(of(algorithm, &packets).as_ref());
            let index = position.index(bytes.len());
            prop_assert!(decode(&bytes[..index]).is_err());
            bytes[index] ^= 1 << bit;
            prop_assert!(decode(&bytes).is_err());
        }
    }

    /// A hostile sender can compute the checksum: the fields themselves must be safe to read.
    #[test]
    fn law_3_well_sealed_nonsense_never_panics(
        tag in 0..64_u16, body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut bytes = b"TWXS\x01".to_vec();
        bytes.extend(tag.to_le_bytes());
        bytes.extend(body);
        bytes.extend(xxhash_rust::xxh3::xxh3_64(&bytes).to_le_bytes());
        let _ = decode(&bytes);
    }

    #[test]
    fn law_4_equal_streams_give_equal_bytes(packets in packets(120)) {
        for algorithm in ALGORITHMS {
            prop_assert_eq!(
                encode(of(algorithm, &packets).as_ref()),
                encode(of(algorithm, &packets).as_ref())
            );
        }
    }

    #[test]
    fn law_5_remove_is_the_inverse_of_update(kept in packets(60), moved in packets(20)) {
        for algorithm in ALGORITHMS {
            let Estimator::TwoPoint { remove, .. } = algorithm.estimator else { continue };
            let mut synopsis = of(algorithm, &kept);
            let before = encode(synopsis.as_ref());
            synopsis.update_batch(Batch::of(&moved));
            for packet in &moved {
                remove(synopsis.as_mut(), packet).unwrap();
            }
            prop_assert_eq!(encode(synopsis.as_ref()), before);
        }
    }

    #[test]
    fn every_packet_is_counted_whether_sampled_or_not(packets in packets(120)) {
        for algorithm in ALGORITHMS {
            let totals = of(algorithm, &packets).totals();
            prop_assert_eq!(totals.packets, packets.len() as u64);
            prop_assert_eq!(totals.bytes, packets.iter().map(|packet| u64::from(packet.length)).sum::<u64>());
        }
    }
}

/// Every format we ever released stays readable: these files are never deleted. Run with
/// `TWIXT_BLESS=1` to write the file of a new algorithm.
#[test]
fn golden_bytes_read_back_to_the_bit() {
    for algorithm in ALGORITHMS {
        let name = golden_name(algorithm, algorithm.version);
        let packets: Vec<Observation> = (0..100)
            .map(|number| Observation {
                time: Timestamp::from_nanos(1_700_000_000_000_000_000 + number * 1_000),
                digest: PacketDigest(twixt_model::mix(number as u64)),
                flow: FlowHash(number as u64 % 7),
                length: 40 + number as u32,
                class: ClassId((number % 2) as u16),
                group: GroupId((number % 7) as u16 * 0x1357),
            })
            .collect();
        check_golden(&name, &encode(of(algorithm, &packets).as_ref()));
        let present = golden(&name);
        assert_eq!(encode(decode(&present).unwrap().1.as_ref()), present, "{}", algorithm.name);
        for version in 1..algorithm.version {
            let older = decode(&golden(&golden_name(algorithm, version))).unwrap().1;
            // With its own settings: what fits into the memory may have changed.
            let mut again = older.fresh();
            again.update_batch(Batch { observations: &packets, details: &details(&packets) });
            let (older, again) = (encode(older.as_ref()), encode(again.as_ref()));
            assert_eq!(older, again, "{} version {version}", algorithm.name);
        }
    }
}

/// Algorithms for delay have no prefix; others may share a name with one of them.
fn golden_name(algorithm: &Algorithm, version: u8) -> String {
    match algorithm.purpose {
        Purpose::Delay => format!("{}-v{version}.bin", algorithm.name),
        purpose => format!("{}-{}-v{version}.bin", purpose.name(), algorithm.name),
    }
}
