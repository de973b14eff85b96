//! What is stored of a segment and a time answers on another machine as it does here.

use std::path::Path;

use twixt_history::{
    EXCERPT_ROWS_MAX, ExcerptAsked, ExcerptKind, ExcerptPart, ExcerptSummary, HistoryError,
    HistoryReader, Hour, RebuildError, RebuiltFile, Row, RowQuestion, Step, rebuild_catalogue,
    rows_from_bytes, rows_to_bytes,
};
use twixt_model::Span;

use crate::support::{Fixture, HOUR, SECOND_NS, ask, at, between, row, segment, series};

/// The excerpt as a history of its own, through bytes.
fn rebuilt(fixture: &Fixture, span: Span, folder: &Path) -> ExcerptSummary {
    let asked = ExcerptAsked { segment: segment("b"), span };
    let mut parts = Vec::new();
    let take = |part: ExcerptPart| -> Result<(), HistoryError> {
        parts.push(part);
        Ok(())
    };
    let summary = fixture.history.excerpt(&asked, take).unwrap();
    for ExcerptPart { hour, kind, rows } in parts {
        let rows = rows_from_bytes(&rows_to_bytes(&rows)).unwrap();
        let mut file = RebuiltFile::begin(folder, hour, kind).unwrap();
        let is_known = |of: &_| summary.series.iter().any(|(known, _)| known == of);
        rows.chunks(100).for_each(|rows| file.add(rows.to_vec(), is_known).unwrap());
        file.finish().unwrap();
    }
    rebuild_catalogue(folder, &summary.series).unwrap();
    summary
}

/// Checks that every question about a time within the excerpt has the same answer.
#[track_caller]
fn check_answers(fixture: &Fixture, first: i64, last: i64) {
    let folder = tempfile::tempdir().unwrap();
    let summary = rebuilt(fixture, between(first, last), folder.path());
    let reader = HistoryReader::open(folder.path());
    let middle = first + (last - first) / 2;
    let times = [(first, last), (first + 7, last - 3), (middle, last.min(middle + 90))];
    for (step, (from, to)) in Step::ALL.into_iter().flat_map(|step| times.map(|time| (step, time)))
    {
        for (histograms, only_gaps) in [(true, false), (false, false), (false, true)] {
            let question =
                RowQuestion { histograms, only_gaps, ..ask("b", step, between(from, to)) };
            let expected = fixture.history.answer(&question).unwrap();
            let found = reader.answer(&question).unwrap();
            assert_eq!(found.rows, expected.rows, "{step}, {from} to {to}");
            assert_eq!((found.stored, found.next), (expected.stored, expected.next));
        }
    }
    assert_eq!((summary.epochs_end, summary.sums_end), (None, None));
    let all = reader.answer(&RowQuestion::all(Step::Epoch)).unwrap();
    assert!(all.rows.iter().all(|row| row.series == series("b")), "other segments stay here");
}

fn gap(first: i64, last: i64) -> Row {
    let epochs = (last - first + 1) as u64;
    let first_epoch = at(first).as_nanos() / SECOND_NS;
    Row::of_gap(series("b"), first_epoch, between(first, last), epochs, "no epoch".to_owned())
}

/// Two hours: sealed, sealed in parts, and not sealed; with gaps, holes, and epochs that came late.
fn eventful() -> Fixture {
    let fixture = Fixture::new();
    for downstream in ["b", "c"] {
        fixture.store(downstream, (0..2_000).filter(|second| second % 50 != 3));
    }
    fixture.history.append(&[gap(2_000, 2_100)], at(2_100)).unwrap();
    let late = (2_040..2_060).map(|second| Row { late_epochs: 1, ..row("b", second) });
    late.for_each(|row| fixture.history.append(&[row], at(2_200)).unwrap());
    fixture.store("b", 2_400..3_000);
    fixture.history.seal_all().unwrap();
    // A second part of the first hour, and the next hour, which stays open.
    fixture.store("b", (3_100..3_300).chain(3_550..3_900));
    fixture.history.append(&[gap(3_900, 3_950)], at(3_950)).unwrap();
    fixture.store("b", 4_000..4_200);
    fixture
}

