//! Points that share packets become segments by themselves.

use super::*;

fn engine(segments: &[(&str, &str)]) -> Engine {
    Engine::new(EngineConfig { discover: true, ..config(segments) })
}

/// Warnings, and how many epochs were estimated of which segment.
#[track_caller]
fn check(mut engine: Engine, points: &[Seen], expected: &Expect) {
    let sealed = points.iter().map(|seen| seal(seen, 100..106, "lda")).collect();
    let clocks_ns: Vec<i64> = points.iter().map(|seen| seen.clock_ns).collect();
    let events = run(&mut engine, in_order(sealed, &clocks_ns));
    let mut shown = String::new();
    let mut estimated = BTreeMap::<String, u64>::new();
    for event in &events {
        match event {
            EngineEvent::Warning(warning) => {
                shown += &format!("{}: {}\n", warning.kind.name(), warning.text);
            }
            EngineEvent::Estimated(estimate) => {
                *estimated.entry(estimate.series.segment.to_string()).or_default() += 1;
            }
            _ => {}
        }
    }
    expected.assert_eq(&format!("{shown}{estimated:?}\n"));
}

#[allow(clippy::needless_pass_by_value, reason = "maps arrays")]
fn bounded(seen: Seen) -> Seen {
    Seen { clock_bound: Some(Delay::from_nanos(MS)), ..seen }
}

#[test]
fn points_in_a_chain_are_found_in_order() {
    let points = [Seen::at("c", 20 * MS), Seen::at("a", 0), Seen::at("b", 5 * MS)].map(bounded);
    check(
        engine(&[]),
        &points,
        &expect![[r#"
        discovered: segment a > c discovered: a and c have 20 packets in common, 28.081 ms apart
        discovered: segment b > c discovered: b and c have 22 packets in common, 20.000 ms apart
        discovered: segment a > b discovered: a and b have 30 packets in common, 7.137 ms apart
        {"a > b": 4, "a > c": 4, "b > c": 5}
    "#]],
    );
}

#[test]
fn those_that_were_named_are_not_found_again() {
    let points = [Seen::at("a", 0), Seen::at("b", 5 * MS)].map(bounded);
    check(
        engine(&[("a", "b")]),
        &points,
        &expect![[r#"
        {"a > b": 5}
    "#]],
    );
}

#[test]
fn without_good_clocks_nobody_is_first() {
    check(
        engine(&[]),
        &[Seen::at("a", 0), Seen::at("b", 5 * MS)],
        &expect![[r#"
        direction-unknown: a and b have 30 packets in common, and the clocks do not show which point sees them first: direction unknown, so no estimates are made; configure the segment
        {}
    "#]],
    );
    let points = [Seen::at("a", 0), Seen::at("b", MS)].map(bounded);
    check(
        engine(&[]),
        &points,
        &expect![[r#"
        direction-unknown: a and b have 32 packets in common, and the clocks do not show which point sees them first: direction unknown, so no estimates are made; configure the segment
        {}
    "#]],
    );
}

#[test]
fn points_that_share_nothing_are_no_segment() {
    let points = [Seen::at("a", 0), Seen { stream: 1, ..Seen::at("b", 5 * MS) }].map(bounded);
    check(
        engine(&[]),
        &points,
        &expect![[r#"
        {}
    "#]],
    );
}
