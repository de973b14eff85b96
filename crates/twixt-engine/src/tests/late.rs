//! Halves that come after their epoch was given up, and stored ones that are paired.

use std::collections::BTreeSet;

use twixt_measure::{CutKind, QuestionTemplate};
use twixt_model::{Epoch, Estimate};

use super::*;

/// Epochs of both points; downstream's clock is ahead by so many seconds.
fn halves(seconds: std::ops::Range<i64>, ahead: i64) -> Vec<Sealed> {
    let clock_ns = ahead * SECOND_NS;
    let up = seal(&Seen::at("up", 0), seconds.clone(), "lda");
    let down = Seen { lost: Some(50), ..Seen::at("down", 5 * MS).clock(clock_ns) };
    in_order(vec![up, seal(&down, seconds, "lda")], &[0, clock_ns])
}

fn estimates(events: &[EngineEvent]) -> BTreeMap<i64, Vec<Estimate>> {
    let of_event = |event: &EngineEvent| match event {
        EngineEvent::Estimated(pair) => Some((pair.epoch.0, pair.estimates.clone())),
        _ => None,
    };
    events.iter().filter_map(of_event).collect()
}

fn series_of(sealed: &Sealed) -> Series {
    Series::of(segment("up", "down").segment, sealed)
}

fn pair_all(epochs: &[Sealed], ahead: i64) -> BTreeMap<i64, Vec<Estimate>> {
    let number = |sealed: &Sealed| match sealed.point.0.as_str() {
        "down" => sealed.epoch.0 - ahead,
        _ => sealed.epoch.0,
    };
    let mut epochs = epochs.to_vec();
    epochs.sort_by_key(|sealed| (number(sealed), sealed.point != PointId("up".to_owned())));
    let series = StoredSeries {
        series: series_of(&epochs[0]),
        question: QuestionTemplate::default(),
        realigned_epochs: ahead,
        check: StreamCheck::Boundaries,
    };
    let mut found = BTreeMap::new();
    let halves = epochs.into_iter().map(|sealed| StoredHalf { sealed, flows: None });
    pair_stored(series, halves, |conclusion| {
        if let Conclusion::Estimate(pair) = conclusion {
            found.insert(pair.epoch.0, pair.estimates);
        }
    });
    found
}

#[test]
fn stored_halves_tell_what_live_ones_did() {
    for ahead in [0, 3, -7] {
        let epochs = halves(100..120, ahead);
        let mut engine = Engine::new(config(&[("up", "down")]));
        let live = estimates(&run(&mut engine, epochs.clone()));
        assert!(live.len() > 15, "{} epochs", live.len());
        assert_eq!(pair_all(&epochs, ahead), live, "{ahead} s ahead");
    }
}

#[test]
fn stored_halves_of_other_packets_are_not_compared() {
    let up = seal(&Seen::at("up", 0), 100..120, "lda");
    let other = seal(&Seen { stream: 1, ..Seen::at("down", 5 * MS) }, 100..120, "lda");
    assert_eq!(pair_all(&[up, other].concat(), 0), BTreeMap::new());
}

/// A point sends its backlog of a time of which the other sent nothing: that they have nothing in common
/// says nothing.
#[test]
fn a_backlog_of_another_time_is_not_taken_for_other_packets() {
    let (ups, downs): (Vec<Sealed>, Vec<Sealed>) =
        halves(100..160, 0).into_iter().partition(|sealed| sealed.point.0 == "up");
    let mut engine = Engine::new(config(&[("up", "down")]));
    let downs = downs.into_iter().filter(|sealed| sealed.epoch.0 >= 145);
    let events = run(&mut engine, downs.chain(ups).collect());
    let warned = |event: &EngineEvent| matches!(event, EngineEvent::Warning(warning) if warning.kind == WarningKind::NotTheSameStream);
    assert!(!events.iter().any(warned), "{events:?}");
    let estimated: Vec<i64> = estimates(&events).into_keys().collect();
    assert!(estimated.iter().copied().eq(145..159), "{estimated:?}");
}

/// Points had nothing in common until a clock was set right. Epochs of which both halves are there may
/// be compared by now.
#[test]
fn epochs_passed_over_while_clocks_were_apart_are_looked_at_once_more() {
    let up = seal(&Seen::at("up", 0), 100..200, "lda");
    let wrong = seal(&Seen::at("down", 5 * MS).clock(SECOND_NS / 2), 100..150, "lda");
    let right = seal(&Seen { run: 2, ..Seen::at("down", 5 * MS) }, 150..200, "lda");
    let mut engine = Engine::new(config(&[("up", "down")]));
    let epochs = in_order(vec![up, wrong, right], &[0, 0, 0]);
    let events = run(&mut engine, epochs);
    assert!(estimates(&events).len() > 30, "{events:?}");
    let late = engine.late();
    let [LateEpochs { ranges, .. }] = late.as_slice() else { panic!("{late:?}") };
    assert!(ranges.iter().any(|(first, last)| first.0 <= 110 && last.0 >= 145), "{ranges:?}");
}

