//! The file of one day, locked and being appended to.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

use twixt_model::{Epoch, Timestamp};

use super::DAY_RECORDS_MAX;
use super::known::{Known, Sought};
use super::recover::recover;
use crate::day::Day;
use crate::day_files::DayFiles;
use crate::error::StoreError;
use crate::format::{Head, IndexEntry, checksum};
use crate::index::IndexWriter;
use crate::query::{Depth, Query};
use crate::scan::{Scan, read_body};
use crate::walk::Source;

/// How often a file may be deleted between opening and locking it.
const TRIES_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct DayWriter {
    files: DayFiles,
    data: Source,
    /// Where the next frame goes.
    end: u64,
    /// What lies before is synced.
    synced_end: u64,
    /// `None` after it could not be written: who opens the file next completes it.
    index: Option<IndexWriter>,
    records: u64, // at most DAY_RECORDS_MAX
    /// Latest end of all records.
    reach: Timestamp,
    cut_bytes: u64,
    /// Places by stream and epoch, once they are asked for.
    known: Option<Known>,
    frame: Vec<u8>,
}

impl DayWriter {
    /// Opens and locks a day's file, cuts off an unfinished end, and completes the index.
    pub(super) fn open(files: DayFiles) -> Result<Self, StoreError> {
        let mut data = Source::new(lock(&files)?);
        let recovered = recover(&files, &mut data)?;
        Ok(Self {
            files,
            data,
            end: recovered.end,
            synced_end: 0,
            index: recovered.index,
            records: recovered.records,
            reach: recovered.reach,
            cut_bytes: recovered.cut_bytes,
            known: None,
            frame: Vec::new(),
        })
    }

    pub(super) const fn day(&self) -> Day {
        self.files.day
    }

    pub(super) const fn cut_bytes(&self) -> u64 {
        self.cut_bytes
    }

    /// Appends the frame that `build` lays out for its place.
    pub(super) fn append(
        &mut self,
        durability: super::Durability,
        build: impl FnOnce(u64, &mut Vec<u8>) -> io::Result<Head>,
    ) -> Result<(), StoreError> {
        if self.records >= DAY_RECORDS_MAX {
            return Err(StoreError::DayFull { path: self.files.data.clone() });
        }
        let start = self.end;
        self.frame.clear();
        let head = build(start, &mut self.frame).map_err(StoreError::write(&self.files.data))?;
        let written = self.data.file.write_all_at(&self.frame, start);
        self.end = start + head.frame_bytes();
        let stored = written.map_err(StoreError::write(&self.files.data)).and_then(|()| {
            if durability == super::Durability::Synced { self.sync() } else { Ok(()) }
        });
        if stored.is_err() {
            // Should this fail too, the next writer cuts it off.
            let _ = self.data.file.set_len(start);
            self.end = start;
            return stored;
        }
        self.note(start, &head);
        Ok(())
    }

    /// Whether a sound record of this stream and epoch is there.
    pub(super) fn holds(&mut self, stream: &str, epoch: Epoch) -> Result<bool, StoreError> {
        let Some(place) = self.place_of((checksum(stream.as_bytes()), epoch.0)) else {
            return Ok(false);
        };
        let found = self.data.head_at(place).and_then(|head| match head {
            Some(head) => read_body(&mut self.data, place, &head, Depth::Checks),
            None => Ok(None),
        });
        let found = found.map_err(StoreError::open("read", &self.files.data))?;
        Ok(found.is_some_and(|(name, _)| name == stream))
    }

    pub(super) fn sync(&mut self) -> Result<(), StoreError> {
        if self.synced_end < self.end {
            self.data.file.sync_data().map_err(StoreError::write(&self.files.data))?;
            self.synced_end = self.end;
        }
        Ok(())
    }

    /// Where a record is, by hash of its stream and epoch.
    fn place_of(&mut self, record: (u64, i64)) -> Option<u64> {
        let known = self.known.take().unwrap_or_else(|| Known::of(self.records()));
        let known = match known.find(record) {
            Sought::Forgotten => Known::all_of(self.records()),
            _ => known,
        };
        let found = known.find(record);
        self.known = Some(known);
        match found {
            Sought::At(place) => Some(place),
            Sought::Nowhere | Sought::Forgotten => None,
        }
    }

    /// All records, and where they are.
    fn records(&self) -> impl Iterator<Item = ((u64, i64), u64)> + use<> {
        let query = Query::all().to_depth(Depth::Heads);
        let records = Scan::new(query, vec![self.files.clone()]);
        records.map(|found| ((checksum(found.stream.as_bytes()), found.epoch.0), found.place))
    }

    fn note(&mut self, place: u64, head: &Head) {
        self.records += 1;
        let entry = IndexEntry::of(place, head, self.reach);
        self.reach = entry.reach;
        if self.index.as_mut().is_some_and(|index| index.append(entry).is_err()) {
            self.index = None;
        }
        if let Some(known) = &mut self.known {
            known.add((head.stream_hash, head.epoch), place);
        }
    }
}

/// Opens a day's data file, makes it if it is not there, and locks it.
fn lock(files: &DayFiles) -> Result<File, StoreError> {
    let path = &files.data;
    for _ in 0..TRIES_MAX {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(StoreError::open("open", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => break,
            Err(TryLockError::Error(error)) => return Err(StoreError::open("lock", path)(error)),
        }
        // Deleted before it was locked: what is written into it would be lost.
        if file.metadata().map_err(StoreError::open("open", path))?.nlink() > 0 {
            return Ok(file);
        }
    }
    Err(StoreError::Busy { path: path.clone() })
}
