//! Appends records of one point.

mod day_writer;
mod earlier;
mod known;
mod recover;

use std::io;
use std::path::PathBuf;

use twixt_model::{Epoch, Span};

use crate::compress;
use crate::day::Day;
use crate::day_files::{self, DayFiles};
use crate::disk::{SharedDisk, make_folders, parent_of};
use crate::error::StoreError;
use crate::format::{HEAD_BYTES, Head, RECORD_BYTES_MAX, STREAM_BYTES_MAX, checksum};
use crate::log::Options;
use crate::quarantine::Quarantine;
use day_writer::DayWriter;

/// Records of one file: what an index and the memory of [`append_once`](PointWriter::append_once) may grow
/// to. Beyond, a point's day has further files.
pub const FILE_RECORDS_MAX: u64 = 1 << 20;

/// What is known of a record besides its bytes.
#[derive(Clone, Copy, Debug)]
pub struct EpochEntry<'a> {
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
pub struct PointWriter {
    disk: SharedDisk,
    folder: PathBuf,
    point: String,
    options: Options,
    quarantine: Quarantine,
    open: Option<DayWriter>,
    cut_bytes: u64,
}

impl PointWriter {
    pub(crate) fn new(
        disk: &SharedDisk,
        folder: PathBuf,
        point: &str,
        options: Options,
        quarantine: &Quarantine,
    ) -> Self {
        let (disk, point, quarantine) = (disk.clone(), point.to_owned(), quarantine.clone());
        Self { disk, folder, point, options, quarantine, open: None, cut_bytes: 0 }
    }

    /// Appends a record. When it returns, the record survives what `durability` says.
    ///
    /// # Errors
    /// When the record is too long, another writer has the file, or the disk is full, read-only
    /// or broken. Nothing of the record is kept then, and the next one may be tried.
    pub fn append(
        &mut self,
        entry: &EpochEntry<'_>,
        payload: &[u8],
        durability: Durability,
    ) -> Result<(), StoreError> {
        check(entry, payload)?;
        let Options { level, file_records_max } = self.options;
        let day = self.day(Day::of(entry.span.start))?;
        let ready = if day.records() < file_records_max { Ok(()) } else { day.begin_part() };
        let written = ready.and_then(|()| {
            day.append(durability, |place, frame| build(entry, payload, level, place, frame))
        });
        self.keep_if(written)
    }

    /// As [`append`](Self::append), unless a sound record of the same stream and epoch lies in
    /// the file of that day. Either way it is as durable as asked for.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn append_once(
        &mut self,
        entry: &EpochEntry<'_>,
        payload: &[u8],
        durability: Durability,
    ) -> Result<Appended, StoreError> {
        check(entry, payload)?;
        if !self.holds(entry)? {
            self.append(entry, payload, durability)?;
            return Ok(Appended::Stored);
        }
        if durability == Durability::Synced {
            self.sync()?;
        }
        Ok(Appended::AlreadyThere)
    }

    /// Whether a sound record of the same stream and epoch lies in the file of that day.
    ///
    /// # Errors
    /// When another writer has the file, or the disk is broken.
    pub fn holds(&mut self, entry: &EpochEntry<'_>) -> Result<bool, StoreError> {
        let known = self.day(Day::of(entry.span.start))?.holds(entry.stream, entry.epoch);
        self.keep_if(known)
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
                let open = DayWriter::open(&self.disk, &self.quarantine, self.files_of(day)?)?;
                self.cut_bytes += open.cut_bytes();
                open
            }
        };
        Ok(self.open.insert(open))
    }

    /// The files of a day, in order, one at least. Creates the folder of the point, durably.
    fn files_of(&self, day: Day) -> Result<Vec<DayFiles>, StoreError> {
        let (disk, folder) = (self.disk.as_ref(), &self.folder);
        make_folders(disk, folder).map_err(StoreError::open("create", folder))?;
        // A process that was killed may have created it without making it durable.
        let store = parent_of(folder);
        disk.sync_folder(store).map_err(StoreError::open("sync", store))?;
        let mut files =
            day_files::days(disk, folder, &self.point).map_err(StoreError::open("list", folder))?;
        files.retain(|files| files.day == day);
        if files.is_empty() {
            files.push(DayFiles::new(folder, &self.point, day, 0));
        }
        Ok(files)
    }

    /// After a failure the content of the file is unknown: it is read again when it is next
    /// needed.
    fn keep_if<T>(&mut self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if outcome.is_err() {
            self.open = None;
        }
        outcome
    }
}

fn check(entry: &EpochEntry<'_>, payload: &[u8]) -> Result<(), StoreError> {
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
    entry: &EpochEntry<'_>,
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
