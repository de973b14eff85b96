//! What an hour takes in memory when it is opened, sealed and asked for: not more for more series.

use std::path::Path;

use twixt_history::{History, HistoryConfig, Row, RowQuestion, Step, histogram};
use twixt_model::Histogram;
use twixt_testing::{peak_kib, run_again};

use crate::support::{Fixture, ask, at, between, row, segment};

/// Rows of one segment, so that all are in one shard: 10 KB each, 98 MB.
const CLASSES: i64 = 16;
const EPOCHS: i64 = 600;
/// Sealing holds a row group of 16 MiB, what is summed up of its series (minutes of 20 KB), and a
/// page as Parquet writes it. All rows at once would be more than this.
const MEMORY_MAX_KIB: u64 = 64 << 10;
const BUCKETS: u32 = 640;

/// A row whose histogram has as many buckets as are kept.
fn large_row(downstream: &str, second: i64) -> Row {
    let mut histogram = Histogram::new(BUCKETS as usize);
    let value = |bucket: u32| 2_f64.powf(10.0 + f64::from(bucket) / 64.0) as i64;
    (0..BUCKETS).for_each(|bucket| histogram.add(value(bucket), 1.0));
    let mut row = row(downstream, second);
    row.delay.as_mut().unwrap().histogram = Some(histogram::encode(&histogram));
    row
}

fn stored() -> tempfile::TempDir {
    let Fixture { folder, history, .. } = Fixture::new();
    for second in 0..EPOCHS {
        let mut row = large_row("b", second);
        for class in 0..CLASSES {
            row.series.class = class.to_string();
            history.append(std::slice::from_ref(&row), at(second)).unwrap();
        }
    }
    history.sync().unwrap();
    folder
}

fn open(folder: &Path) -> History {
    History::open(folder, HistoryConfig::default()).unwrap()
}

#[test]
fn an_hour_that_is_larger_than_memory_may_be_is_opened_asked_for_and_sealed() {
    run_again(&["env"], || {
        let folder = stored();
        let (history, opened) = peak_kib(|| open(folder.path()));
        let question = RowQuestion { segment: Some(segment("b")), ..RowQuestion::all(Step::Epoch) };
        let (answer, answered) = peak_kib(|| history.answer(&question).unwrap());
        assert_eq!(answer.epochs(), ((CLASSES * EPOCHS) as u64, 0));
        let (problems, sealed) = peak_kib(|| history.seal_all().unwrap());
        assert_eq!(problems, []);
        assert_eq!(history.answer(&question).unwrap().rows, answer.rows);
        println!("opened: {opened} KiB, asked for: {answered} KiB, sealed: {sealed} KiB");
        assert!(opened.max(answered).max(sealed) < MEMORY_MAX_KIB);
    });
}

#[test]
fn the_first_epochs_of_an_hour_take_no_memory_for_the_others() {
    run_again(&["env"], || {
        let folder = stored();
        let history = open(folder.path());
        let question =
            RowQuestion { histograms: true, limit: 100, ..RowQuestion::all(Step::Epoch) };
        let (open_rows, of_log) = peak_kib(|| history.answer(&question).unwrap().rows);
        assert_eq!(history.seal_all().unwrap(), []);
        let (sealed_rows, of_file) = peak_kib(|| history.answer(&question).unwrap().rows);
        assert_eq!((open_rows.len(), &sealed_rows), (100, &open_rows));
        println!("from the log: {of_log} KiB, from the file: {of_file} KiB");
        assert!(of_log.max(of_file) < MEMORY_MAX_KIB);
    });
}

#[test]
fn minutes_beyond_what_memory_may_have_are_read_from_the_log() {
    let fixture = Fixture::new();
    // 256 MiB by minutes of 20 KB at least, hours not counted.
    let segments: Vec<String> = (0..230).map(|number| format!("b{number}")).collect();
    for minute in 0..60 {
        for segment in &segments {
            let second = 60 * minute;
            fixture.history.append(&[large_row(segment, second)], at(second)).unwrap();
        }
        assert!(fixture.history.rollup_bytes() <= 256 << 20);
    }
    fixture.history.sync().unwrap();
    assert_eq!(fixture.history.counts().rollups_refused, 1);
    let answer = fixture.answer(&ask("b7", Step::Minute, between(0, 3599)));
    assert_eq!(answer.rows.iter().map(|row| row.epochs).sum::<u64>(), 60);
}
