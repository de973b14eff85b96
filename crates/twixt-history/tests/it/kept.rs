//! What is stored is answered: before it is sealed, after a restart, after it is sealed.

use twixt_history::{Row, RowQuestion, Step};

use crate::support::{Fixture, HOUR, SECOND_NS, ask, at, between, row, same, series};

const STEPS: [Step; 3] = [Step::Epoch, Step::Minute, Step::Hour];

fn answers(fixture: &Fixture) -> Vec<Vec<Row>> {
    STEPS.map(|step| fixture.answer(&RowQuestion::all(step)).rows).into()
}

#[track_caller]
fn check_equal(one: &[Vec<Row>], other: &[Vec<Row>]) {
    for (one, other) in one.iter().zip(other) {
        assert_eq!(one.len(), other.len());
        one.iter().zip(other).for_each(|(one, other)| same(one, other));
    }
}

#[test]
fn answers_are_the_same_open_reopened_and_sealed() {
    let fixture = Fixture::new();
    for downstream in ["b", "c", "d"] {
        fixture.store(downstream, 3_420..3_780);
    }
    let open = answers(&fixture);
    assert_eq!(open.iter().map(Vec::len).collect::<Vec<_>>(), [1_080, 18, 6]);
    let fixture = fixture.reopened();
    check_equal(&open, &answers(&fixture));
    let kept = fixture.history.keep(at(HOUR + 601)).unwrap();
    assert_eq!((kept.sealed.len(), kept.problems.len()), (1, 0));
    check_equal(&open, &answers(&fixture));
    fixture.history.seal_all().unwrap();
    check_equal(&open, &answers(&fixture));
    check_equal(&open, &answers(&fixture.reopened()));
}

#[test]
fn a_segment_is_answered_apart_from_others() {
    let fixture = Fixture::new();
    for number in 0..24 {
        fixture.store(&format!("p{number}"), (0..100).map(|second| second * 36));
    }
    fixture.history.seal_all().unwrap();
    for step in STEPS {
        let answer = fixture.answer(&ask("p17", step, between(0, HOUR)));
        let of_others = answer.rows.iter().filter(|row| row.series != series("p17"));
        assert_eq!(of_others.count(), 0);
        assert!(!answer.rows.is_empty());
    }
    let answer = fixture.answer(&ask("p17", Step::Epoch, between(36, 72)));
    let known = answer.rows.iter().filter(|row| !row.is_gap());
    assert_eq!(known.cloned().collect::<Vec<_>>(), [row("p17", 36), row("p17", 72)]);
}

#[test]
fn what_came_late_is_a_part_of_its_own_and_of_the_answer() {
    let fixture = Fixture::new();
    fixture.store("b", (0..60).filter(|second| second % 2 == 0));
    fixture.history.seal_all().unwrap();
    // Every second one was stored before.
    fixture.store("b", (0..60).filter(|second| second % 3 == 0));
    let whole = Fixture::new();
    whole.store("b", (0..60).filter(|second| second % 2 == 0 || second % 3 == 0));
    check_equal(&answers(&whole), &answers(&fixture));
    let fixture = fixture.reopened();
    check_equal(&answers(&whole), &answers(&fixture));
    fixture.history.seal_all().unwrap();
    check_equal(&answers(&whole), &answers(&fixture));
    assert_eq!(fixture.history.counts().sealed, 1);
}

#[test]
fn holes_are_rows_that_say_so() {
    let fixture = Fixture::new();
    fixture.store("b", (0..60).chain(3 * HOUR..3 * HOUR + 60));
    for sealed in [false, true] {
        if sealed {
            fixture.history.seal_all().unwrap();
        }
        let answer = fixture.answer(&ask("b", Step::Minute, between(0, 4 * HOUR)));
        assert!(!answer.is_complete() && answer.problems.is_empty());
        let missing = 3 * HOUR as u64 - 60;
        assert_eq!(answer.epochs(), (120, missing));
        let holes: Vec<&Row> = answer.rows.iter().filter(|row| row.is_gap()).collect();
        assert_eq!(holes.len(), 3, "one in each hour");
        assert_eq!(holes[0].start_ns, at(60).as_nanos());
        assert_eq!(holes[2].end_ns, at(3 * HOUR).as_nanos() - 1);
        assert!(holes.iter().all(|row| row.packets.is_none() && row.reason.is_some()));
    }
    let whole = fixture.answer(&ask("b", Step::Epoch, between(5, 20)));
    assert!(whole.is_complete() && whole.rows.len() == 16);
}

#[test]
fn an_epoch_that_was_estimated_is_in_no_gap_that_is_told_later() {
    let fixture = Fixture::new();
    fixture.store("b", [0, 5, 9]);
    let reason = "the epoch did not arrive in time".to_owned();
    let first = at(3).as_nanos() / SECOND_NS;
    let gap = Row::of_gap(series("b"), first, between(3, 8), 6, reason);
    for sealed in [false, true] {
        if sealed {
            fixture.history.seal_all().unwrap();
        }
        fixture.history.append(std::slice::from_ref(&gap), at(10)).unwrap();
        for step in STEPS {
            let answer = fixture.answer(&ask("b", step, between(0, 59)));
            assert_eq!(answer.epochs(), (3, 7), "{step}");
        }
    }
}

#[test]
fn gaps_that_were_told_are_kept_even_those_of_days() {
    let fixture = Fixture::new();
    fixture.store("b", 0..10);
    let span = between(10, 50 * HOUR - 1);
    let epochs = 50 * HOUR as u64 - 10;
    let reason = "no epoch arrived from either point".to_owned();
    let epoch = at(10).as_nanos() / SECOND_NS;
    let gap = Row::of_gap(series("b"), epoch, span, epochs, reason.clone());
    fixture.history.append(&[gap], at(50 * HOUR)).unwrap();
    fixture.store("b", [50 * HOUR]);
    for step in STEPS {
        let answer = fixture.answer(&ask("b", step, between(0, 60 * HOUR)));
        assert_eq!(answer.epochs(), (11, epochs), "{step}");
        let told = answer.rows.iter().filter_map(|row| row.reason.as_ref());
        assert!(told.into_iter().any(|told| told.contains(&reason)));
    }
}

#[test]
fn a_clock_that_jumps_back_loses_nothing() {
    let fixture = Fixture::new();
    fixture.store("b", HOUR..HOUR + 60);
    // The collector's clock was an hour ahead: the hour is sealed, and goes on.
    fixture.history.keep(at(3 * HOUR)).unwrap();
    fixture.history.append(&[row("b", HOUR + 60)], at(HOUR + 61)).unwrap();
    fixture.history.keep(at(HOUR + 62)).unwrap();
    fixture.history.keep(at(HOUR - 500)).unwrap();
    let answer = fixture.answer(&ask("b", Step::Epoch, between(0, 2 * HOUR)));
    assert_eq!((answer.rows.len(), answer.epochs()), (61, (61, 0)));
}
