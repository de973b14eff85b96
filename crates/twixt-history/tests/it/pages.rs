//! An answer in pages is the answer.

use twixt_history::{Row, RowQuestion, Step};

use crate::support::{Fixture, HOUR, SECOND_NS, at, between, row, series};

#[track_caller]
fn check(fixture: &Fixture, step: Step, limit: usize) {
    let whole = fixture.answer(&RowQuestion::all(step));
    let mut rows: Vec<Row> = Vec::new();
    let mut question = RowQuestion { limit, ..RowQuestion::all(step) };
    loop {
        let page = fixture.answer(&question);
        assert!(page.rows.len() <= limit);
        assert_eq!(page.stored, whole.stored);
        rows.extend(page.rows);
        question.after = page.next;
        if page.next.is_none() {
            break;
        }
    }
    assert_eq!(rows, whole.rows, "{step} by {limit}");
}

#[test]
fn pages_with_gaps_that_were_closed_late_are_the_whole() {
    let fixture = Fixture::new();
    let gap = |downstream: &str, first: i64, last: i64| {
        let epoch = at(first).as_nanos() / SECOND_NS;
        let span = between(first, last);
        Row::of_gap(series(downstream), epoch, span, (last - first + 1) as u64, "why".to_owned())
    };
    for downstream in ["b", "c"] {
        fixture.history.append(&[gap(downstream, 5, 80)], at(90)).unwrap();
        fixture.store(downstream, 100..110);
    }
    for second in (5..80).filter(|second| second % 7 != 0) {
        let late = Row { late_epochs: 1, ..row("b", second) };
        fixture.history.append(&[late], at(120)).unwrap();
    }
    fixture.history.sync().unwrap();
    for limit in [1, 2, 3, 10, 1_000] {
        check(&fixture, Step::Epoch, limit);
    }
    fixture.history.seal_all().unwrap();
    for limit in [1, 2, 3, 10, 1_000] {
        check(&fixture, Step::Epoch, limit);
    }
}

#[test]
fn pages_together_are_the_whole() {
    let fixture = Fixture::new();
    for downstream in ["b", "c", "d"] {
        fixture.store(downstream, (0..200).chain(2 * HOUR..2 * HOUR + 100));
    }
    fixture.history.seal_all().unwrap();
    fixture.store("b", 3 * HOUR..3 * HOUR + 30);
    for (step, limit) in [
        (Step::Epoch, 1_000),
        (Step::Epoch, 97),
        (Step::Minute, 5),
        (Step::Minute, 1),
        (Step::Hour, 2),
    ] {
        check(&fixture, step, limit);
    }
}
