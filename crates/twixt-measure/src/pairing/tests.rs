mod path_change;
mod refusing;
mod settling;
mod streams;
mod unobserved;

use expect_test::{Expect, expect};
use twixt_model::{Batch, Observation};

use super::*;
use crate::fixtures::{MS, at_ms, config, drain, events, packet, pairing, seal, synopsis};
use crate::meter::{Cutting, Meter, MeterConfig};

/// Packets with digests of their own, every 7 ms for 300 ms.
fn sent() -> Vec<Observation> {
    (0..43_u32).map(|n| packet(u64::from(n), at_ms(i64::from(n) * 7))).collect()
}

/// The same packets further on.
fn delayed(packets: &[Observation], delay_ms: i64) -> Vec<Observation> {
    let delay = Delay::from_nanos(delay_ms * MS);
    packets.iter().map(|packet| Observation { time: packet.time + delay, ..*packet }).collect()
}

fn pair(sealed: impl IntoIterator<Item = Sealed>) -> (Vec<PairingEvent>, PairingCounts) {
    let mut pairing = pairing();
    sealed.into_iter().for_each(|sealed| pairing.receive(sealed));
    pairing.finish();
    (events(&mut pairing), pairing.counts())
}

fn show(event: &PairingEvent) -> String {
    match event {
        PairingEvent::Estimated { epoch, estimates, moved, .. } => {
            let estimate = &estimates[0];
            let mean = estimate.delay.map(|delay| delay.mean().as_nanos() / MS);
            let mean = mean.map_or("unknown".to_owned(), |ms| format!("{ms} ms"));
            let evidence = estimate.evidence;
            let lost = evidence.lost.map_or("unknown".to_owned(), |lost| lost.to_string());
            let (used, packets) = (evidence.used, evidence.packets);
            format!(
                "epoch {}: {mean}, used {used} of {packets}, lost {lost}, moved {moved}",
                epoch.0
            )
        }
        PairingEvent::Unpaired { epoch, point, reason } => {
            format!("epoch {}: {point}: {reason}", epoch.0)
        }
        PairingEvent::Refused { epoch, reason } => format!("epoch {}: refused: {reason}", epoch.0),
    }
}

fn list(events: &[PairingEvent]) -> String {
    events.iter().map(|event| show(event) + "\n").collect()
}

/// Both points see the packets of `sent`, `arrived` says which and when downstream.
#[track_caller]
fn check(up: &MeterConfig, down: &MeterConfig, arrived: &[Observation], expected: &Expect) {
    let upstream = seal(up.clone(), "lda", &sent());
    let downstream = seal(down.clone(), "lda", arrived);
    expected.assert_eq(&list(&pair(upstream.into_iter().chain(downstream)).0));
}

