mod markers;
mod one_point;

use expect_test::{Expect, expect};
use proptest::prelude::*;
use twixt_model::{Delay, EpochRule};

use super::*;
use crate::fixtures::{MS, at_ms, config, drain, packet, seal, synopsis};

fn list(meter: &mut Meter) -> String {
    drain(meter).iter().map(|sealed| format!("{}\n", line(sealed))).collect()
}

fn line(sealed: &Sealed) -> String {
    let mut line = format!("epoch {}: {} packets", sealed.epoch.0, sealed.packets);
    assert_eq!(sealed.packets, sealed.synopsis.totals().packets);
    let (head, tail) = (sealed.head.observations().len(), sealed.tail.observations().len());
    let notes = [
        (head as u64, "head"),
        (tail as u64, "tail"),
        (sealed.stash_overflow(), "overflow"),
        (sealed.tally.late, "late"),
        (sealed.tally.dropped, "dropped"),
        (sealed.tally.skipped_total(), "skipped"),
        (u64::from(sealed.torn), "torn"),
    ];
    for (number, what) in notes.into_iter().filter(|(number, _)| *number > 0) {
        line += &format!(", {number} {what}");
    }
    line
}

#[track_caller]
fn check(config: MeterConfig, packets_ms: &[i64], expected: &Expect) {
    let mut meter = Meter::new(config, synopsis("exact")).unwrap();
    for &ms in packets_ms {
        meter.observe(Batch::of(&[packet(1, at_ms(ms))]));
    }
    meter.finish();
    expected.assert_eq(&list(&mut meter));
}

fn unguarded() -> MeterConfig {
    MeterConfig { guard: Delay::ZERO, ..config("up") }
}

