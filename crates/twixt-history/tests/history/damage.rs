//! A damaged file is named, tells nothing, and costs no other hour.

use std::fs;
use std::path::Path;

use twixt_history::{Answer, Step};

use crate::support::{Fixture, HOUR, ask, between, files};

/// Three sealed hours.
fn sealed() -> Fixture {
    let fixture = Fixture::new();
    fixture.store("b", (0..3 * HOUR).step_by(120));
    fixture.history.seal_all().unwrap();
    fixture
}

fn answer(fixture: &Fixture, step: Step) -> Answer {
    fixture.answer(&ask("b", step, between(0, 3 * HOUR)))
}

#[track_caller]
fn check(step: Step, folder: &str, change: impl Fn(&Path)) {
    let fixture = sealed();
    let before = answer(&fixture, step);
    let path = files(&fixture.path().join(folder), ".parquet").remove(1);
    change(&path);
    let after = answer(&fixture, step);
    assert_eq!(after.problems.len(), 1);
    let problem = after.problems[0].to_string();
    assert!(problem.contains(path.to_str().unwrap()), "{problem}");
    assert!(!after.is_complete());
    let hour_of = |row: &&twixt_history::Row| (row.start_ns / 1_000_000_000 / HOUR) % 24 != 11;
    let others: Vec<_> = before.rows.iter().filter(hour_of).collect();
    assert_eq!(after.rows.iter().filter(hour_of).collect::<Vec<_>>(), others);
    let lost = after.rows.iter().find(|row| !hour_of(row)).unwrap();
    assert!(lost.is_gap() && lost.delay.is_none());
    assert_eq!(lost.reason.as_deref(), Some("what was stored cannot be read"));
}

#[test]
fn a_changed_bit_is_found_wherever_it_is() {
    let length = fs::metadata(&files(sealed().path(), ".parquet")[0]).unwrap().len() as usize;
    for at in [0, 4, 100, length / 2, length - 200, length - 5, length - 1] {
        let flip = |path: &Path| {
            let mut bytes = fs::read(path).unwrap();
            let at = at.min(bytes.len() - 1);
            bytes[at] ^= 0x10;
            fs::write(path, bytes).unwrap();
        };
        check(Step::Epoch, "epochs", flip);
        check(Step::Minute, "rollups", flip);
    }
}

#[test]
fn files_that_are_cut_or_empty_are_found() {
    for length in [0, 3, 8, 500] {
        let cut = |path: &Path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..length.min(bytes.len())]).unwrap();
        };
        check(Step::Hour, "rollups", cut);
    }
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let fixture = sealed();
    let before = answer(&fixture, Step::Epoch).rows;
    let day = fixture.path().join("epochs/2024-01-31");
    fs::write(day.join("notes.txt"), "mine").unwrap();
    fs::write(day.join("11-0.parquet"), "PAR1").unwrap();
    fs::create_dir_all(fixture.path().join("open/keep")).unwrap();
    let fixture = fixture.reopened();
    assert_eq!(answer(&fixture, Step::Epoch).rows, before);
    assert!(day.join("notes.txt").exists());
}

#[test]
fn without_the_catalogue_the_hours_tell() {
    let fixture = sealed();
    let before = answer(&fixture, Step::Minute).rows;
    fs::write(fixture.path().join("series"), "damaged").unwrap();
    assert_eq!(answer(&fixture, Step::Minute).rows, before);
    fs::remove_file(fixture.path().join("series")).unwrap();
    let fixture = fixture.reopened();
    assert_eq!(answer(&fixture, Step::Minute).rows, before);
}
