//! A kill while an hour is sealed neither loses nor doubles it.

use std::fs;

use twixt_history::{RowQuestion, Step};
use twixt_testing::copy_folder;

use crate::support::{Fixture, HOUR, at, files, row};

/// What there is, in all steps: rows, epochs, packets.
fn told(fixture: &Fixture) -> Vec<(usize, u64, u64)> {
    let summary = |step| {
        let answer = fixture.answer(&RowQuestion::all(step));
        let packets = answer.rows.iter().filter_map(|row| row.packets).sum();
        (answer.rows.len(), answer.epochs().0, packets)
    };
    Step::ALL.map(summary).into()
}

#[test]
fn killed_before_the_log_is_deleted() {
    let fixture = Fixture::new();
    fixture.store("b", 0..200);
    fixture.store("c", 0..100);
    let expected = told(&fixture);
    let open = fixture.path().join("open");
    let saved = tempfile::tempdir().unwrap();
    copy_folder(&open, saved.path());
    fixture.history.seal_all().unwrap();
    // As if it had been killed between the last rename and the deletion.
    copy_folder(saved.path(), &open);
    let fixture = fixture.reopened();
    assert_eq!(told(&fixture), expected);
    // What comes then is in the log too, and the part is sealed again.
    fixture.store("c", 100..110);
    fixture.history.keep(at(2 * HOUR)).unwrap();
    let with_more = told(&fixture);
    assert_eq!(with_more[0], (310, 310, 3_100));
    assert_eq!(files(fixture.path(), ".parquet").len(), 2, "what was stale is deleted");
    assert_eq!(told(&fixture.reopened()), with_more);
}

#[test]
fn killed_between_the_two_files() {
    let fixture = Fixture::new();
    fixture.store("b", 0..200);
    let expected = told(&fixture);
    let open = fixture.path().join("open");
    let saved = tempfile::tempdir().unwrap();
    copy_folder(&open, saved.path());
    fixture.history.seal_all().unwrap();
    copy_folder(saved.path(), &open);
    fs::remove_dir_all(fixture.path().join("rollups")).unwrap();
    let fixture = fixture.reopened();
    assert_eq!(told(&fixture), expected);
    fixture.history.seal_all().unwrap();
    assert_eq!(told(&fixture), expected);
}

#[test]
fn killed_while_a_file_is_written() {
    let fixture = Fixture::new();
    fixture.store("b", 0..200);
    let expected = told(&fixture);
    let day = fixture.path().join("epochs/2024-01-31");
    fs::create_dir_all(&day).unwrap();
    fs::write(day.join("10-0.new"), b"PAR1 half of it").unwrap();
    let fixture = fixture.reopened();
    assert_eq!(told(&fixture), expected);
    fixture.history.seal_all().unwrap();
    assert_eq!(told(&fixture), expected);
    assert!(files(fixture.path(), ".new").is_empty());
}

#[test]
fn killed_while_the_log_is_deleted() {
    let fixture = Fixture::new();
    fixture.store("b", 0..200);
    let expected = told(&fixture);
    let saved = tempfile::tempdir().unwrap();
    copy_folder(&fixture.path().join("open/2024-01-31T10-0"), saved.path());
    fixture.history.seal_all().unwrap();
    copy_folder(saved.path(), &fixture.path().join("open/gone-2024-01-31T10-0"));
    let fixture = fixture.reopened();
    assert_eq!(told(&fixture), expected);
    assert!(files(&fixture.path().join("open"), "").is_empty());
}

#[test]
fn what_is_told_again_is_not_there_twice() {
    let fixture = Fixture::new();
    fixture.store("b", 0..200);
    let expected = told(&fixture);
    let fixture = fixture.reopened();
    fixture.store("b", 150..200);
    assert_eq!(told(&fixture), expected);
    fixture.history.seal_all().unwrap();
    fixture.store("b", 150..200);
    assert_eq!(told(&fixture), expected);
    assert_eq!(fixture.history.counts().repeated, 100);
}

#[test]
fn an_unfinished_record_costs_nobody_else() {
    let fixture = Fixture::new();
    fixture.store("b", 0..50);
    let log = files(&fixture.path().join("open"), ".twxl").pop().unwrap();
    let whole = fs::read(&log).unwrap();
    let fixture = fixture.reopened();
    fixture.history.append(&[row("b", 50)], at(50)).unwrap();
    let longer = fs::read(&log).unwrap();
    fs::write(&log, &longer[..whole.len() + 20]).unwrap();
    let fixture = fixture.reopened();
    assert_eq!(told(&fixture)[0], (50, 50, 500));
    fixture.store("b", 50..51);
    assert_eq!(told(&fixture)[0], (51, 51, 510));
}