#[test]
fn a_late_packet_still_counts_in_its_own_epoch() {
    let patient = MeterConfig { lateness: Delay::from_nanos(50 * MS), ..unguarded() };
    check(
        patient.clone(),
        &[10, 120, 95],
        &expect![[r#"
            epoch 0: 2 packets
            epoch 1: 1 packets
        "#]],
    );
    check(
        patient,
        &[110, 95, 120],
        &expect![[r#"
            epoch 0: 1 packets
            epoch 1: 2 packets
        "#]],
    );
}

#[test]
fn a_packet_later_than_that_is_counted_as_late() {
    check(
        unguarded(),
        &[10, 120, 95],
        &expect![[r#"
            epoch 0: 1 packets
            epoch 1: 1 packets, 1 late
        "#]],
    );
    let forever = MeterConfig { lateness: Delay::from_nanos(i64::MAX), ..unguarded() };
    check(
        forever,
        &[10, 820, 30],
        &expect![[r#"
            epoch 0: 1 packets
            epoch 1: 0 packets
            epoch 2: 0 packets
            epoch 3: 0 packets
            epoch 4: 0 packets
            epoch 5: 0 packets
            epoch 6: 0 packets
            epoch 7: 0 packets
            epoch 8: 1 packets, 1 late
        "#]],
    );
}

#[test]
fn silent_epochs_are_sealed() {
    check(
        unguarded(),
        &[-310, -10],
        &expect![[r#"
            epoch -4: 1 packets
            epoch -3: 0 packets
            epoch -2: 0 packets
            epoch -1: 1 packets
        "#]],
    );
}

#[test]
fn what_is_near_a_boundary_is_kept_and_the_surplus_counted() {
    check(
        config("up"),
        &[0, 19, 20, 79, 80, 99, 119],
        &expect![[r#"
            epoch 0: 6 packets, 2 head, 2 tail
            epoch 1: 1 packets, 1 head
        "#]],
    );
    let small = MeterConfig { stash_max: 1, ..config("up") };
    check(
        small,
        &[0, 19, 20, 79, 80, 99],
        &expect![[r#"
            epoch 0: 6 packets, 1 head, 1 tail, 2 overflow
        "#]],
    );
}

#[test]
fn a_shift_moves_packets_between_epochs_and_leaves_their_times() {
    let ahead = MeterConfig { shift: Delay::from_nanos(1_000_030 * MS), ..config("down") };
    let packets = [packet(1, at_ms(1_000_020)), packet(2, at_ms(1_000_040))];
    let sealed = seal(ahead, "exact", &packets);
    assert_eq!(sealed.iter().map(|sealed| sealed.epoch.0).collect::<Vec<_>>(), [-1, 0]);
    assert_eq!(sealed[1].seen, Some(Span::at(at_ms(1_000_040))));
    assert_eq!(sealed[1].head.observations(), &packets[1..]);
}

#[test]
fn the_whole_is_one_epoch_without_boundaries() {
    let whole = MeterConfig { rule: EpochRule::WHOLE, ..config("up") };
    let year_ms = 365 * 86_400_000;
    check(
        whole.clone(),
        &[0, 50 * year_ms, -50 * year_ms],
        &expect![[r#"
            epoch 0: 3 packets
        "#]],
    );
    check(
        whole.clone(),
        &[],
        &expect![[r#"
            epoch 0: 0 packets
        "#]],
    );
    let mut meter = Meter::new(whole, synopsis("exact")).unwrap();
    meter.finish();
    meter.finish();
    meter.observe(Batch::of(&[packet(1, at_ms(1))]));
    meter.finish();
    assert_eq!((drain(&mut meter).len(), meter.counts().late_packets), (1, 1));
}

#[test]
fn a_jump_of_years_costs_no_million_epochs() {
    let mut meter = Meter::new(unguarded(), synopsis("lda")).unwrap();
    meter.observe(Batch::of(&[
        packet(1, Timestamp::MIN),
        packet(2, at_ms(0)),
        packet(3, Timestamp::MAX),
    ]));
    meter.finish();
    let sealed = drain(&mut meter);
    assert_eq!(sealed.len() as u64, 3 + 2 * EMPTY_EPOCHS_MAX);
    let all = (i64::MAX / (100 * MS)).unsigned_abs() * 2 - 1;
    assert_eq!(meter.counts().epochs_skipped, all - 2 * EMPTY_EPOCHS_MAX);
}

#[test]
fn time_alone_ends_epochs_and_counts_belong_to_the_moment() {
    let mut meter = Meter::new(unguarded(), synopsis("exact")).unwrap();
    meter.count_skipped("arp", 2);
    meter.advance(at_ms(50));
    meter.count_skipped("arp", 1);
    meter.advance(at_ms(150));
    meter.count_dropped(5);
    meter.advance(at_ms(350));
    expect![[r#"
        epoch 0: 0 packets, 3 skipped
        epoch 1: 0 packets, 5 dropped
        epoch 2: 0 packets
    "#]]
    .assert_eq(&list(&mut meter));
}

#[test]
fn packets_alone_end_the_epochs_before_them() {
    let patient = MeterConfig { lateness: Delay::from_nanos(50 * MS), ..config("up") };
    let mut meter = Meter::new(patient, synopsis("exact")).unwrap();
    meter.observe(Batch::of(&[packet(1, at_ms(10)), packet(2, at_ms(120))]));
    assert_eq!(list(&mut meter), "");
    meter.observe(Batch::of(&[packet(3, at_ms(155))]));
    assert_eq!(list(&mut meter), "epoch 0: 1 packets, 1 head\n");
}

#[test]
fn what_no_message_can_carry_is_refused() {
    let refusal = |config| Meter::new(config, synopsis("lda")).unwrap_err().to_string();
    let long = MeterConfig { domain: "x".repeat(256), ..config("up") };
    assert_eq!(refusal(long), "domain: a name of 256 bytes, at most 255 are allowed");
    let short = MeterConfig { rule: EpochRule::every(999).unwrap(), ..config("up") };
    assert_eq!(refusal(short), "epochs of 999 ns, at least 1000 ns are needed");
    let marked =
        MeterConfig { rule: EpochRule::WHOLE, cutting: Cutting::SendMarkers, ..config("up") };
    assert_eq!(refusal(marked), "markers need an epoch length, not one epoch for all time");
}

fn bytes(sealed: &[Sealed]) -> Vec<Vec<u8>> {
    sealed.iter().map(Sealed::to_bytes).collect()
}

proptest! {
    #![proptest_config(twixt_testing::cases(64))]

    /// Some 300 packets over three epochs, out of order by up to 30 ms.
    #[test]
    fn batches_and_threads_do_not_matter(
        jitters_ms in prop::collection::vec(0_i64..30, 300),
        owners in prop::collection::vec(0_usize..3, 300),
        stash_max in 0_usize..40,
    ) {
        let patient = MeterConfig {
            lateness: Delay::from_nanos(40 * MS),
            stash_max,
            ..config("up")
        };
        let packets: Vec<Observation> = (0..)
            .zip(&jitters_ms)
            .map(|(index, jitter_ms)| packet(index, at_ms(index as i64 + jitter_ms)))
            .collect();
        for algorithm in ["lda", "exact"] {
            let whole = seal(patient.clone(), algorithm, &packets);
            let mut one_by_one = Meter::new(patient.clone(), synopsis(algorithm)).unwrap();
            packets.iter().for_each(|packet| one_by_one.observe(Batch::of(&[*packet])));
            one_by_one.finish();
            prop_assert_eq!(bytes(&whole), bytes(&drain(&mut one_by_one)));

            let mut merged: Vec<Sealed> = Vec::new();
            for thread in 0..3 {
                let mut meter = Meter::new(patient.clone(), synopsis(algorithm)).unwrap();
                for (packet, _) in packets.iter().zip(&owners).filter(|(_, owner)| **owner == thread) {
                    meter.observe(Batch::of(&[*packet]));
                }
                meter.advance(at_ms(329));
                meter.finish();
                for part in drain(&mut meter) {
                    match merged.iter_mut().find(|sealed| sealed.epoch == part.epoch) {
                        Some(sealed) => sealed.merge(&part).unwrap(),
                        None => merged.push(part),
                    }
                }
            }
            merged.sort_by_key(|sealed| sealed.epoch);
            let packets: u64 = whole.iter().map(|sealed| sealed.packets).sum();
            prop_assert_eq!(packets, 300);
            let busy = |sealed: Vec<Sealed>| {
                sealed.into_iter().filter(|sealed| sealed.packets > 0).collect::<Vec<_>>()
            };
            prop_assert_eq!(bytes(&busy(whole)), bytes(&busy(merged)));
        }
    }
}

#[test]
fn parts_of_different_epochs_do_not_merge_and_nothing_changes() {
    let sealed = seal(config("up"), "lda", &[packet(1, at_ms(10)), packet(2, at_ms(110))]);
    let mut first = sealed[0].clone();
    let message = first.merge(&sealed[1]).unwrap_err().to_string();
    assert_eq!(
        message,
        "parts of one point differ in epoch: 0 against 1; record all of them with the same settings"
    );
    let other = seal(config("up"), "exact", &[packet(1, at_ms(10))]);
    let message = first.merge(&other[0]).unwrap_err().to_string();
    assert_eq!(message, "one synopsis is lda, the other is exact");
    assert_eq!(first.to_bytes(), sealed[0].to_bytes());
}

#[track_caller]
fn check_guard(change: impl FnOnce(&mut MeterConfig), expected_ms: i64) {
    let mut config = config("p");
    change(&mut config);
    let mut meter = Meter::new(config, synopsis("lda")).unwrap();
    meter.observe(Batch::of(&[packet(1, at_ms(10))]));
    meter.finish();
    assert_eq!(drain(&mut meter)[0].guard, Delay::from_nanos(expected_ms * MS));
}

#[test]
fn an_epoch_says_how_far_from_its_boundaries_packets_were_kept() {
    check_guard(|_| {}, 20);
    check_guard(|config| config.guard = Delay::from_nanos(80 * MS), 50);
    check_guard(|config| config.guard = Delay::from_nanos(-1), 0);
    check_guard(|config| config.rule = EpochRule::WHOLE, 0);
    check_guard(|config| config.cutting = Cutting::SendMarkers, 0);
}
