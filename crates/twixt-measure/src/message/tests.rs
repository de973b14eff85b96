use proptest::prelude::*;
use twixt_model::{Batch, Detail, FlowKey};
use twixt_testing::{check_golden, golden};

use super::*;
use crate::fixtures::{at_ms, config, packet, seal};
use crate::meter::{Meter, MeterConfig};

fn sealed() -> Sealed {
    let config = MeterConfig {
        class: "voice".to_owned(),
        run: 0x0123_4567_89ab_cdef,
        clock_bound: Some(Delay::from_nanos(1_500)),
        time_source: TimeSource::Hardware,
        shift: Delay::from_nanos(-3),
        digest: DigestIdentity {
            groups: GroupPrefixes { v4: 16, v6: 40 },
            ..config("paris").digest
        },
        ..config("paris")
    };
    let mut packets: Vec<Observation> =
        (0..10).map(|n| packet(n + 1, at_ms(n as i64 * 9))).collect();
    packets.iter_mut().for_each(|packet| packet.group = GroupId(packet.digest.0 as u16));
    let mut sealed = seal(config, "exact", &packets).remove(0);
    sealed.tally.skip("arp", 3);
    sealed.tally.skip("fragment", 1);
    sealed.tally.dropped = 7;
    sealed.tally.late = 2;
    sealed
}

/// A message whose checksum is right, whatever its fields.
fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let body = bytes.len() - CHECKSUM_BYTES;
    let checksum = xxh3_64(&bytes[..body]);
    bytes[body..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[track_caller]
fn check_refused(change: impl FnOnce(&mut Sealed), message: &str) {
    let mut changed = sealed();
    change(&mut changed);
    assert_eq!(Sealed::from_bytes(&changed.to_bytes()).unwrap_err().to_string(), message);
}

#[test]
fn a_sealed_epoch_reads_back() {
    let sealed = sealed();
    let read = Sealed::from_bytes(&sealed.to_bytes()).unwrap();
    assert_eq!(format!("{read:?}"), format!("{sealed:?}"));
    assert_eq!(read.to_bytes(), sealed.to_bytes());
}

fn golden_name(version: u8) -> String {
    format!("sealed-v{version}.bin")
}

fn of_version(version: u8) -> Vec<u8> {
    golden(&golden_name(version))
}

/// What was written before groups says nothing of them.
#[test]
fn golden_bytes_of_version_1_read_back() {
    let read = Sealed::from_bytes(&of_version(1)).unwrap();
    let mut expected = sealed();
    expected.digest.groups = GroupPrefixes::default();
    let stashes = [&mut expected.head, &mut expected.tail];
    for stash in stashes {
        let mut packets = stash.observations().to_vec();
        packets.iter_mut().for_each(|packet| packet.group = GroupId(0));
        *stash = stash.clone().restored(packets, stash.overflow());
    }
    assert_eq!(format!("{read:?}"), format!("{expected:?}"));
}

/// What was written before observations were in columns.
#[test]
fn golden_bytes_of_version_2_read_back() {
    let read = Sealed::from_bytes(&of_version(2)).unwrap();
    assert_eq!(format!("{read:?}"), format!("{:?}", sealed()));
}

/// Checks that a release that writes this version still reads and writes these bytes.
#[track_caller]
fn check_version(version: u8, sealed: &Sealed) {
    check_golden(&golden_name(version), &sealed.to_bytes());
    let read = Sealed::from_bytes(&of_version(version)).unwrap();
    assert_eq!(format!("{read:?}"), format!("{sealed:?}"));
    assert_eq!(read.to_bytes(), of_version(version));
}

#[test]
fn golden_bytes_of_version_3_read_back() {
    check_version(3, &sealed());
}

/// Only an epoch that states how many packets are missing needs what older releases do not read.
#[test]
fn golden_bytes_of_version_4_read_back() {
    let mut sealed = sealed();
    sealed.tally.missing_max = Some(9);
    check_version(4, &sealed);
}

/// Trusted bytes need no checksums.
#[test]
fn an_epoch_about_no_flow_in_particular_reads_back_whole() {
    let mut bytes = sealed().to_bytes();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    assert!(Sealed::from_bytes(&bytes).is_err());
    let read = Sealed::about(&bytes, &[]).unwrap();
    assert_eq!(read.to_bytes(), sealed().to_bytes());
}

#[test]
fn fields_that_no_writer_of_ours_writes_are_refused_by_name() {
    check_refused(
        |sealed| sealed.domain = "x".repeat(256),
        "domain: 256 bytes, at most 255 are allowed",
    );
    check_refused(
        |sealed| sealed.epoch = Epoch(i64::MAX),
        "epoch: number 9223372036854775807 does not exist at 100000000 ns",
    );
    check_refused(|sealed| sealed.rule = EpochRule::every(5).unwrap(), "epoch length: 5 ns");
    check_refused(
        |sealed| sealed.seen = Some(Span { start: at_ms(2), end: at_ms(1) }),
        "last time: is before the first",
    );
    check_refused(
        |sealed| sealed.digest.groups.v4 = 33,
        "group prefixes: GroupPrefixes { v4: 33, v6: 40 }",
    );
    check_refused(|sealed| sealed.guard = Delay::from_nanos(-1), "guard: -1 ns");
}

#[test]
fn other_versions_and_files_are_refused() {
    let mut bytes = sealed().to_bytes();
    bytes[4] = 5;
    assert_eq!(
        Sealed::from_bytes(&bytes).unwrap_err().to_string(),
        "sealed epoch format version 5, newest known is 4"
    );
    bytes[0] = b'X';
    assert_eq!(Sealed::from_bytes(&bytes).unwrap_err().to_string(), "not a sealed epoch");
    assert!(Sealed::from_bytes(&[]).is_err());
}

proptest! {
    #![proptest_config(twixt_testing::cases(256))]

    #[test]
    fn damage_is_found(bit in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>()) {
        let mut bytes = sealed().to_bytes();
        prop_assert!(Sealed::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Sealed::from_bytes(&bytes).is_err());
    }

    /// With a valid checksum, the fields are reached.
    #[test]
    fn no_bytes_make_it_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        noise in prop::collection::vec(any::<u8>(), 0..64),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = sealed().to_bytes();
        for (place, byte) in changes {
            let place = 5 + place.index(bytes.len() - 5);
            bytes[place] = byte;
        }
        let cut_short = bytes[..CHECKSUM_BYTES + cut.index(bytes.len() - CHECKSUM_BYTES)].to_vec();
        for hostile in [with_checksum(bytes), with_checksum(cut_short), noise] {
            let read = [Sealed::from_bytes(&hostile), Sealed::about(&hostile, &[])];
            for sealed in read.into_iter().flatten() {
                let _ = sealed.to_bytes();
            }
        }
    }
}

