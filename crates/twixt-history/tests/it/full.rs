//! A full disk costs nothing that was stored, and what is half written counts for nothing.

use twixt_history::{History, HistoryConfig, HistoryRetention, Row, RowQuestion, Step};
use twixt_testing::{SmallDisk, require};

use crate::support::{HOUR, SECOND_NS, at, files, row, same};

fn open(disk: &SmallDisk, retention: HistoryRetention) -> History {
    let config = HistoryConfig { retention, ..HistoryConfig::default() };
    History::open(&disk.path().join("history"), config).unwrap()
}

fn store(history: &History, seconds: impl IntoIterator<Item = i64>) {
    for second in seconds {
        history.append(&[row("b", second)], at(second)).unwrap();
    }
    history.sync().unwrap();
}

#[track_caller]
fn check_rows(history: &History, step: Step, expected: &[Row]) {
    let found = history.answer(&RowQuestion::all(step)).unwrap();
    assert!(found.problems.is_empty());
    assert_eq!(found.rows.len(), expected.len());
    found.rows.iter().zip(expected).for_each(|(one, other)| same(one, other));
}

#[test]
fn an_hour_that_cannot_be_sealed_is_as_it_was() {
    require!(mounts);
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(folder.path(), "size=2m");
    let history = open(&disk, HistoryRetention::default());
    store(&history, 0..600);
    let told = Step::ALL.map(|step| history.answer(&RowQuestion::all(step)).unwrap().rows);
    for left in [0, 4_096, 12_288] {
        disk.fill_but(left);
        let kept = history.keep(at(3 * HOUR)).unwrap();
        assert!(kept.sealed.is_empty());
        let problem = kept.unsealed[0].to_string();
        assert!(problem.contains("No space left on device"), "{problem}");
        assert!(files(disk.path(), ".parquet").is_empty() && files(disk.path(), ".new").is_empty());
        Step::ALL.iter().zip(&told).for_each(|(step, rows)| check_rows(&history, *step, rows));
        disk.empty();
    }
    // Killed meanwhile, or not: with room again, it is sealed.
    drop(history);
    let history = open(&disk, HistoryRetention::default());
    let kept = history.keep(at(3 * HOUR)).unwrap();
    assert_eq!((kept.sealed.len(), kept.unsealed.len()), (1, 0));
    Step::ALL.iter().zip(&told).for_each(|(step, rows)| check_rows(&history, *step, rows));
}

#[test]
fn rows_that_could_not_be_appended_are_appended_later_and_once() {
    require!(mounts);
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(folder.path(), "size=2m");
    let history = open(&disk, HistoryRetention::default());
    store(&history, 0..60);
    disk.fill_but(0);
    let stored = |second: i64| history.append(&[row("b", second)], at(second)).is_ok();
    let first = (60..10_000).find(|&second| !stored(second)).expect("the disk is full");
    assert!(!stored(first), "it still is");
    let answer = history.answer(&RowQuestion::all(Step::Epoch)).unwrap();
    assert_eq!((answer.rows.len() as i64, answer.is_complete()), (first, true));
    disk.empty();
    store(&history, 0..first + 60);
    let expected: Vec<Row> = (0..first + 60).map(|second| row("b", second)).collect();
    check_rows(&history, Step::Epoch, &expected);
    history.seal_all().unwrap();
    check_rows(&history, Step::Epoch, &expected);
}

#[test]
fn what_is_old_makes_room_for_what_is_new() {
    require!(mounts);
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(folder.path(), "size=2m");
    let age_ns = Some(5 * HOUR * SECOND_NS);
    let retention = HistoryRetention {
        epochs_age_ns: age_ns,
        rollups_age_ns: age_ns,
        ..HistoryRetention::default()
    };
    let history = open(&disk, retention);
    for hour in 0..4 {
        store(&history, hour * HOUR..hour * HOUR + 1_000);
    }
    history.seal_all().unwrap();
    store(&history, 4 * HOUR..4 * HOUR + 100);
    disk.fill_but(0);
    assert_eq!(history.keep(at(6 * HOUR - 1)).unwrap().unsealed.len(), 1);
    // By now the first hours are old: without them there is room.
    let kept = history.keep(at(10 * HOUR - 600)).unwrap();
    assert_eq!((kept.sealed.len(), kept.unsealed.len()), (1, 0));
    assert_eq!(kept.removed.files, 2 * 4);
    let rows = history.answer(&RowQuestion::all(Step::Epoch)).unwrap().rows;
    assert_eq!((rows.len(), rows[0].start_ns), (100, at(4 * HOUR).as_nanos()));
}