#[test]
fn an_excerpt_answers_as_where_it_came_from() {
    let fixture = eventful();
    for (first, last) in [(0, 4_300), (100, 700), (1_990, 2_110), (2_050, 2_450), (3_000, 4_150)] {
        check_answers(&fixture, first, last);
    }
    // Within a gap, and where nothing is stored.
    check_answers(&fixture, 2_010, 2_030);
    check_answers(&fixture, 2_150, 2_350);
    let sealed = fixture.reopened();
    sealed.history.seal_all().unwrap();
    check_answers(&sealed, 30, 4_170);
}

#[test]
fn minutes_of_epochs_that_are_no_longer_kept_say_so_there_too() {
    let fixture = eventful();
    fixture.history.seal_all().unwrap();
    for path in crate::support::files(&fixture.path().join("epochs"), ".parquet") {
        std::fs::remove_file(path).unwrap();
    }
    check_answers(&fixture, 200, 2_900);
}

#[test]
fn what_is_not_stored_makes_an_empty_excerpt() {
    let fixture = eventful();
    let folder = tempfile::tempdir().unwrap();
    let summary = rebuilt(&fixture, between(9 * HOUR, 10 * HOUR), folder.path());
    assert_eq!(summary, ExcerptSummary::default());
}

#[test]
fn hours_with_too_many_rows_are_left_out_as_a_whole() {
    let fixture = Fixture::new();
    // Flows make many rows of few epochs.
    let flows = |second: i64| -> Vec<Row> {
        let of_flow = |flow: usize| Row {
            scope_kind: "flow".to_owned(),
            scope: format!("flow {flow}"),
            ..row("b", second)
        };
        (0..EXCERPT_ROWS_MAX / 100).map(of_flow).collect()
    };
    for second in (0..70).chain(HOUR..HOUR + 70) {
        fixture.history.append(&flows(second), at(second)).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let summary = rebuilt(&fixture, between(0, 2 * HOUR), folder.path());
    assert_eq!(summary.epochs_end, Some(at(HOUR)));
    assert_eq!((summary.rows[0], summary.sums_end), (70_000, None));
    let reader = HistoryReader::open(folder.path());
    let later = reader.answer(&ask("b", Step::Epoch, between(HOUR, HOUR + 69))).unwrap();
    let reason = later.rows[0].reason.as_deref();
    assert_eq!((later.rows.len(), reason.unwrap().contains("no longer kept")), (1, true));
    let minutes = reader.answer(&ask("b", Step::Minute, between(HOUR, HOUR + 69))).unwrap();
    assert!(minutes.rows.iter().all(|row| row.epochs > 0));
}

#[test]
fn rows_that_lie_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let hour = Hour::of(at(0));
    let check = |row: Row, problem: &str| {
        let mut file = RebuiltFile::begin(folder.path(), hour, ExcerptKind::Epochs).unwrap();
        match file.add(vec![row], |of| *of == series("b")) {
            Err(RebuildError::Rows(found)) => assert!(found.contains(problem), "{found}"),
            other => panic!("{problem}: {other:?}"),
        }
    };
    check(row("b", HOUR), "another hour");
    check(Row { step: Step::Minute, ..row("b", 1) }, "another length");
    check(Row { end_ns: at(0).as_nanos(), ..row("b", 1) }, "ends at no time");
    check(Row { end_ns: i64::MAX, ..row("b", 1) }, "ends at no time");
    check(Row { gaps: u64::MAX, ..row("b", 1) }, "no such count");
    check(row("c", 1), "not listed");
    check(Row { scope: "\u{1b}[2J".to_owned(), ..row("b", 1) }, "scope is hidden");
    check(Row { reason: Some("a\rb".to_owned()), ..row("b", 1) }, "reason is hidden");
    let mut nothing = row("b", 1);
    nothing.delay.as_mut().unwrap().count = 0;
    check(nothing, "delays of no packets");
    let mut endless = row("b", 1);
    endless.series.epoch_ns = -1;
    check(endless, "no length");
}