#[test]
fn a_half_that_comes_late_is_remembered_until_it_is_paired() {
    let (ups, downs): (Vec<Sealed>, Vec<Sealed>) =
        halves(100..300, 0).into_iter().partition(|sealed| sealed.point.0 == "up");
    let series = series_of(&ups[0]);
    let mut engine = Engine::new(config(&[("up", "down")]));
    for sealed in ups.iter().chain(&downs).filter(|sealed| sealed.epoch.0 < 110).cloned() {
        engine.receive(sealed);
    }
    for sealed in ups.iter().filter(|sealed| sealed.epoch.0 >= 110).cloned() {
        let now = at(sealed.epoch.0 + 2);
        engine.receive(sealed);
        engine.advance(now);
    }
    assert_eq!(engine.late(), vec![]);
    for sealed in downs.into_iter().filter(|sealed| sealed.epoch.0 >= 110) {
        engine.receive(sealed);
    }
    let late = engine.late();
    let [LateEpochs { series: of, ranges, realigned_epochs: 0 }] = late.as_slice() else {
        panic!("{late:?}")
    };
    assert_eq!(*of, series);
    let [(Epoch(110), last)] = ranges.as_slice() else { panic!("{ranges:?}") };
    // What was given up: all but the last few, which were waited for.
    assert!(last.0 > 280, "{last:?}");
    let resumed = Engine::resume(config(&[("up", "down")]), engine.progress());
    assert_eq!(resumed.late(), late, "after a restart as well");
    engine.settle_late(&series, (Epoch(110), Epoch(200)));
    assert_eq!(engine.late()[0].ranges, [(Epoch(201), *last)]);
    engine.settle_late(&series, (Epoch(201), *last));
    assert_eq!(engine.late(), vec![]);
}

/// Such epochs have no packets near their boundaries to compare, which says nothing against them.
#[test]
fn epochs_that_markers_cut_are_estimated_after_a_restart() {
    let marked = |sealed: Sealed| Sealed { cut: CutKind::Marked, ..sealed };
    let epochs: Vec<Sealed> = two_points(100..120).into_iter().map(marked).collect();
    let (before, after): (Vec<Sealed>, Vec<Sealed>) =
        epochs.into_iter().partition(|sealed| sealed.epoch.0 < 110);
    let mut engine = Engine::new(config(&[("up", "down")]));
    before.into_iter().for_each(|sealed| engine.receive(sealed));
    assert_eq!(estimates(&drain(&mut engine)).len(), 10);
    let mut engine = Engine::resume(config(&[("up", "down")]), engine.progress());
    after.into_iter().for_each(|sealed| engine.receive(sealed));
    let events = drain(&mut engine);
    assert!(estimates(&events).len() >= 9, "{}", list(&events));
}

/// The gap was reported, then came a restart, then the half: within the epochs that are concluded
/// again, it was taken for one that was reported, and dropped.
#[test]
fn a_half_that_comes_after_a_restart_closes_the_gap_before_it() {
    let (ups, downs): (Vec<Sealed>, Vec<Sealed>) =
        halves(100..130, 0).into_iter().partition(|sealed| sealed.point.0 == "up");
    let upto = |halves: &[Sealed], end: i64| -> Vec<Sealed> {
        halves.iter().filter(|sealed| sealed.epoch.0 < end).cloned().collect()
    };
    let mut engine = Engine::new(config(&[("up", "down")]));
    upto(&ups, 110).into_iter().chain(upto(&downs, 110)).for_each(|half| engine.receive(half));
    for half in ups.iter().filter(|half| (110..120).contains(&half.epoch.0)) {
        engine.receive(half.clone());
        engine.advance(at(half.epoch.0 + 2));
    }
    (122..140).for_each(|second| engine.advance(at(second)));
    let gap = |event: &EngineEvent| match event {
        EngineEvent::Gap(gap) => Some((gap.series.clone(), (gap.first, gap.last))),
        _ => None,
    };
    let gaps: Vec<_> = drain(&mut engine).iter().filter_map(gap).collect();
    let [(series, (Epoch(110), _)), ..] = gaps.as_slice() else { panic!("{gaps:?}") };
    let last = gaps.last().map(|(_, (_, last))| *last).unwrap();
    let mut engine = Engine::resume(config(&[("up", "down")]), engine.progress());
    engine.note_gap(series, (Epoch(110), last));
    let replayed = ups.iter().filter(|half| half.epoch.0 < 120).chain(&downs);
    replayed.cloned().for_each(|half| engine.receive(half));
    engine.advance(at(200));
    let events = drain(&mut engine);
    let mut closed: BTreeSet<i64> = estimates(&events).into_keys().collect();
    closed.extend(
        engine.late().iter().flat_map(|late| &late.ranges).flat_map(|range| range.0.0..=range.1.0),
    );
    assert!((110..119).all(|epoch| closed.contains(&epoch)), "{closed:?}\n{}", list(&events));
}

/// The other algorithm has the packets at the boundary, this one does not.
#[test]
fn the_last_epoch_that_came_of_an_algorithm_claims_no_loss() {
    let points = [Seen::at("up", 0), Seen::at("down", 5 * MS)];
    let of = |algorithm| points.iter().map(move |seen| seal(seen, 100..110, algorithm));
    let mut points: Vec<Vec<Sealed>> = of("exact").chain(of("lda")).collect();
    points[2..].iter_mut().for_each(|epochs| epochs.retain(|sealed| sealed.epoch.0 < 105));
    let mut engine = Engine::new(config(&[("up", "down")]));
    let events = run(&mut engine, in_order(points, &[0; 4]));
    let lost: BTreeMap<i64, Option<u64>> = events
        .iter()
        .filter_map(|event| match event {
            EngineEvent::Estimated(pair) if pair.series.algorithm == "lda" => {
                Some((pair.epoch.0, pair.estimates[0].evidence.lost))
            }
            _ => None,
        })
        .collect();
    let known = (101..104).map(|epoch| (epoch, Some(0)));
    assert_eq!(lost, known.chain([(100, None), (104, None)]).collect());
}
