//! Points whose clocks differ, and ends that do not see the same packets.

use super::*;

/// Epochs whose mean is right, epochs refused, and warnings, for a clock that is ahead by this
/// share of an epoch.
#[track_caller]
fn check(ahead: f64, expected: &Expect) {
    let clock_ns = (ahead * SECOND_NS as f64) as i64;
    let seconds = 100..110;
    let up = seal(&Seen::at("up", 0), seconds.clone(), "lda");
    let down = seal(&Seen::at("down", 5 * MS).clock(clock_ns), seconds, "lda");
    let mut engine = Engine::new(config(&[("up", "down")]));
    let events = run(&mut engine, in_order(vec![up, down], &[0, clock_ns]));
    let (mut right, mut gaps) = (Vec::new(), BTreeMap::<String, u64>::new());
    let mut warnings = String::new();
    for event in &events {
        match event {
            EngineEvent::Estimated(estimate) => {
                let mean = estimate.estimates[0].delay.unwrap().mean();
                // Delays are 5 to 10 ms: the mean of 400 is within 4 deviations of 7.5 ms.
                let delay_ns = mean.as_nanos() - clock_ns;
                assert!((delay_ns - 7_500_000).abs() < 300_000, "{ahead}: {delay_ns}");
                assert_eq!(estimate.estimates[0].evidence.packets, 400);
                right.push((estimate.epoch.0, estimate.realigned_epochs));
            }
            EngineEvent::Gap(gap) => {
                *gaps.entry(gap.reason.to_string()).or_default() += gap.epochs();
            }
            EngineEvent::Warning(warning) => warnings += &(warning.text.clone() + "\n"),
            _ => {}
        }
    }
    expected.assert_eq(&format!("{right:?}\n{gaps:?}\n{warnings}"));
}

