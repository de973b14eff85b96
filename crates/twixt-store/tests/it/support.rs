//! Logs to test with.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::select;
use tempfile::TempDir;
use twixt_model::{Epoch, Span, Timestamp};
use twixt_store::{
    Durability, EpochEntry, Faults, Found, Log, Operation, Options, Query, Report, StoreError,
};

/// In nanoseconds.
pub(crate) const MINUTE: i64 = 60_000_000_000;
/// In nanoseconds.
pub(crate) const DAY: i64 = 1440 * MINUTE;
/// 2024-01-01.
pub(crate) const START: i64 = 1_704_067_200_000_000_000;

pub(crate) fn span(start: i64, end: i64) -> Span {
    Span { start: Timestamp::from_nanos(start), end: Timestamp::from_nanos(end) }
}

/// The minute with this number after [`START`].
pub(crate) fn minute(number: i64) -> Span {
    span(START + number * MINUTE, START + (number + 1) * MINUTE - 1)
}

/// A payload by which its record is known.
pub(crate) fn payload(point: &str, number: i64) -> Vec<u8> {
    format!("{point} saw this in epoch {number}").into_bytes()
}

/// A log in a folder that goes away with the value.
pub(crate) struct Folder {
    folder: TempDir,
    pub(crate) log: Log,
}

impl Folder {
    pub(crate) fn new() -> Self {
        // Memory syncs at once, and the tests are not about the machine's death.
        let memory = Path::new("/dev/shm");
        let folder =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let folder = folder.expect("a temporary folder can be made");
        let log = Log::open(folder.path().join("store"), Options::default());
        Self { folder, log }
    }

    /// With so many minutes of a point.
    pub(crate) fn with(point: &str, minutes: i64) -> Self {
        let folder = Self::new();
        folder.store(point, 0..minutes);
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn store(&self, point: &str, minutes: std::ops::Range<i64>) {
        let mut writer = self.log.writer(point).expect("the name is fine");
        for number in minutes {
            append(&mut writer, point, number).expect("there is room");
        }
    }

    /// A file of a point's day.
    pub(crate) fn file(&self, point: &str, name: &str) -> PathBuf {
        self.log.folder().join(point).join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.file("paris", "2024-01-01.twxl")
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.file("paris", "2024-01-01.twxi")
    }
}

pub(crate) fn append(
    writer: &mut twixt_store::PointWriter,
    point: &str,
    number: i64,
) -> Result<(), StoreError> {
    let entry = EpochEntry { stream: "lda", span: minute(number), epoch: Epoch(number) };
    writer.append(&entry, &payload(point, number), Durability::Written)
}

/// All that a query finds, and the report.
#[track_caller]
pub(crate) fn ask(log: &Log, query: Query) -> (Vec<Found>, Report) {
    let mut scan = log.scan(query).expect("folders can be listed");
    let found: Vec<Found> = scan.by_ref().collect();
    let report = scan.report().clone();
    assert_eq!(report.records, found.len() as u64);
    (found, report)
}

/// The epochs of what a query finds; payloads are checked.
#[track_caller]
pub(crate) fn epochs(log: &Log, query: Query) -> (Vec<i64>, Report) {
    let (found, report) = ask(log, query);
    for record in &found {
        assert_eq!(record.payload, payload(&record.point, record.epoch.0));
    }
    (found.iter().map(|record| record.epoch.0).collect(), report)
}

pub(crate) fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("the file is there");
    change(&mut bytes);
    fs::write(path, bytes).expect("the file can be written");
}

/// What a disk does wrong, or nothing; a full one has room for fewer than so many bytes.
pub(crate) fn disk_faults(bytes: u64) -> impl Strategy<Value = Faults> {
    let none = Faults::default;
    prop_oneof![
        3 => Just(none()),
        2 => (select(&Operation::ALL), 1..6_u64)
            .prop_map(move |failing| Faults { failing: vec![failing], ..none() }),
        1 => (0..bytes).prop_map(move |bytes| Faults { bytes_max: Some(bytes), ..none() }),
        1 => (0..4_usize).prop_map(move |files| Faults { open_files_max: Some(files), ..none() }),
        1 => Just(Faults { is_read_only: true, ..none() }),
        1 => Just(Faults { has_short_reads: true, ..none() }),
    ]
}
