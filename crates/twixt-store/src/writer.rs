//! Appends records of one point.

mod day_writer;
mod known;
mod recover;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use twixt_model::{Epoch, Span};

use crate::compress;
use crate::day::Day;
use crate::day_files::DayFiles;
use crate::error::StoreError;
use crate::format::{HEAD_BYTES, Head, RECORD_BYTES_MAX, STREAM_BYTES_MAX, checksum};
use crate::log::Options;
use day_writer::DayWriter;

/// Records of one day of one point at most: what an index and the memory of
/// [`append_once`](Writer::append_once) may grow to.
pub const DAY_RECORDS_MAX: u64 = 1 << 20;

/// What is known of a record besides its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The stream of the point.
    pub stream: &'a str,
    /// First and last time. The first says in which day's file it lies.
    pub span: Span,
    /// Number of the epoch.
    pub epoch: Epoch,
}

/// What a record must survive once `append` has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The death of this process.
    Written,
    /// The death of the machine.
    Synced,
}

/// What became of a record that should be stored once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It was stored.
    Stored,
    /// One with the same stream and epoch is stored on that day.
    AlreadyThere,
}

/// Appends records of one point. Holds one day's file at a time and locks it against others.
#[derive(Debug)]
pub struct Writer {
    store: PathBuf,
    folder: PathBuf,
    point: String,
    options: Options,
    open: Option<DayWriter>,
    cut_bytes: u64,
}

impl Writer {
    pub(crate) fn new(store: &Path, folder: PathBuf, point: &str, options: Options) -> Self {
        let (store, point) = (store.to_owned(), point.to_owned());
        Self { store, folder, point, options, open: None, cut_bytes: 0 }
    }

    /// Appends a record. When it returns, the record survives what `durability` says.
    ///
    /// # Errors
    /// When the record is too long, another writer has the file, or the disk is full, read-only
    /// or broken. Nothing of the record is kept then, and the next one may be tried.
    pub fn append(
        &mut self,
        entry: &Entry<'_>,
        payload: &[u8],
        durability: Durability,
    ) -> Result<(), StoreError> {
        check(entry, payload)?;
        let level = self.options.level;
        let written = self
            .day(Day::of(entry.span.start))?
            .append(durability, |place, frame| build(entry, payload, level, place, frame));
        self.keep_if(written)
    }

    /// As [`append`](Self::append), unless a sound record of the same stream and epoch lies in
    /// the file of that day. Either way it is as durable as asked for.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn append_once(
        &mut self,
        entry: &Entry<'_>,
        payload: &[u8],
        durability: Durability,
    ) -> Result<Appended, StoreError> {
        check(entry, payload)?;
        let known = self.day(Day::of(entry.span.start))?.holds(entry.stream, entry.epoch);
        if !self.keep_if(known)? {
            self.append(entry, payload, durability)?;
            return Ok(Appended::Stored);
        }
        if durability == Durability::Synced {
            self.sync()?;
        }
        Ok(Appended::AlreadyThere)
    }

    /// Makes all that was appended survive the death of the machine.
    ///
    /// # Errors
    /// When the disk is broken or full. What was not synced before may be lost.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        let Some(day) = &mut self.open else { return Ok(()) };
        let synced = day.sync();
        self.keep_if(synced)
    }

    /// Bytes of unfinished records, left by a writer that was stopped, that were cut off.
    #[must_use]
    pub const fn cut_bytes(&self) -> u64 {
        self.cut_bytes
    }

    /// The open file of a day; opens it, and closes another.
    fn day(&mut self, day: Day) -> Result<&mut DayWriter, StoreError> {
        if self.open.as_ref().is_some_and(|open| open.day() != day) {
            self.sync()?;
            self.open = None;
        }
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                make_folder(&self.store, &self.folder)?;
                let files = DayFiles::new(&self.folder, &self.point, day);
                let open = DayWriter::open(files)?;
                sync_folder(&self.folder)?;
                self.cut_bytes += open.cut_bytes();
                open
            }
        };
        Ok(self.open.insert(open))
    }

    /// After a failure nobody knows what the file holds: it is looked at anew when it is next
    /// needed. A full day is no such failure: nothing was tried.
    fn keep_if<T>(&mut self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if outcome.as_ref().is_err_and(|error| !matches!(error, StoreError::DayFull { .. })) {
            self.open = None;
        }
        outcome
    }
}

fn check(entry: &Entry<'_>, payload: &[u8]) -> Result<(), StoreError> {
    if entry.stream.len() > STREAM_BYTES_MAX {
        return Err(StoreError::StreamName { length: entry.stream.len() });
    }
    if payload.len() > RECORD_BYTES_MAX {
        return Err(StoreError::TooLong { length: payload.len() });
    }
    if entry.span.start > entry.span.end {
        return Err(StoreError::Span);
    }
    Ok(())
}

/// Lays out the frame of a record for its place in the file.
fn build(
    entry: &Entry<'_>,
    payload: &[u8],
    level: i32,
    place: u64,
    frame: &mut Vec<u8>,
) -> io::Result<Head> {
    let level = level.clamp(1, 19);
    frame.resize(HEAD_BYTES, 0);
    frame.extend_from_slice(entry.stream.as_bytes());
    let stored_at = frame.len();
    let packing = compress::pack(payload, level, frame)?;
    let stored = &frame[stored_at..];
    let head = Head {
        stored_bytes: stored.len() as u32, // packed only if that is shorter
        raw_bytes: payload.len() as u32,
        stream_bytes: entry.stream.len() as u16,
        packing,
        epoch: entry.epoch.0,
        span: entry.span,
        stream_hash: checksum(entry.stream.as_bytes()),
        payload_checksum: checksum(stored),
    };
    frame[..HEAD_BYTES].copy_from_slice(&head.to_bytes(place));
    Ok(head)
}

/// Makes the folder of a point and that of the store, durably.
fn make_folder(store: &Path, folder: &Path) -> Result<(), StoreError> {
    if folder.is_dir() {
        return Ok(());
    }
    if !store.is_dir() {
        fs::create_dir_all(store).map_err(StoreError::open("create", store))?;
        if let Some(parent) = store.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            sync_folder(parent)?;
        }
    }
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(StoreError::open("create", folder)(error))
        }
        _ => sync_folder(store),
    }
}

/// Makes the names in a folder durable.
fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(StoreError::open("sync", folder))
}