#[test]
fn packets_in_flight_count_in_the_epoch_of_their_upstream_time() {
    check(
        &config("up"),
        &config("down"),
        &delayed(&sent(), 18),
        &expect![[r#"
        epoch 0: 18 ms, used 15 of 15, lost 0, moved 3
        epoch 1: 18 ms, used 14 of 14, lost 0, moved 6
        epoch 2: 18 ms, used 14 of 14, lost 0, moved 5
    "#]],
    );
}

#[test]
fn delays_beyond_the_guard_are_not_measured_wrongly() {
    check(
        &config("up"),
        &config("down"),
        &delayed(&sent(), 30),
        &expect![[r#"
        epoch 0: 30 ms, used 11 of 15, lost unknown, moved 1
        epoch 1: 30 ms, used 12 of 14, lost unknown, moved 3
        epoch 2: 30 ms, used 12 of 14, lost unknown, moved 4
        epoch 3: up: its epoch did not arrive in time
    "#]],
    );
}

#[test]
fn a_stash_that_is_too_small_costs_cells_and_the_knowledge_of_loss() {
    check(
        &config("up"),
        &MeterConfig { stash_max: 1, ..config("down") },
        &delayed(&sent(), 19),
        &expect![[r#"
            epoch 0: 19 ms, used 13 of 15, lost unknown, moved 1
            epoch 1: 19 ms, used 12 of 14, lost unknown, moved 2
            epoch 2: 19 ms, used 13 of 14, lost unknown, moved 2
            epoch 3: up: its epoch did not arrive in time
        "#]],
    );
}

#[test]
fn clocks_far_apart_are_no_trouble_if_the_shift_is_known() {
    let years_ms = 3 * 365 * 86_400_000;
    check(
        &config("up"),
        &MeterConfig { shift: Delay::from_nanos(years_ms * MS), ..config("down") },
        &delayed(&sent(), years_ms - 12),
        &expect![[r#"
            epoch 0: 94607999988 ms, used 15 of 15, lost 0, moved 3
            epoch 1: 94607999988 ms, used 14 of 14, lost 0, moved 3
            epoch 2: 94607999988 ms, used 14 of 14, lost 0, moved 2
        "#]],
    );
}

/// The lost packet is in flight at a boundary. At the first no delays are known yet.
#[test]
fn lost_packets_are_lost_in_their_own_epoch() {
    let without = |lost| {
        let arrived = delayed(&sent(), 9).into_iter();
        arrived.filter(|packet| packet.digest.0 != lost).collect::<Vec<_>>()
    };
    check(
        &config("up"),
        &config("down"),
        &without(28),
        &expect![[r#"
        epoch 0: 9 ms, used 15 of 15, lost 0, moved 2
        epoch 1: 9 ms, used 13 of 14, lost 1, moved 2
        epoch 2: 9 ms, used 14 of 14, lost 0, moved 1
    "#]],
    );
    check(
        &config("up"),
        &config("down"),
        &without(14),
        &expect![[r#"
        epoch 0: 9 ms, used 14 of 15, lost unknown, moved 1
        epoch 1: 9 ms, used 14 of 14, lost unknown, moved 2
        epoch 2: 9 ms, used 14 of 14, lost 0, moved 2
    "#]],
    );
}

/// Epochs 0 to 2 of both points, upstream first.
fn epochs() -> Vec<Sealed> {
    let mut downstream = seal(config("down"), "lda", &delayed(&sent(), 5));
    downstream.truncate(3);
    seal(config("up"), "lda", &sent()).into_iter().chain(downstream).collect()
}

#[track_caller]
fn check_order(sealed: Vec<Sealed>, expected: &Expect) {
    let (events, counts) = pair(sealed);
    expected.assert_eq(&format!(
        "{}duplicates {}, out of order {}, merged {}, late {}\n",
        list(&events),
        counts.duplicates,
        counts.out_of_order,
        counts.merged_runs,
        counts.late,
    ));
}

#[test]
fn order_does_not_matter() {
    let mut backwards = epochs();
    backwards.reverse();
    check_order(
        backwards,
        &expect![[r#"
        epoch 0: 5 ms, used 15 of 15, lost 0, moved 1
        epoch 1: 5 ms, used 14 of 14, lost 0, moved 2
        epoch 2: 5 ms, used 14 of 14, lost 0, moved 1
        duplicates 0, out of order 4, merged 0, late 0
    "#]],
    );
}

#[test]
fn a_duplicate_is_ignored_and_counted() {
    check_order(
        epochs().into_iter().chain(epochs()).collect(),
        &expect![[r#"
            epoch 0: 5 ms, used 15 of 15, lost 0, moved 1
            epoch 1: 5 ms, used 14 of 14, lost 0, moved 2
            epoch 2: 5 ms, used 14 of 14, lost 0, moved 1
            duplicates 6, out of order 4, merged 0, late 0
        "#]],
    );
}

/// Few delays are known: whether some are longer than the guard cannot be seen without the half.
#[test]
fn a_missing_half_leaves_its_epoch_unpaired_and_its_neighbours_right() {
    let mut sealed = epochs();
    sealed.remove(4);
    check_order(
        sealed,
        &expect![[r#"
            epoch 0: 5 ms, used 14 of 15, lost unknown, moved 0
            epoch 1: down: its epoch did not arrive in time
            epoch 2: 5 ms, used 14 of 14, lost 0, moved 1
            duplicates 0, out of order 0, merged 0, late 0
        "#]],
    );
    let mut sealed = epochs();
    sealed.remove(1);
    check_order(
        sealed,
        &expect![[r#"
            epoch 0: 5 ms, used 15 of 15, lost unknown, moved 1
            epoch 1: up: its epoch did not arrive in time
            epoch 2: 5 ms, used 14 of 14, lost unknown, moved 0
            duplicates 0, out of order 0, merged 0, late 0
        "#]],
    );
}

#[test]
fn an_epoch_of_which_nothing_came_leaves_the_loss_of_its_neighbours_unknown() {
    let mut sealed = epochs();
    sealed.remove(4);
    sealed.remove(1);
    check_order(
        sealed,
        &expect![[r#"
            epoch 0: 5 ms, used 14 of 15, lost unknown, moved 0
            epoch 2: 5 ms, used 14 of 14, lost unknown, moved 0
            duplicates 0, out of order 0, merged 0, late 0
        "#]],
    );
}

#[test]
fn parts_of_two_runs_make_one_epoch() {
    let packets = delayed(&sent(), 5);
    let (before, after) = packets.split_at(20);
    let restarted = MeterConfig { run: 2, ..config("down") };
    let mut sealed = seal(config("up"), "lda", &sent());
    sealed.extend(seal(config("down"), "lda", before));
    sealed.extend(seal(restarted, "lda", after).into_iter().take(2));
    check_order(
        sealed,
        &expect![[r#"
            epoch 0: 5 ms, used 15 of 15, lost 0, moved 1
            epoch 1: 5 ms, used 14 of 14, lost 0, moved 2
            epoch 2: 5 ms, used 14 of 14, lost 0, moved 1
            duplicates 0, out of order 0, merged 1, late 0
        "#]],
    );
}

/// Downstream's agent is killed 4 ms into epoch 1: it sent epoch 0, and what it had seen of epoch 1
/// is gone. The next run begins at once and sees the rest.
#[test]
fn what_a_killed_run_had_seen_of_the_next_epoch_is_not_taken_for_lost() {
    let packets = delayed(&sent(), 5);
    let killed = seal(config("down"), "lda", &packets).into_iter().take(1);
    let rest: Vec<Observation> =
        packets.into_iter().filter(|packet| packet.time > at_ms(104)).collect();
    let mut sealed = seal(config("up"), "lda", &sent());
    sealed.extend(killed);
    let restarted = seal(MeterConfig { run: 2, ..config("down") }, "lda", &rest);
    sealed.extend(
        restarted.into_iter().map(|sealed| Sealed { torn: sealed.epoch == Epoch(1), ..sealed }),
    );
    check_order(
        sealed,
        &expect![[r#"
        epoch 0: 5 ms, used 14 of 15, lost unknown, moved 0
        epoch 1: refused: down missed the start or the end of the epoch
        epoch 2: 5 ms, used 14 of 14, lost 0, moved 1
        duplicates 0, out of order 0, merged 0, late 0
    "#]],
    );
}

#[test]
fn epochs_of_other_points_and_classes_are_ignored() {
    let other = MeterConfig { class: "voice".to_owned(), ..config("up") };
    let packets = [packet(1, at_ms(10))];
    let sealed = seal(other, "lda", &packets).into_iter().chain(seal(config("x"), "lda", &packets));
    let (events, counts) = pair(sealed);
    assert!(events.is_empty());
    assert_eq!(counts, PairingCounts { foreign: 2, ..PairingCounts::default() });
}

#[test]
fn patience_ends() {
    let mut pairing = pairing();
    let mut sealed = epochs();
    sealed.truncate(3);
    sealed.into_iter().for_each(|sealed| pairing.receive(sealed));
    pairing.advance(at_ms(1_199));
    assert_eq!(events(&mut pairing), []);
    pairing.advance(at_ms(1_200));
    assert_eq!(list(&events(&mut pairing)), "epoch 0: down: its epoch did not arrive in time\n");
    epochs().into_iter().skip(3).for_each(|sealed| pairing.receive(sealed));
    assert_eq!(pairing.counts().late, 1);
    pairing.advance(at_ms(10_000));
    assert_eq!(events(&mut pairing).len(), 2);
    assert_eq!(pairing.counts().estimated, 2);
}

/// Epochs of 100 ms that come 10 ms after their end, and a patience of 20 ms.
#[test]
fn patience_shorter_than_an_epoch_loses_nothing() {
    let mut pairing = pairing();
    pairing.config.patience = Delay::from_nanos(20 * MS);
    for ms in 0..500 {
        for sealed in epochs() {
            if sealed.epoch.0 * 100 + 110 == ms {
                pairing.receive(sealed);
            }
        }
        pairing.advance(at_ms(ms));
    }
    expect![[r#"
        epoch 0: 5 ms, used 15 of 15, lost 0, moved 1
        epoch 1: 5 ms, used 14 of 14, lost 0, moved 2
        epoch 2: 5 ms, used 14 of 14, lost 0, moved 1
    "#]]
    .assert_eq(&list(&events(&mut pairing)));
}

#[test]
fn an_epoch_is_estimated_as_soon_as_its_neighbours_are_there() {
    let mut pairing = pairing();
    pairing.receive(seal(config("up"), "lda", &[packet(1, at_ms(-50))]).remove(0));
    pairing.receive(seal(config("down"), "lda", &[packet(1, at_ms(-49))]).remove(0));
    epochs().into_iter().for_each(|sealed| pairing.receive(sealed));
    assert_eq!(events(&mut pairing), []);
    // Nothing older than epoch -1 can come any more.
    pairing.advance(at_ms(1_050));
    let epochs: Vec<i64> = events(&mut pairing)
        .iter()
        .map(|event| match event {
            PairingEvent::Estimated { epoch, .. } => epoch.0,
            _ => panic!("{event:?}"),
        })
        .collect();
    assert_eq!(epochs, [-1, 0, 1]);
}

#[test]
fn a_pairing_goes_on_where_another_was() {
    let mut first = pairing();
    epochs().into_iter().for_each(|sealed| first.receive(sealed));
    first.advance(at_ms(1_250));
    let reported = list(&events(&mut first));
    let through = first.concluded_through();
    assert_eq!(through, Epoch(1));
    let learnt = (through, first.short_delays_before(through));
    let mut second = Pairing::resumed(first.config.clone(), through, learnt);
    epochs().into_iter().for_each(|sealed| second.receive(sealed));
    second.finish();
    let both = reported + &list(&events(&mut second));
    // The first two come again, and are already reported.
    assert_eq!(second.counts().late, 4);
    assert_eq!(both.lines().count(), 3, "{both}");
}

#[test]
fn what_downstream_has_beyond_upstream_can_be_forgotten() {
    let mut pairing = pairing();
    let mut sealed = epochs();
    sealed.drain(1..3);
    sealed.into_iter().for_each(|sealed| pairing.receive(sealed));
    pairing.finish_upstream();
    assert_eq!(events(&mut pairing).len(), 1);
    assert_eq!(pairing.concluded_through(), Epoch(0));
}

#[test]
fn the_oldest_makes_room_for_the_newest() {
    let mut pairing = pairing();
    for ms in (0..WAITING_EPOCHS_MAX as i64 * 300).step_by(100) {
        pairing.receive(seal(config("up"), "lda", &[packet(1, at_ms(ms))]).remove(0));
    }
    let given_up = 2 * WAITING_EPOCHS_MAX as u64;
    assert_eq!(events(&mut pairing).len() as u64, given_up);
    assert_eq!(pairing.counts().crowded_out, given_up);
    assert_eq!(pairing.counts().unpaired, given_up);
}

#[test]
fn clock_bounds_add_up_where_both_are_known() {
    let bounded = |point, bound_ns| MeterConfig {
        rule: EpochRule::WHOLE,
        clock_bound: Some(Delay::from_nanos(bound_ns)),
        ..config(point)
    };
    let unknown = MeterConfig { clock_bound: None, ..bounded("down", 0) };
    for (down, expected) in [(bounded("down", 5), Some(8)), (unknown, None)] {
        let upstream = seal(bounded("up", 3), "exact", &sent());
        let downstream = seal(down, "exact", &delayed(&sent(), 19));
        let (events, _) = pair(upstream.into_iter().chain(downstream));
        let PairingEvent::Estimated { estimates, span, .. } = &events[0] else { panic!() };
        let clock_error = estimates[0].evidence.clock_error.map(Delay::as_nanos);
        assert_eq!(clock_error, expected);
        assert_eq!((span.start, span.end), (at_ms(0), at_ms(294)));
    }
}

/// Epochs of 100 ms, a delay of 370 ms and clocks a year apart: the place of markers decides.
#[test]
fn markers_pair_whatever_the_delay() {
    let leading = MeterConfig { cutting: Cutting::SendMarkers, ..config("up") };
    let cutting = Cutting::FollowMarkers { upstream: leading.point.clone() };
    let mut leader = Meter::new(leading, synopsis("lda")).unwrap();
    let mut follower =
        Meter::new(MeterConfig { cutting, ..config("down") }, synopsis("lda")).unwrap();
    let mut pairing = pairing();
    let arrived = delayed(&sent(), 365 * 86_400_000 + 370);
    for (sent, arrived) in sent().iter().zip(&arrived) {
        leader.advance(sent.time);
        let marker = leader.poll_marker();
        // The third marker is lost.
        if let Some(marker) = marker.filter(|marker| marker.sequence != 2) {
            follower.observe_marker(&marker);
        }
        leader.observe(Batch::of(&[*sent]));
        follower.observe(Batch::of(&[*arrived]));
    }
    leader.finish();
    follower.observe_marker(&leader.poll_marker().unwrap());
    for sealed in drain(&mut leader).into_iter().chain(drain(&mut follower)) {
        pairing.receive(sealed);
    }
    pairing.finish();
    expect![[r#"
        epoch 0: 31536000370 ms, used 15 of 15, lost 0, moved 0
        epoch 1: refused: down missed the start or the end of the epoch
        epoch 2: down: its epoch did not arrive in time
    "#]]
    .assert_eq(&list(&events(&mut pairing)));
}
