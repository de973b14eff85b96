//! Loss is stated only where it is settled which packets were in flight.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use twixt_model::{Delay, Epoch, Estimate, Observation, Timestamp};

use super::{delayed, list, pair, pairing, show};
use crate::fixtures::{MS, at_ms, config, events, packet, seal};
use crate::meter::MeterConfig;
use crate::pairing::{Pairing, PairingEvent};
use crate::sealed::Sealed;

/// So many packets, `spacing_ns` apart.
fn stream(count: u64, spacing_ns: i64) -> Vec<Observation> {
    let sent = |n| packet(n, Timestamp::from_nanos(n as i64 * spacing_ns));
    (0..count).map(sent).collect()
}

fn both(algorithm: &str, upstream: &[Observation], downstream: &[Observation]) -> Vec<Sealed> {
    let mut arrived = downstream.to_vec();
    arrived.sort_unstable();
    let mut sealed = seal(config("up"), algorithm, upstream);
    sealed.extend(seal(config("down"), algorithm, &arrived));
    sealed
}

fn estimate_of(event: &PairingEvent) -> Option<&Estimate> {
    match event {
        PairingEvent::Estimated { estimates, .. } => estimates.first(),
        _ => None,
    }
}

/// 500 000 packets a second for 300 ms, delayed by 0.5 ms, every hundredth lost: 4096 of the
/// 10 000 packets near each side of a boundary are kept.
#[test]
fn a_stash_that_overflows_is_large_enough_for_short_delays() {
    let sent = stream(150_000, 2_000);
    let delay = Delay::from_nanos(MS / 2);
    let arrived: Vec<Observation> = sent
        .iter()
        .filter(|packet| packet.digest.0 % 100 != 0)
        .map(|packet| Observation { time: packet.time + delay, ..*packet })
        .collect();
    let (events, counts) = pair(both("lda", &sent, &arrived));
    for event in &events {
        let PairingEvent::Estimated { estimates, upstream, .. } = event else { continue };
        assert!(upstream.stash_overflow > 5_000);
        assert_eq!(estimates[0].evidence.lost, Some(500), "{}", show(event));
        assert_eq!(estimates[0].delay.unwrap().mean(), delay);
    }
    assert_eq!((counts.estimated, counts.unsettled), (3, 0));
}

#[track_caller]
fn check_reason(stash_max: usize, delay_ms: i64, unsettled: u64, message: &str) {
    let sent = stream(300, MS);
    let small = |point| MeterConfig { stash_max, ..config(point) };
    let mut sealed = seal(small("up"), "exact", &sent);
    sealed.extend(seal(small("down"), "exact", &delayed(&sent, delay_ms)));
    let (events, counts) = pair(sealed);
    let estimates: Vec<&Estimate> = events.iter().filter_map(estimate_of).collect();
    assert_eq!((estimates.len(), counts.unsettled), (3, unsettled));
    for estimate in estimates {
        assert_eq!(estimate.evidence.lost, None);
        assert_eq!(estimate.delay.and_then(|delay| delay.half_width_ns), None);
        assert_eq!(estimate.reason.as_deref(), Some(message));
    }
}

#[test]
fn delays_beyond_what_was_kept_are_named_with_a_remedy() {
    check_reason(
        4_096,
        30,
        3,
        "delays reach beyond the guard of 20 ms: late packets cannot be distinguished from lost ones, and the mean excludes them; use a larger guard or longer epochs",
    );
    check_reason(
        5,
        4,
        2,
        "delays reach beyond the stash, which holds 4 ms: late packets cannot be distinguished from lost ones, and the mean excludes them; use a larger stash",
    );
}

#[test]
fn delays_beyond_everything_that_was_kept_are_suspected() {
    let sent = stream(300, MS);
    let (events, counts) = pair(both("exact", &sent, &delayed(&sent, 55)));
    let reason = estimate_of(&events[0]).and_then(|estimate| estimate.reason.clone()).unwrap();
    assert!(reason.starts_with("delays may reach beyond the guard of 20 ms"), "{reason}");
    assert_eq!(counts.unsettled, 3);
}

#[test]
fn without_a_guard_loss_is_unknown() {
    let sent = stream(200, MS);
    let bare = |point| MeterConfig { guard: Delay::ZERO, ..config(point) };
    let mut sealed = seal(bare("up"), "exact", &sent);
    sealed.extend(seal(bare("down"), "exact", &sent));
    let (events, _) = pair(sealed);
    let lost: Vec<_> = events.iter().filter_map(estimate_of).map(|e| e.evidence.lost).collect();
    assert_eq!(lost, [None, None]);
}