#[test]
fn clocks_within_the_guard_are_no_trouble() {
    check(
        0.05,
        &expect![[r#"
        [(100, 0), (101, 0), (102, 0), (103, 0), (104, 0), (105, 0), (106, 0), (107, 0), (108, 0)]
        {"its epoch did not arrive in time": 1}
    "#]],
    );
    check(
        -0.05,
        &expect![[r#"
        [(100, 0), (101, 0), (102, 0), (103, 0), (104, 0), (105, 0), (106, 0), (107, 0), (108, 0)]
        {}
    "#]],
    );
}

#[test]
fn clocks_apart_by_whole_epochs_are_re_aligned() {
    check(
        1.0,
        &expect![[r#"
        [(100, 1), (101, 1), (102, 1), (103, 1), (104, 1), (105, 1), (106, 1), (107, 1), (108, 1)]
        {"its epoch did not arrive in time": 1}
        down sees packets +1.007199 s after up by their clocks, by 74 digests: its epochs are re-aligned by 1; synchronise the clocks
    "#]],
    );
    check(
        -1.0,
        &expect![[r#"
        [(100, -1), (101, -1), (102, -1), (103, -1), (104, -1), (105, -1), (106, -1), (107, -1), (108, -1)]
        {"its epoch did not arrive in time": 1}
        down sees packets -0.992801 s after up by their clocks, by 74 digests: its epochs are re-aligned by -1; synchronise the clocks
    "#]],
    );
    check(
        3.02,
        &expect![[r#"
        [(100, 3), (101, 3), (102, 3), (103, 3), (104, 3), (105, 3), (106, 3), (107, 3), (108, 3)]
        {"its epoch did not arrive in time": 1}
        down sees packets +3.027137 s after up by their clocks, by 58 digests: its epochs are re-aligned by 3; synchronise the clocks
    "#]],
    );
    check(
        -3.02,
        &expect![[r#"
        [(100, -3), (101, -3), (102, -3), (103, -3), (104, -3), (105, -3), (106, -3), (107, -3), (108, -3)]
        {}
        down sees packets -3.012801 s after up by their clocks, by 75 digests: its epochs are re-aligned by -3; synchronise the clocks
    "#]],
    );
    check(
        40_000_000.01,
        &expect![[r#"
        [(100, 40000000), (101, 40000000), (102, 40000000), (103, 40000000), (104, 40000000), (105, 40000000), (106, 40000000), (107, 40000000), (108, 40000000)]
        {"its epoch did not arrive in time": 1}
        down sees packets +40000000.017199 s after up by their clocks, by 67 digests: its epochs are re-aligned by 40000000; synchronise the clocks
    "#]],
    );
}

#[test]
fn clocks_apart_by_part_of_an_epoch_give_nothing() {
    check(
        0.4,
        &expect![[r#"
            []
            {"the packets of the two points near the epoch's boundaries have nothing in common: either they do not see the same packets, or their clocks differ by more than the guard of 100 ms": 9}
            up > down: the two ends of the segment do not see the same packets: 0 of 1479 digests in common; the packets of the two points near the epoch's boundaries have nothing in common: either they do not see the same packets, or their clocks differ by more than the guard of 100 ms
        "#]],
    );
    check(
        -0.4,
        &expect![[r#"
            []
            {"the packets of the two points near the epoch's boundaries have nothing in common: either they do not see the same packets, or their clocks differ by more than the guard of 100 ms": 9}
            up > down: the two ends of the segment do not see the same packets: 0 of 1481 digests in common; the packets of the two points near the epoch's boundaries have nothing in common: either they do not see the same packets, or their clocks differ by more than the guard of 100 ms
        "#]],
    );
    check(
        0.15,
        &expect![[r#"
            []
            {"the clocks differ by 0.157 s, delay included: after whole epochs 157 ms remain, which is more than the guard of 100 ms": 9}
            down sees packets +0.156915 s after up by their clocks, by 17 digests: the clocks differ by 0.157 s, delay included: after whole epochs 157 ms remain, which is more than the guard of 100 ms; no estimates are made
        "#]],
    );
    check(
        2.85,
        &expect![[r#"
            []
            {"the clocks differ by 2.858 s, delay included: after whole epochs -142 ms remain, which is more than the guard of 100 ms": 9}
            down sees packets +2.857610 s after up by their clocks, by 23 digests: the clocks differ by 2.858 s, delay included: after whole epochs -142 ms remain, which is more than the guard of 100 ms; no estimates are made
        "#]],
    );
}

/// What is reported, warnings aside, is a gap or right.
#[track_caller]
fn check_stream(up: &Seen, down: &Seen, expected: &Expect) {
    let seconds = 100..112;
    let sealed = [up, down].map(|seen| seal(seen, seconds.clone(), "lda"));
    let mut engine = Engine::new(config(&[("up", "down")]));
    let events = run(&mut engine, in_order(sealed.into(), &[0, 0]));
    let warnings = events.iter().filter(|event| matches!(event, EngineEvent::Warning(_)));
    let warnings: String = warnings.map(|event| show(event) + "\n").collect();
    let estimated = engine.counts().estimated;
    expected.assert_eq(&format!("{warnings}{estimated} estimated\n"));
}

/// A stream of its own on top of half of the other.
#[test]
fn ends_that_see_different_packets_are_told_apart() {
    let up = Seen::at("up", 0);
    let other = Seen { stream: 7, ..Seen::at("down", 5 * MS) };
    check_stream(
        &up,
        &other,
        &expect![[r#"
            warning: up > down: the two ends of the segment do not see the same packets: 0 of 1837 digests in common; the packets of the two points near the epoch's boundaries have nothing in common: either they do not see the same packets, or their clocks differ by more than the guard of 100 ms
            0 estimated
        "#]],
    );
    let half = Seen { lost: Some(2), ..Seen::at("down", 5 * MS) };
    check_stream(
        &up,
        &half,
        &expect![[r#"
        warning: up > down: the two ends of the segment do not see the same packets: 152 of 307 digests in common; use the same filter or class at both points
        11 estimated
    "#]],
    );
    let fewer = Seen { lost: Some(10), ..Seen::at("down", 5 * MS) };
    check_stream(
        &up,
        &fewer,
        &expect![[r#"
        11 estimated
    "#]],
    );
    let strange = Seen { lost: Some(4), ..up };
    check_stream(
        &strange,
        &Seen::at("down", 5 * MS),
        &expect![[r#"
        warning: up > down: the two ends of the segment do not see the same packets: 237 of 310 digests in common; use the same filter or class at both points
        11 estimated
    "#]],
    );
}

/// A clock that is set by three epochs in the midst of it.
#[test]
fn a_clock_that_is_set_costs_a_few_epochs_and_no_wrong_estimate() {
    let up = seal(&Seen::at("up", 0), 100..130, "lda");
    let before = seal(&Seen::at("down", 5 * MS), 100..110, "lda");
    let set = Seen { run: 2, ..Seen::at("down", 5 * MS).clock(3 * SECOND_NS) };
    let after = seal(&set, 110..130, "lda");
    let mut engine = Engine::new(config(&[("up", "down")]));
    let mut reported = Vec::new();
    let mut epochs = in_order(vec![up, before, after], &[0, 0, 3 * SECOND_NS]).into_iter();
    for second in 101..140 {
        for sealed in epochs.by_ref().take(2) {
            engine.receive(sealed);
        }
        engine.advance(at(second));
        reported.extend(drain(&mut engine));
    }
    let mut estimated = Vec::new();
    for event in &reported {
        if let EngineEvent::Estimated(estimate) = event {
            let shift_ns = estimate.realigned_epochs * SECOND_NS;
            let delay_ns = estimate.estimates[0].delay.unwrap().mean().as_nanos() - shift_ns;
            assert!((delay_ns - 7_500_000).abs() < 300_000, "{}", show(event));
            estimated.push((estimate.epoch.0, estimate.realigned_epochs));
        }
    }
    expect![[r#"
        [(100, 0), (101, 0), (102, 0), (103, 0), (104, 0), (105, 0), (106, 0), (107, 0), (108, 0), (109, 0), (119, 3), (120, 3), (121, 3), (122, 3), (123, 3), (124, 3), (125, 3), (126, 3), (127, 3), (128, 3)]
    "#]].assert_eq(&format!("{estimated:?}\n"));
}

/// Two packets per second, of which few are near a boundary: what is estimated is right, whatever
/// the clocks. How many epochs are, and how many have packets.
#[track_caller]
fn check_sparse(ahead: f64, clock_bound: Option<Delay>, expected: &Expect) {
    let clock_ns = (ahead * SECOND_NS as f64) as i64;
    let sparse = |seen| Seen { sparse: 200, clock_bound, ..seen };
    let up = seal(&sparse(Seen::at("up", 0)), 100..150, "lda");
    let down = seal(&sparse(Seen::at("down", 5 * MS).clock(clock_ns)), 100..150, "lda");
    let mut engine = Engine::new(config(&[("up", "down")]));
    let events = run(&mut engine, in_order(vec![up, down], &[0, clock_ns]));
    let (mut estimated, mut unverified) = (0, 0);
    for event in &events {
        match event {
            EngineEvent::Estimated(estimate) => {
                let first = &estimate.estimates[0];
                let delay_ns = first.delay.map(|delay| delay.mean().as_nanos() - clock_ns);
                let right = delay_ns.is_none_or(|ns| (5 * MS..=10 * MS).contains(&ns));
                assert!(right, "{ahead}: {}", show(event));
                estimated += u64::from(first.evidence.packets > 0);
            }
            EngineEvent::Gap(Gap { reason: GapReason::Unverified, .. }) => unverified += 1,
            _ => {}
        }
    }
    expected.assert_eq(&format!("{estimated} estimated, {unverified} not verified"));
}

#[test]
fn few_packets_are_no_reason_to_guess() {
    check_sparse(0.0, None, &expect!["39 estimated, 0 not verified"]);
    check_sparse(0.0, Some(Delay::from_nanos(MS)), &expect!["39 estimated, 0 not verified"]);
    check_sparse(0.4, None, &expect!["0 estimated, 43 not verified"]);
    check_sparse(1.0, None, &expect!["0 estimated, 46 not verified"]);
    check_sparse(-2.0, None, &expect!["0 estimated, 45 not verified"]);
}

/// An agent that was away sends what it kept, and the other begins only then.
#[test]
fn one_end_may_send_many_epochs_before_the_other_begins() {
    for first in 0..2 {
        let ends = [("up", 0), ("down", 5 * MS)];
        let mut sealed =
            ends.map(|(point, delay_ns)| seal(&Seen::at(point, delay_ns), 100..131, "lda"));
        sealed.rotate_left(first);
        let mut engine = Engine::new(config(&[("up", "down")]));
        let events = run(&mut engine, sealed.concat());
        let estimated = |event: &&EngineEvent| matches!(event, EngineEvent::Estimated(_));
        assert_eq!(events.iter().filter(estimated).count(), 30, "{}", list(&events));
    }
}