/// Many flows, each a request and its response, so that one-point algorithms have something to keep.
fn conversations(packets: u64) -> (Vec<Observation>, Vec<Detail>) {
    let observation = |n: u64| Observation {
        flow: FlowHash(n / 2),
        ..packet(twixt_model::mix(n), at_ms(0) + Delay::from_nanos(n as i64 * 4_000))
    };
    let detail = |n: u64| {
        let (near, far) = ([10, 0, (n >> 9) as u8, (n >> 1) as u8].into(), [10, 1, 0, 1].into());
        let (source, destination) = if n.is_multiple_of(2) { (near, far) } else { (far, near) };
        let key = FlowKey { source, destination, protocol: 6, ..FlowKey::default() };
        Detail { key, ..Detail::default() }
    };
    ((0..packets).map(observation).collect(), (0..packets).map(detail).collect())
}

/// The memory for bytes from outside is known before they are decoded, for every algorithm: blank,
/// with few packets, and full.
#[test]
fn decoding_takes_no_more_memory_than_was_told() {
    for algorithm in twixt_synopsis::ALGORITHMS {
        let settings = [None, (algorithm.sized)(1 << 14), (algorithm.sized)(1 << 20)];
        for settings in settings.into_iter().flatten().chain([toml::Table::new()]) {
            for packets in [0, 100, 20_000] {
                let (observations, details) = conversations(packets);
                let synopsis = (algorithm.start)(&settings).unwrap();
                let mut meter = Meter::new(config("paris"), synopsis).unwrap();
                meter.observe(Batch { observations: &observations, details: &details });
                meter.advance(at_ms(100));
                meter.finish();
                let bytes = meter.poll().expect("an epoch is over").to_bytes();
                let announced = Sealed::decoded_bytes(&bytes).unwrap();
                let taken =
                    allocation_counter::measure(|| drop(Sealed::from_bytes(&bytes).unwrap()));
                let of =
                    format!("{} {} {settings} {packets}", algorithm.purpose.name(), algorithm.name);
                assert!(taken.bytes_max <= announced, "{of}: {taken:?}, {announced} announced");
                let most = 128 * (bytes.len() as u64 + taken.bytes_max);
                assert!(announced <= most, "{of}: {announced} announced for {} bytes", bytes.len());
            }
        }
    }
}

#[test]
fn memory_is_told_for_every_version() {
    for version in 1..=VERSION {
        let bytes = of_version(version);
        let taken = allocation_counter::measure(|| drop(Sealed::from_bytes(&bytes).unwrap()));
        let announced = Sealed::decoded_bytes(&bytes).unwrap();
        assert!(taken.bytes_max <= announced, "{version}: {taken:?}, {announced} announced");
    }
    let mut damaged = sealed().to_bytes();
    damaged[40] ^= 1;
    assert!(matches!(Sealed::decoded_bytes(&damaged), Err(DecodeError::Checksum { .. })));
}