/// Which packets left and arrived when, in milliseconds; `finish` is called, or time passes.
#[track_caller]
fn check_fringe(sent_ms: &[i64], arrived_ms: &[(u64, i64)], finish: bool, expected: &Expect) {
    let sent: Vec<Observation> =
        (0..).zip(sent_ms).map(|(digest, &ms)| packet(digest, at_ms(ms))).collect();
    let arrived: Vec<Observation> =
        arrived_ms.iter().map(|&(digest, ms)| packet(digest, at_ms(ms))).collect();
    let mut pairing = pairing();
    both("exact", &sent, &arrived).into_iter().for_each(|sealed| pairing.receive(sealed));
    if finish {
        pairing.finish();
    } else {
        pairing.advance(at_ms(100_000));
    }
    expected.assert_eq(&list(&events(&mut pairing)));
}

#[test]
fn downstream_may_begin_an_epoch_later() {
    let (sent, arrived) = ([96, 97, 150], [(0, 103), (1, 104), (2, 157)]);
    check_fringe(
        &sent,
        &arrived,
        true,
        &expect![[r#"
        epoch 0: 7 ms, used 2 of 2, lost 0, moved 2
        epoch 1: 7 ms, used 1 of 1, lost 0, moved 2
    "#]],
    );
    check_fringe(
        &sent,
        &arrived,
        false,
        &expect![[r#"
        epoch 0: down: its epoch did not arrive in time
        epoch 1: 7 ms, used 1 of 1, lost 0, moved 2
    "#]],
    );
}

#[test]
fn downstream_may_end_an_epoch_earlier() {
    check_fringe(
        &[50, 102],
        &[(0, 46), (1, 98)],
        true,
        &expect![[r#"
        epoch 0: -4 ms, used 1 of 1, lost 0, moved 1
        epoch 1: -4 ms, used 1 of 1, lost 0, moved 1
    "#]],
    );
}

#[test]
fn a_fringe_of_which_nothing_arrived_stays_unpaired() {
    check_fringe(
        &[50, 150],
        &[(1, 157)],
        true,
        &expect![[r#"
        epoch 0: down: its epoch did not arrive in time
        epoch 1: 7 ms, used 1 of 1, lost 0, moved 0
    "#]],
    );
}

/// Epochs whose predecessor never comes wait until too many do.
#[test]
fn downstream_may_begin_an_epoch_later_than_many_others() {
    let sent: Vec<Observation> = stream(1_000, 10 * MS).split_off(9);
    let mut sealed = both("exact", &sent, &delayed(&sent, 12));
    sealed.sort_by_key(|sealed| sealed.epoch);
    let (events, counts) = pair(sealed);
    assert_eq!((counts.estimated, counts.unpaired), (100, 0), "{}", list(&events));
    assert!(
        events.iter().filter_map(estimate_of).all(|estimate| estimate.evidence.lost == Some(0))
    );
}

/// How delays are distributed, up to some multiple of a scale.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Constant,
    Uniform,
    Exponential,
    /// Two routes, of which the longer one takes this share of the packets.
    TwoRoutes(f64),
}

impl Shape {
    /// The delay at a place between 0 and 1 of the distribution.
    fn delay_ns(self, place: f64, scale_ns: f64) -> i64 {
        let delay_ns = match self {
            Self::Constant => scale_ns,
            Self::Uniform => place * scale_ns,
            Self::Exponential => -(1.0 - place).ln() * scale_ns / 6.0,
            Self::TwoRoutes(share) if place < share => scale_ns,
            Self::TwoRoutes(_) => 2.0 * MS as f64,
        };
        delay_ns as i64
    }
}

fn shapes() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::Constant),
        Just(Shape::Uniform),
        Just(Shape::Exponential),
        (0.2..0.8).prop_map(Shape::TwoRoutes),
    ]
}

proptest! {
    #![proptest_config(twixt_testing::cases(64))]

    /// The guard is 20 ms.
    #[test]
    fn loss_is_right_or_unknown_whatever_the_delays(
        shape in shapes(),
        scale_ms in 0.0..80.0,
        loss in prop::sample::select(vec![0.0, 0.01, 0.1]),
        places in prop::collection::vec((0.0..1.0, 0.0..1.0), 2_000),
    ) {
        let sent = stream(2_000, MS / 4);
        let is_lost = |packet: &&Observation| places[packet.digest.0 as usize].1 < loss;
        let arrived: Vec<Observation> = sent.iter().filter(|packet| !is_lost(packet)).map(|packet| {
            let place = places[packet.digest.0 as usize].0;
            let delay = Delay::from_nanos(shape.delay_ns(place, scale_ms * MS as f64));
            Observation { time: packet.time + delay, ..*packet }
        }).collect();
        for algorithm in ["exact", "lda"] {
            let (events, counts) = pair(both(algorithm, &sent, &arrived));
            for event in &events {
                let PairingEvent::Estimated { estimates, span, .. } = event else { continue };
                let own = sent.iter().filter(|packet| span.contains(packet.time));
                let truth = own.filter(is_lost).count() as u64;
                let lost = estimates[0].evidence.lost;
                prop_assert!(lost.is_none_or(|lost| lost == truth), "{truth}: {}", show(event));
                let unknown_for_a_reason = lost.is_some() || estimates[0].reason.is_some();
                prop_assert!(unknown_for_a_reason, "{}", show(event));
            }
            // So that "unknown" is not all it ever says.
            if scale_ms < 5.0 {
                prop_assert_eq!(counts.unsettled, 0);
            }
        }
    }
}

/// The start of the epoch was settled when the one before was given up, without the half that came
/// later: packets in flight counted as its own, and hid its losses.
#[test]
fn a_half_that_comes_when_the_start_is_settled_hides_no_loss() {
    let sent = stream(60, 5 * MS);
    let mut arrived = delayed(&sent, 18);
    // Two packets of the second epoch.
    arrived.retain(|packet| ![25, 30].contains(&packet.digest.0));
    let (mut ups, mut downs): (Vec<Sealed>, Vec<Sealed>) =
        both("lda", &sent, &arrived).into_iter().partition(|sealed| sealed.point.0 == "up");
    let mut pairing = pairing();
    let (late_up, late_down) = (ups.split_off(2), downs.split_off(1));
    ups.into_iter().chain(downs).for_each(|sealed| pairing.receive(sealed));
    pairing.advance(at_ms(1_250));
    late_up.into_iter().chain(late_down).for_each(|sealed| pairing.receive(sealed));
    pairing.finish();
    let events = events(&mut pairing);
    let lost: Vec<Option<u64>> =
        events.iter().filter_map(estimate_of).map(|estimate| estimate.evidence.lost).collect();
    assert_eq!(lost[1], None, "{}", list(&events));
}

/// Nothing came of the epoch before until it was given up: what was in flight at its end is not known.
#[test]
fn an_epoch_behind_one_that_was_given_up_hides_no_loss() {
    let sent = stream(60, 5 * MS);
    let mut arrived = delayed(&sent, 9);
    // Two packets of the second epoch.
    arrived.retain(|packet| ![25, 30].contains(&packet.digest.0));
    let learnt = (Epoch(1), 1_000);
    let mut pairing = Pairing::resumed(pairing().config, Epoch(0), learnt);
    both("lda", &sent, &arrived).into_iter().for_each(|sealed| pairing.receive(sealed));
    pairing.finish();
    let events = events(&mut pairing);
    let lost: Vec<Option<u64>> =
        events.iter().filter_map(estimate_of).map(|estimate| estimate.evidence.lost).collect();
    assert_eq!(lost.first(), Some(&None), "{}", list(&events));
}

/// Of the epoch before only one half came in time: which packets near its end are missing downstream
/// cannot be seen, and few delays say nothing of how long others may be.
#[test]
fn an_epoch_behind_half_a_neighbour_is_no_surer_than_behind_a_whole_one() {
    let sent: Vec<Observation> = (0..15).map(|n| packet(n, at_ms(10 + 20 * n as i64))).collect();
    let mut arrived = delayed(&sent, 1);
    // The last of the first epoch.
    arrived.retain(|packet| packet.digest.0 != 4);
    let sealed = both("exact", &sent, &arrived);
    let lost_of_second = |late_point: &str| {
        let mut pairing = pairing();
        let is_first = |sealed: &&Sealed| sealed.epoch == Epoch(0);
        let (first, others): (Vec<_>, Vec<_>) = sealed.iter().partition(is_first);
        let (late, in_time): (Vec<_>, Vec<_>) =
            first.into_iter().partition(|sealed| sealed.point.0 == late_point);
        in_time.into_iter().for_each(|sealed| pairing.receive(sealed.clone()));
        if !late.is_empty() {
            pairing.advance(at_ms(1_250));
        }
        late.into_iter().chain(others).for_each(|sealed| pairing.receive(sealed.clone()));
        pairing.finish();
        let events = events(&mut pairing);
        let is_second = |event: &&PairingEvent| {
            matches!(event, PairingEvent::Estimated { epoch: Epoch(1), .. })
        };
        let second = events.iter().find(is_second);
        second.and_then(estimate_of).expect("both halves are there").evidence.lost
    };
    assert_eq!(["", "up", "down"].map(lost_of_second), [None; 3]);
}
