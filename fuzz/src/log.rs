//! The files of a store: data and index, of which either may be hostile.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use twixt_model::{Epoch, Span, Timestamp};
use twixt_store::{Day, Depth, Durability, EpochEntry, Log, Options, Query};

use crate::FuzzResult;

/// A folder that goes away with the value. Memory is fast, if the machine has such a folder.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let memory = PathBuf::from("/dev/shm");
        let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let folder = base.join(format!("twixt-fuzz-log-{}-{number}", std::process::id()));
        fs::create_dir_all(folder.join("paris")).expect("a temporary folder can be made");
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Takes the bytes as a day's data file with the index behind it (the first two bytes say how long
/// that is). Reads them with and without the index, and then has a writer go on with them: all
/// records that were found before are found afterwards, and the new one too.
pub fn log(bytes: &[u8]) -> FuzzResult {
    let Some((lengths, rest)) = bytes.split_first_chunk() else { return FuzzResult::Refused };
    let index_bytes = usize::from(u16::from_le_bytes(*lengths)).min(rest.len());
    let (data, index) = rest.split_at(rest.len() - index_bytes);
    let folder = Folder::new();
    let day = Day::of(Timestamp::from_nanos(0));
    let file = |ending: &str| folder.0.join("paris").join(format!("{day}.{ending}"));
    fs::write(file("twxl"), data).expect("the folder can be written to");
    let log = Log::open(&folder.0, Options::default());
    let without_index = epochs(&log);
    fs::write(file("twxi"), index).expect("the folder can be written to");
    let found = epochs(&log);
    fs::remove_file(file("twxi")).expect("it was just written");
    append(&log, &without_index);
    FuzzResult::of(!found.is_empty() || !without_index.is_empty())
}

/// The epochs of all records, at every depth.
fn epochs(log: &Log) -> Vec<i64> {
    let at = |depth| {
        let mut scan = log.scan(Query::all().to_depth(depth)).expect("the folder is there");
        let found: Vec<i64> = scan.by_ref().map(|found| found.epoch.0).collect();
        assert_eq!(scan.report().records, found.len() as u64);
        found
    };
    let (heads, checked, read) = (at(Depth::Heads), at(Depth::Checks), at(Depth::Payloads));
    assert!(heads.len() >= checked.len() && checked.len() >= read.len());
    read
}

/// Appends to what is there, unless that is not a log.
fn append(log: &Log, before: &[i64]) {
    let mut writer = log.writer("paris").expect("the name is fine");
    let span = Span::at(Timestamp::from_nanos(7));
    let entry = EpochEntry { stream: "fuzz", span, epoch: Epoch(i64::MAX) };
    if writer.append(&entry, b"appended", Durability::Written).is_ok() {
        let after = epochs(log);
        assert_eq!(after, [before, &[i64::MAX]].concat());
    }
}
