//! A durable queue of records: append, peek, confirm, by record number.
//!
//! Records are opaque bytes with a label. They are read in the order in which they were appended, as
//! often as wanted, until they are confirmed. A record that cannot be read any more is counted, with
//! its number, and passed over; an error of the system is an error. The queue is bounded in bytes:
//! where there is no room the oldest records go, and are counted. It survives the death of the
//! process at any point, and what was [synced](Queue::sync) that of the machine. The format is in
//! `queue/format.rs`.

mod chunk;
mod format;
mod peek;

pub use peek::Peeked;

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use twixt_model::Timestamp;

use crate::disk::{SharedDisk, parent_of, read_file, replace_file};
use crate::error::StoreError;
use crate::format::{HEADER_BYTES, HeaderState, RECORD_BYTES_MAX, check_header};
use crate::lock::{FolderLock, LockError};
use crate::quarantine::Quarantine;
use chunk::Chunk;
use format::{CONFIRMED_BYTES, CONFIRMED_MAGIC, Confirmed, HEAD_BYTES, first_of};
use peek::Cursor;

/// Into so many chunks a full queue is divided: so much of it goes when there is no more room.
pub const CHUNKS: u64 = 8;
const CONFIRMED_NAME: &str = "confirmed.twxc";
/// Records of which it is remembered when they were appended.
const MOMENTS_MAX: usize = 1 << 12;

/// A record of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Its number: one more than that of the record before.
    pub number: u64,
    /// What its owner called it.
    pub label: i64,
    /// Its bytes.
    pub payload: Vec<u8>,
}

/// What a queue holds, and what it lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Records that are not confirmed.
    pub records: u64,
    /// The number of the oldest of them, or of the next record if there is none.
    pub first: u64,
    /// Bytes of all chunks.
    pub bytes: u64,
    /// Records that went because there was no room.
    pub discarded: u64,
    /// Records that could not be read again.
    pub damaged: u64,
    /// When the oldest record that is not confirmed was appended.
    pub oldest: Option<Timestamp>,
}

/// A durable queue. It has one owner, and locks its folder against others.
#[derive(Debug)]
pub struct Queue {
    disk: SharedDisk,
    quarantine: Quarantine,
    folder: PathBuf,
    bytes_max: u64,
    chunks: VecDeque<Chunk>,
    /// All records before are confirmed, damaged or discarded.
    confirmed: u64,
    /// The number of the next record.
    next: u64,
    /// All records before were handed out or found damaged: no other is ever confirmed.
    looked_at: u64,
    /// Records that were found damaged and are not confirmed yet, in order.
    damaged: Vec<Range<u64>>,
    cursor: Option<Cursor>,
    /// Of the oldest records: number, and when it was appended.
    moments: VecDeque<(u64, Timestamp)>, // at most MOMENTS_MAX
    /// The names of all chunks are durable.
    is_named: bool,
    counts: QueueCounts,
    _lock: FolderLock,
}

impl Queue {
    /// Opens the queue in a folder, which is created if it does not exist. Its chunks never take more
    /// than `bytes_max` bytes.
    ///
    /// # Errors
    /// When the folder cannot be used, another process has it, or a file in it was written by a newer
    /// release or was not written by twixt. Nothing is deleted then.
    pub fn open(disk: SharedDisk, folder: &Path, bytes_max: u64) -> Result<Self, StoreError> {
        let lock = lock(&disk, folder)?;
        let known = read_confirmed(&disk, &folder.join(CONFIRMED_NAME))?;
        let listed = disk.list(folder).map_err(StoreError::open("list", folder))?;
        let mut firsts: Vec<u64> = listed.iter().filter_map(|name| first_of(name)).collect();
        firsts.sort_unstable();
        let quarantine = Quarantine::default();
        let recover = |first| Chunk::recover(&disk, &quarantine, folder, first);
        let chunks: VecDeque<Chunk> = firsts.into_iter().map(recover).collect::<Result<_, _>>()?;
        // Older ones went for lack of room, and no room was left to say so.
        let confirmed = known.confirmed.max(chunks.front().map_or(0, Chunk::first));
        let found = chunks.iter().map(Chunk::next).max().unwrap_or(0);
        let next = found.max(known.next).max(confirmed);
        let mut queue = Self {
            disk,
            quarantine,
            folder: folder.to_owned(),
            bytes_max,
            chunks,
            confirmed,
            next,
            looked_at: confirmed,
            damaged: Vec::new(),
            cursor: None,
            moments: VecDeque::new(),
            is_named: false,
            counts: QueueCounts::default(),
            _lock: lock,
        };
        if next > known.next {
            // So that damage at the end of the last chunk is noticed later. Until then it works
            // without.
            let _ = queue.write_confirmed();
        }
        queue.delete_confirmed();
        queue.make_room(0);
        Ok(queue)
    }

