//! An answer in pages is the answer.

use twixt_history::{Row, RowQuestion, Step};

use crate::support::{Fixture, HOUR};

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
