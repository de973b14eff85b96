//! Random packet streams: whatever the delays, the order and the stash, no estimate is wrong.

use proptest::prelude::*;
use twixt_model::{EpochRule, Observation, PacketDigest, Timestamp};
use xxhash_rust::xxh3::xxh3_64;

use super::{delayed, epochs, events, pair, show};
use crate::fixtures::{MS, config, packet, pairing, seal};
use crate::meter::MeterConfig;
use crate::pairing::{Pairing, PairingEvent};
use crate::sealed::Sealed;

/// Digest, upstream time and delay of each packet.
fn streams() -> impl Strategy<Value = Vec<(u64, i64, i64)>> {
    prop::sample::select(vec![0..=18 * MS, -20 * MS..=20 * MS]).prop_flat_map(|delay_ns| {
        prop::collection::vec((any::<u64>(), 0_i64..1_000 * MS, delay_ns), 1..400)
    })
}

fn seal_in_time_order(
    config: MeterConfig,
    algorithm: &str,
    packets: &[Observation],
) -> Vec<Sealed> {
    let mut packets = packets.to_vec();
    packets.sort_unstable();
    seal(config, algorithm, &packets)
}

/// The packets of a stream at both points. Digests are unique: equal packets that come from
/// beyond the guard cannot be distinguished.
fn observe(stream: &[(u64, i64, i64)]) -> (Vec<Observation>, Vec<Observation>) {
    let both = (0..).zip(stream).map(|(index, &(digest, time_ns, delay_ns))| {
        let digest = PacketDigest(digest).derive(0).wrapping_mul(1_024) + index;
        let at = |time_ns| packet(digest, Timestamp::from_nanos(time_ns));
        (at(time_ns), at(time_ns + delay_ns))
    });
    both.unzip()
}

/// Any order of arrival: a walk around the ring of all epochs.
fn reorder(sealed: &[Sealed], start: prop::sample::Index, step: usize) -> Vec<Sealed> {
    let count = sealed.len();
    let step = if count.is_multiple_of(step) { 1 } else { step };
    (0..count).map(|place| sealed[(start.index(count) + place * step) % count].clone()).collect()
}

fn unsplit_sum_ns(upstream: &[Observation], downstream: &[Observation]) -> i128 {
    let whole = |point| MeterConfig { rule: EpochRule::WHOLE, ..config(point) };
    let mut sealed = seal(whole("up"), "exact", upstream);
    sealed.extend(seal(whole("down"), "exact", downstream));
    match &pair(sealed).0[..] {
        [PairingEvent::Estimated { estimates, .. }] => estimates[0].delay.unwrap().sum_ns,
        events => panic!("{events:?}"),
    }
}

proptest! {
    #![proptest_config(twixt_testing::cases(64))]

    #[test]
    fn every_packet_is_used_in_the_epoch_of_its_upstream_time(
        stream in streams(),
        arrival in any::<prop::sample::Index>(),
        step in prop::sample::select(vec![1_usize, 3, 7, 11]),
    ) {
        let (upstream, downstream) = observe(&stream);
        let short = stream.iter().all(|(_, _, delay_ns)| (0..=18 * MS).contains(delay_ns));
        for algorithm in ["exact", "lda"] {
            let mut sealed = seal_in_time_order(config("up"), algorithm, &upstream);
            sealed.extend(seal_in_time_order(config("down"), algorithm, &downstream));
            let (events, counts) = pair(reorder(&sealed, arrival, step));
            let (mut sum_ns, mut used) = (0, 0);
            for event in &events {
                let PairingEvent::Estimated { estimates, span, .. } = event else { continue };
                let evidence = estimates[0].evidence;
                let truth = upstream.iter().filter(|packet| span.contains(packet.time)).count();
                prop_assert_eq!(evidence.packets, truth as u64, "{}", show(event));
                prop_assert_eq!(evidence.used, truth as u64, "{}", show(event));
                prop_assert!(matches!(evidence.lost, None | Some(0)), "{}", show(event));
                if short {
                    prop_assert_eq!(evidence.lost, Some(0), "{}", show(event));
                }
                sum_ns += estimates[0].delay.map_or(0, |delay| delay.sum_ns);
                used += evidence.used;
            }
            let unsplit_ns = unsplit_sum_ns(&upstream, &downstream);
            prop_assert_eq!((sum_ns, used), (unsplit_ns, stream.len() as u64));
            prop_assert_eq!(counts.duplicates + counts.refused + counts.late, 0);
        }
    }

    /// Delays beyond the guard and stashes too small cost packets, and no truth.
    #[test]
    fn no_mean_is_ever_wrong(
        stream in streams(),
        delay_ms in -60_i64..60,
        stash_max in 0_usize..12,
    ) {
        let upstream = observe(&stream).0;
        let downstream = delayed(&upstream, delay_ms);
        for algorithm in ["exact", "lda"] {
            let small = |point| MeterConfig { stash_max, ..config(point) };
            let mut sealed = seal_in_time_order(small("up"), algorithm, &upstream);
            sealed.extend(seal_in_time_order(small("down"), algorithm, &downstream));
            let overflow: u64 = sealed.iter().map(Sealed::stash_overflow).sum();
            for event in pair(sealed).0 {
                let PairingEvent::Estimated { estimates, .. } = &event else { continue };
                if let Some(delay) = estimates[0].delay {
                    let expected_ns = i128::from(delay_ms * MS) * i128::from(delay.count);
                    prop_assert_eq!(delay.sum_ns, expected_ns, "{}", show(&event));
                }
                if overflow == 0 && (0..=18).contains(&delay_ms) {
                    prop_assert_eq!(estimates[0].evidence.lost, Some(0), "{}", show(&event));
                }
            }
        }
    }

    /// With a valid checksum, the fields are reached.
    #[test]
    fn no_sealed_epoch_makes_pairing_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        victim in 0_usize..6,
    ) {
        let mut sealed = epochs();
        let mut bytes = sealed[victim].to_bytes();
        let body = bytes.len() - 8;
        // The fields before the cells, of which there are many.
        for (place, byte) in changes {
            bytes[5 + place.index(1_000)] = byte;
        }
        let checksum = xxh3_64(&bytes[..body]);
        bytes[body..].copy_from_slice(&checksum.to_le_bytes());
        if let Ok(changed) = Sealed::from_bytes(&bytes) {
            sealed[victim] = changed;
        }
        let (events, counts) = pair(sealed);
        prop_assert_eq!(counts.estimated + counts.unpaired + counts.refused, events.len() as u64);
    }
}

#[test]
fn nothing_is_expected_before_the_first_epoch_of_points_that_send_in_order() {
    let estimated = |pairing: &mut Pairing| -> Vec<i64> {
        let epochs = events(pairing).into_iter().map(|event| match event {
            PairingEvent::Estimated { epoch, .. } => epoch.0,
            _ => panic!("{event:?}"),
        });
        epochs.collect()
    };
    let (mut ordered, mut any) = (pairing().in_order(), pairing());
    for sealed in epochs() {
        any.receive(sealed.clone());
        ordered.receive(sealed);
    }
    assert_eq!((estimated(&mut any), estimated(&mut ordered)), (vec![], vec![0, 1]));
    any.finish();
    ordered.finish();
    assert_eq!((estimated(&mut any), estimated(&mut ordered)), (vec![0, 1, 2], vec![2]));
}