    /// Appends a record; its number. It survives the death of this process, and after
    /// [`sync`](Self::sync) that of the machine. Where there is no room the oldest records go.
    ///
    /// # Errors
    /// When the record has no room in any case, or the disk is full, read-only or broken. Nothing of
    /// the record is kept then.
    pub fn append(&mut self, label: i64, at: Timestamp, payload: &[u8]) -> Result<u64, StoreError> {
        let longest = self.bytes_max.saturating_sub((HEADER_BYTES + HEAD_BYTES) as u64);
        if payload.len() > RECORD_BYTES_MAX || payload.len() as u64 > longest {
            self.counts.discarded += 1;
            return Err(StoreError::NoRoom { length: payload.len(), bytes_max: self.bytes_max });
        }
        self.make_room((HEADER_BYTES + HEAD_BYTES + payload.len()) as u64);
        let mut appended = self.try_append(label, at, payload);
        // What others took of a full disk may be had back from the oldest records.
        while appended.as_ref().is_err_and(is_full) && self.chunks.len() > 1 {
            self.discard_oldest();
            appended = self.try_append(label, at, payload);
        }
        appended?;
        if self.moments.len() < MOMENTS_MAX {
            self.moments.push_back((self.next, at));
        }
        self.next += 1;
        Ok(self.next - 1)
    }

