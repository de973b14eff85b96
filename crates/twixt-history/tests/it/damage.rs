//! A damaged file is named, tells nothing, and costs no other hour.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use parquet::data_type::Int64Type;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use twixt_history::{RowAnswer, Step};
use xxhash_rust::xxh3::xxh3_64;

use crate::support::{Fixture, HOUR, ask, between, files};

const UNREADABLE: &str = "stored data cannot be read";

/// Three sealed hours.
fn sealed() -> Fixture {
    let fixture = Fixture::new();
    fixture.store("b", (0..3 * HOUR).step_by(120));
    fixture.history.seal_all().unwrap();
    fixture
}

fn answer(fixture: &Fixture, step: Step) -> RowAnswer {
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
    assert!(problem.contains("delete it, or restore a copy"), "{problem}");
    assert_eq!(problem.lines().count(), 1);
    assert!(!after.is_complete());
    let hour_of = |row: &&twixt_history::Row| (row.start_ns / 1_000_000_000 / HOUR) % 24 != 11;
    let others: Vec<_> = before.rows.iter().filter(hour_of).collect();
    assert_eq!(after.rows.iter().filter(hour_of).collect::<Vec<_>>(), others);
    let lost = after.rows.iter().find(|row| !hour_of(row)).unwrap();
    assert!(lost.is_gap() && lost.delay.is_none());
    assert_eq!(lost.reason.as_deref(), Some(UNREADABLE));
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
        // A half-written file never has the name of a whole one; this one was cut later.
    }
}

/// A foreign Parquet file under a valid name, with a matching checksum.
fn put_foreign(path: &Path) {
    let schema = Arc::new(parse_message_type("message other { required int64 id; }").unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[1, 2, 3], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    let bytes = writer.into_inner().unwrap();
    let name = format!("11-0-{:016x}.parquet", xxh3_64(&bytes));
    fs::remove_file(path).unwrap();
    fs::write(path.with_file_name(name), bytes).unwrap();
}

#[test]
fn a_file_with_other_columns_tells_nothing() {
    for (step, folder) in [(Step::Epoch, "epochs"), (Step::Minute, "rollups")] {
        let fixture = sealed();
        put_foreign(&files(&fixture.path().join(folder), ".parquet")[1]);
        let answer = answer(&fixture, step);
        let problem = answer.problems[0].to_string();
        assert!(problem.contains("not a file of estimates: it has no column step"), "{problem}");
        assert!(!answer.is_complete());
        let lost = answer.rows.iter().filter(|row| row.reason.as_deref() == Some(UNREADABLE));
        assert!(lost.count() >= 1);
    }
}

#[test]
fn a_damaged_record_of_the_log_is_missed_before_and_after_it_is_sealed() {
    let fixture = Fixture::new();
    fixture.store("b", 0..120);
    let log = files(&fixture.path().join("open"), ".twxl").pop().unwrap();
    let mut bytes = fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&log, bytes).unwrap();
    let fixture = fixture.reopened();
    for is_sealed in [false, true] {
        if is_sealed {
            assert_eq!(fixture.history.seal_all().unwrap().len(), 1);
        }
        for step in Step::ALL {
            let answer = fixture.history.answer(&ask("b", step, between(0, 120))).unwrap();
            assert_eq!(answer.epochs(), (119, 1), "{step}");
            assert!(!answer.is_complete());
        }
    }
}

#[test]
fn an_hour_that_a_newer_release_wrote_is_refused_in_one_line_and_stays() {
    let fixture = Fixture::new();
    fixture.store("b", 0..120);
    let log = files(&fixture.path().join("open"), ".twxl").pop().unwrap();
    let mut bytes = fs::read(&log).unwrap();
    bytes[4] = 9;
    let checksum = xxh3_64(&bytes[..8]);
    bytes[8..16].copy_from_slice(&checksum.to_le_bytes());
    fs::write(&log, &bytes).unwrap();
    let refused = fixture.history.seal_all().unwrap_err().to_string();
    assert!(refused.contains("format version 9 is newer than 1"), "{refused}");
    assert!(refused.contains(log.to_str().unwrap()), "{refused} does not say which file");
    assert_eq!(refused.lines().count(), 1);
    assert_eq!(fs::read(&log).unwrap(), bytes);
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
