//! Rows and questions for tests.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use twixt_history::{
    DelayPart, DelaySteps, History, HistoryConfig, HistoryReader, Quantile, Row, RowAnswer,
    RowQuestion, SeriesKey, Step,
};
use twixt_model::{PointId, Segment, Span, Timestamp};

/// 2024-01-31T10:00:00Z.
pub(crate) const START_NS: i64 = 1_706_695_200_000_000_000;
pub(crate) const SECOND_NS: i64 = 1_000_000_000;
pub(crate) const HOUR: i64 = 3_600;

/// A history in a folder of its own.
pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    pub(crate) history: History,
    config: HistoryConfig,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(HistoryConfig::default())
    }

    pub(crate) fn with(config: HistoryConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let history = History::open(folder.path(), config).unwrap();
        Self { folder, history, config }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// As after a crash: what was not synced may be there or not, memory is not.
    pub(crate) fn reopened(self) -> Self {
        let Self { folder, history, config } = self;
        drop(history);
        let history = History::open(folder.path(), config).unwrap();
        Self { folder, history, config }
    }

    /// Stores the epochs of a segment, by their seconds since the start.
    pub(crate) fn store(&self, downstream: &str, seconds: impl IntoIterator<Item = i64>) {
        for second in seconds {
            self.history.append(&[row(downstream, second)], at(second)).unwrap();
        }
        self.history.sync().unwrap();
    }

    pub(crate) fn answer(&self, question: &RowQuestion) -> RowAnswer {
        let live = self.history.answer(question).unwrap();
        let read = HistoryReader::open(self.path()).answer(question).unwrap();
        assert_eq!(live.rows.len(), read.rows.len(), "who writes and who reads agree");
        for (one, other) in live.rows.iter().zip(&read.rows) {
            same(one, other);
        }
        live
    }
}

/// Equal but for digits of floats that depend on the order of addition: means are rounded to a
/// nanosecond before they are compared, which is 5e-5 of the 20 µs that they differ by.
#[track_caller]
pub(crate) fn same(one: &Row, other: &Row) {
    let near = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => (one - other).abs() <= 1e-4 * one.abs().max(other.abs()),
        (one, other) => one == other,
    };
    let parts = one.delay.as_ref().zip(other.delay.as_ref());
    assert!(parts.is_none_or(|(one, other)| {
        near(one.squares_ns2, other.squares_ns2) && near(one.half_width_ns, other.half_width_ns)
    }));
    let plain = |row: &Row| {
        let mut row = row.clone();
        if let Some(delay) = &mut row.delay {
            (delay.squares_ns2, delay.half_width_ns) = (None, None);
        }
        row
    };
    assert_eq!(plain(one), plain(other));
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_nanos(START_NS + second * SECOND_NS)
}

/// From a second's first moment to another's last.
pub(crate) fn between(first: i64, last: i64) -> Span {
    Span { start: at(first), end: Timestamp::from_nanos(at(last + 1).as_nanos() - 1) }
}

pub(crate) fn segment(downstream: &str) -> Segment {
    Segment { upstream: PointId("a".to_owned()), downstream: PointId(downstream.to_owned()) }
}

pub(crate) fn series(downstream: &str) -> SeriesKey {
    SeriesKey {
        upstream: "a".to_owned(),
        downstream: downstream.to_owned(),
        class: String::new(),
        algorithm: "lda".to_owned(),
        domain: "lab".to_owned(),
        epoch_ns: SECOND_NS,
    }
}

/// An epoch of ten packets, of which one was lost.
pub(crate) fn row(downstream: &str, second: i64) -> Row {
    let start_ns = at(second).as_nanos();
    let series = series(downstream);
    Row {
        packets: Some(10),
        used: Some(9),
        lost: Some(1),
        delay: Some(DelayPart {
            count: 9,
            sum_ns: 9_000 * i128::from(second),
            squares_ns2: Some(900.0),
            half_width_ns: Some(3.0),
            min_ns: Some(1_000 * second - 20),
            quantiles: [Quantile::of(1_000 * second); 4],
            max_ns: Some(1_000 * second + 20),
            histogram: None,
            steps: Some(DelaySteps { count: 9, sum_ns: 90.0 }),
        }),
        ..Row::untold(series, start_ns / SECOND_NS)
    }
}

pub(crate) fn ask(downstream: &str, step: Step, span: Span) -> RowQuestion {
    RowQuestion { segment: Some(segment(downstream)), span, ..RowQuestion::all(step) }
}

/// All files below a folder, with some ending.
pub(crate) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false if path.to_string_lossy().ends_with(ending) => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}