    /// Makes all that was appended survive the death of the machine.
    ///
    /// # Errors
    /// When the disk is full or broken. What was not synced before may be lost.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        for chunk in self.chunks.iter_mut().filter(|chunk| !chunk.is_synced()) {
            chunk.sync(&self.disk, &self.quarantine)?;
        }
        if !self.is_named {
            for folder in [self.folder.as_path(), parent_of(&self.folder)] {
                self.disk.sync_folder(folder).map_err(StoreError::open("sync", folder))?;
            }
            self.is_named = true;
        }
        Ok(())
    }

    /// This record and all before it are done with: they are never handed out again. A record that
    /// was not handed out yet, or found damaged, is not confirmed by this.
    ///
    /// # Errors
    /// When that cannot be written. Records may then be handed out again after a restart.
    pub fn confirm(&mut self, number: u64) -> Result<(), StoreError> {
        self.move_confirmed(number.saturating_add(1).min(self.looked_at))
    }

    /// The folder that it is in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it holds, and what it lost since it was opened.
    #[must_use]
    pub fn counts(&self) -> QueueCounts {
        let records = self.next - self.confirmed;
        let known = self.moments.front().filter(|(number, _)| *number == self.confirmed);
        let oldest = match known {
            Some((_, at)) => Some(*at),
            None => self.chunks.front().and_then(Chunk::first_at),
        };
        let oldest = oldest.filter(|_| records > 0);
        QueueCounts { records, first: self.confirmed, bytes: self.bytes(), oldest, ..self.counts }
    }

    fn try_append(&mut self, label: i64, at: Timestamp, payload: &[u8]) -> Result<(), StoreError> {
        let chunk_bytes_max = self.bytes_max / CHUNKS;
        match self.chunks.back_mut() {
            Some(newest) if newest.bytes() >= chunk_bytes_max => newest.close(),
            // A failed attempt may have left one without any record; its name is used again.
            Some(newest) if newest.is_closed() && newest.first() == self.next => {
                self.chunks.pop_back();
            }
            _ => {}
        }
        if self.chunks.back().is_none_or(Chunk::is_closed) {
            self.is_named = false;
            self.chunks.push_back(Chunk::create(&self.disk, &self.folder, self.next)?);
        }
        let newest = self.chunks.back_mut().expect("one was created if there was none");
        newest.append(label, at, payload)
    }

    /// Discards the oldest chunks until so many bytes more have room.
    fn make_room(&mut self, needed_bytes: u64) {
        while self.bytes() + needed_bytes > self.bytes_max && !self.chunks.is_empty() {
            self.discard_oldest();
        }
    }

    fn discard_oldest(&mut self) {
        let Some(oldest) = self.chunks.pop_front() else { return };
        let behind = self.chunks.front().map_or(self.next, Chunk::first);
        let lost = self.confirmed.max(oldest.first())..behind;
        let known = overlap(&self.damaged, &lost);
        self.counts.discarded += (lost.end.saturating_sub(lost.start)).saturating_sub(known);
        self.looked_at = self.looked_at.max(behind);
        // First, since the disk may be full. If the rest cannot be written, the next start knows from
        // the chunks that are left.
        self.delete(oldest);
        let _ = self.move_confirmed(behind);
    }

    /// Deletes chunks of which everything is confirmed, but not one that has room for more.
    fn delete_confirmed(&mut self) {
        while let Some(oldest) = self.chunks.front()
            && self.chunks.get(1).map_or(self.next, Chunk::first) <= self.confirmed
            && (oldest.is_closed() || oldest.bytes() >= self.bytes_max / CHUNKS)
        {
            let Some(oldest) = self.chunks.pop_front() else { return };
            self.delete(oldest);
        }
    }

    /// What cannot be deleted is found again at the next start.
    fn delete(&self, chunk: Chunk) {
        if let Err(problem) = chunk.delete(&self.disk) {
            tracing::warn!(%problem, "a chunk that is no longer needed stays");
        }
    }

    fn move_confirmed(&mut self, confirmed: u64) -> Result<(), StoreError> {
        if confirmed <= self.confirmed {
            return Ok(());
        }
        self.confirmed = confirmed;
        self.damaged.retain(|range| range.end > confirmed);
        while self.moments.front().is_some_and(|(number, _)| *number < confirmed) {
            self.moments.pop_front();
        }
        let written = self.write_confirmed();
        self.delete_confirmed();
        written
    }

    fn write_confirmed(&self) -> Result<(), StoreError> {
        let path = self.folder.join(CONFIRMED_NAME);
        let content = Confirmed { confirmed: self.confirmed, next: self.next }.to_bytes();
        replace_file(&self.disk, &path, &content).map_err(StoreError::write(&path))
    }

    fn bytes(&self) -> u64 {
        self.chunks.iter().map(Chunk::bytes).sum()
    }
}

/// How many numbers of a range are in some of the ranges.
fn overlap(ranges: &[Range<u64>], of: &Range<u64>) -> u64 {
    let common =
        |range: &Range<u64>| range.end.min(of.end).saturating_sub(range.start.max(of.start));
    ranges.iter().map(common).sum()
}

fn is_full(error: &StoreError) -> bool {
    let (StoreError::Write { source, .. } | StoreError::Open { source, .. }) = error else {
        return false;
    };
    matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn lock(disk: &SharedDisk, folder: &Path) -> Result<FolderLock, StoreError> {
    FolderLock::acquire(disk, folder).map_err(|error| match error {
        LockError::Busy { folder, .. } => StoreError::Busy { path: folder },
        LockError::Folder { folder, source } => StoreError::open("lock", &folder)(source),
    })
}

/// Nothing is confirmed if the file is missing or damaged: to hand out twice does no harm.
fn read_confirmed(disk: &SharedDisk, path: &Path) -> Result<Confirmed, StoreError> {
    let bytes = match read_file(disk.as_ref(), path, CONFIRMED_BYTES as u64) {
        Ok(bytes) => bytes,
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::InvalidData => {
                return Ok(Confirmed::default());
            }
            _ => return Err(StoreError::open("read", path)(error)),
        },
    };
    match bytes.first_chunk().map(|start| check_header(start, CONFIRMED_MAGIC)) {
        Some(HeaderState::Newer(found)) => {
            Err(StoreError::NewerVersion { path: path.to_owned(), found })
        }
        Some(HeaderState::Sound) => Ok(Confirmed::from_bytes(&bytes).unwrap_or_default()),
        _ => Ok(Confirmed::default()),
    }
}
