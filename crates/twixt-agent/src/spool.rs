//! Epochs on disk until a collector has confirmed that they are stored there.
//!
//! The folder holds segments, each a log of `twixt-store`, and a file with the place up to which
//! everything is confirmed. Segments are deleted whole: when all of them is confirmed, or, the oldest
//! first, when there is no more room. What a crash leaves behind is read again; an epoch may then be
//! sent twice, which the collector notices.

mod points;
mod segment;

pub use points::Spools;

use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use twixt_model::Epoch;
use twixt_store::StoreError;

use segment::Segment;

/// Into so many segments the spool is divided: so much of it goes when it is full.
const SEGMENTS: u64 = 8;
/// The smallest spool.
pub const SPOOL_BYTES_MIN: u64 = 1 << 16;
/// A record's head, name and index entry take no more.
const RECORD_OVERHEAD_BYTES: u64 = 512;

/// Why there is no spool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpoolError {
    /// The folder cannot be made, listed or written. Check its path, owner and permissions.
    #[error("spool {}: {action} failed", folder.display())]
    Folder {
        /// The folder of the spool.
        folder: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Another agent has it. Give each a folder of its own.
    #[error("spool {} is used by another agent; give each a folder of its own", folder.display())]
    Busy {
        /// The folder of the spool.
        folder: PathBuf,
    },
    /// The name of a point is too long for a folder. Choose a shorter one.
    #[error("point {point:?}: the name is too long for a folder of its own")]
    Name {
        /// As configured.
        point: String,
    },
    /// The log in it refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What the spool did so far, and holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpoolCounts {
    /// Epochs that wait to be confirmed.
    pub epochs: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Epochs discarded since there was no room.
    pub discarded: u64,
    /// Epochs that could not be written.
    pub unwritten: u64,
    /// Epochs that could not be read again.
    pub damaged: u64,
    /// How long the oldest one waits, as far as known.
    pub oldest: Option<Duration>,
}

/// An epoch from the spool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spooled {
    /// Which epoch, for messages.
    pub epoch: Epoch,
    /// Its bytes.
    pub payload: Vec<u8>,
    place: Place,
}

/// Where in the spool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    segment: u64,
    index: u64,
}

/// Epochs on disk. Threads may share it.
#[derive(Debug)]
pub struct Spool {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    bytes_max: u64,
    segments: VecDeque<Segment>,
    /// All before is confirmed or given up.
    confirmed: Place,
    /// Damaged records before this are counted.
    looked_at: Place,
    counts: SpoolCounts,
    closed: bool,
    /// Others are kept out as long as it lives.
    _lock: File,
}

impl Spool {
    /// Opens a spool, and makes the folder if it is not there. It never takes more than `bytes_max`
    /// bytes (at least [`SPOOL_BYTES_MIN`]).
    ///
    /// # Errors
    /// When the folder cannot be used, or another agent has it.
    pub fn open(folder: &Path, bytes_max: u64) -> Result<Self, SpoolError> {
        let failed = |action| {
            let folder = folder.to_owned();
            move |source| SpoolError::Folder { folder, action, source }
        };
        fs::create_dir_all(folder).map_err(failed("creating it"))?;
        let lock = lock(folder)?;
        let confirmed = read_confirmed(&confirmed_path(folder));
        let mut segments = VecDeque::new();
        for number in segment::numbers(folder).map_err(failed("listing it"))? {
            segments.push_back(Segment::recover(folder, number)?);
        }
        let mut inner = Inner {
            folder: folder.to_owned(),
            bytes_max: bytes_max.max(SPOOL_BYTES_MIN),
            segments,
            confirmed,
            looked_at: Place::default(),
            counts: SpoolCounts::default(),
            closed: false,
            _lock: lock,
        };
        inner.forget_lost();
        inner.delete_confirmed();
        inner.make_room(0);
        Ok(Self { inner: Mutex::new(inner), changed: Condvar::new() })
    }

    /// Takes an epoch. It survives the death of this process; [`sync`](Self::sync) makes it survive
    /// more. Where there is no room the oldest go, and are counted; so is one that cannot be written.
    pub fn append(&self, epoch: Epoch, payload: &[u8]) -> Result<(), SpoolError> {
        let appended = self.lock().append(epoch, payload);
        self.changed.notify_all();
        appended
    }

    /// Makes all that was appended survive the death of the machine.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn sync(&self) -> Result<(), SpoolError> {
        match self.lock().segments.back_mut() {
            Some(newest) => newest.sync().map_err(Into::into),
            None => Ok(()),
        }
    }

    /// The oldest epochs that are not confirmed: at most so many, and of so many bytes together
    /// unless the first has more.
    pub fn batch(&self, epochs_max: usize, bytes_max: usize) -> Vec<Spooled> {
        self.lock().batch(epochs_max, bytes_max)
    }

    /// This epoch and all before it need not be sent again.
    pub fn confirm(&self, last: &Spooled) {
        self.lock().confirm(last.place);
    }

    /// Waits until there is something to send or so much time is over. `false` once the spool is
    /// closed.
    pub fn wait(&self, longest: Duration) -> bool {
        let deadline = Instant::now() + longest;
        let mut inner = self.lock();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if inner.closed || inner.counts().epochs > 0 || left.is_zero() {
                return !inner.closed;
            }
            let waited = self.changed.wait_timeout(inner, left);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits so long, or until the spool is closed. `false` once it is.
    pub fn pause(&self, length: Duration) -> bool {
        let deadline = Instant::now() + length;
        let mut inner = self.lock();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if inner.closed || left.is_zero() {
                return !inner.closed;
            }
            let waited = self.changed.wait_timeout(inner, left);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Nothing more will be appended; whoever waits need not wait longer.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// What it did so far, and holds.
    pub fn counts(&self) -> SpoolCounts {
        self.lock().counts()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn append(&mut self, epoch: Epoch, payload: &[u8]) -> Result<(), SpoolError> {
        let needed_bytes = payload.len() as u64 + RECORD_OVERHEAD_BYTES;
        if needed_bytes > self.bytes_max {
            self.counts.discarded += 1;
            return Ok(());
        }
        self.make_room(needed_bytes);
        let mut appended = self.try_append(epoch, payload);
        // A full disk: what others took of it may be had back from the oldest epochs.
        if appended.is_err() && self.segments.len() > 1 {
            self.discard_oldest();
            appended = self.try_append(epoch, payload);
        }
        self.counts.unwritten += u64::from(appended.is_err());
        appended.map_err(Into::into)
    }

    fn try_append(&mut self, epoch: Epoch, payload: &[u8]) -> Result<(), StoreError> {
        if self.segments.back().is_none_or(|newest| self.is_full(newest)) {
            let newest = self.segments.back().map_or(0, Segment::number);
            let next = newest.max(self.confirmed.segment) + 1;
            self.segments.push_back(Segment::new(&self.folder, next)?);
        }
        let newest = self.segments.back_mut().expect("one was added if there was none");
        newest.append(epoch, payload)
    }

    /// A machine that died may have lost records that were confirmed. Those that get their places now
    /// are not.
    fn forget_lost(&mut self) {
        let Place { segment, index } = self.confirmed;
        if let Some(found) = self.segments.iter().find(|found| found.number() == segment) {
            self.confirmed.index = index.min(found.records());
        }
    }

    /// Discards the oldest until so many bytes more have room.
    fn make_room(&mut self, needed_bytes: u64) {
        while self.bytes() + needed_bytes > self.bytes_max && !self.segments.is_empty() {
            self.discard_oldest();
        }
    }

    fn discard_oldest(&mut self) {
        let Some(oldest) = self.segments.pop_front() else { return };
        self.counts.discarded += oldest.records_from(self.first_unconfirmed(&oldest));
        let next = Place { segment: oldest.number() + 1, index: 0 };
        oldest.delete();
        self.move_confirmed(next);
    }

    fn confirm(&mut self, place: Place) {
        self.move_confirmed(Place { index: place.index + 1, ..place });
        self.delete_confirmed();
    }

    fn move_confirmed(&mut self, place: Place) {
        if place > self.confirmed {
            self.confirmed = place;
            // If that fails, epochs are sent again after a restart, and known there.
            let _ = write_confirmed(&confirmed_path(&self.folder), place);
        }
    }

    /// Deletes segments of which everything is confirmed, but not one that has room for more.
    fn delete_confirmed(&mut self) {
        while let Some(oldest) = self.segments.front()
            && self.first_unconfirmed(oldest) >= oldest.records()
            && (self.segments.len() > 1 || self.is_full(oldest))
        {
            let Some(oldest) = self.segments.pop_front() else { return };
            let next = Place { segment: oldest.number() + 1, index: 0 };
            oldest.delete();
            self.move_confirmed(next);
        }
    }

    const fn is_full(&self, segment: &Segment) -> bool {
        segment.bytes() >= self.bytes_max / SEGMENTS
    }

    /// Index of the first record in a segment that is not confirmed.
    fn first_unconfirmed(&self, segment: &Segment) -> u64 {
        match segment.number().cmp(&self.confirmed.segment) {
            std::cmp::Ordering::Less => segment.records(),
            std::cmp::Ordering::Equal => self.confirmed.index,
            std::cmp::Ordering::Greater => 0,
        }
    }

    fn batch(&mut self, epochs_max: usize, bytes_max: usize) -> Vec<Spooled> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        let mut damaged_through = None;
        for segment in &self.segments {
            let first = self.first_unconfirmed(segment);
            for (index, found) in segment.records_after(first, epochs_max - batch.len()) {
                let place = Place { segment: segment.number(), index };
                let Some((epoch, payload)) = found else {
                    self.counts.damaged += u64::from(place >= self.looked_at);
                    self.looked_at = self.looked_at.max(Place { index: index + 1, ..place });
                    damaged_through = Some(place).filter(|_| batch.is_empty());
                    continue;
                };
                bytes += payload.len();
                if bytes > bytes_max && !batch.is_empty() {
                    return batch;
                }
                batch.push(Spooled { epoch, payload, place });
            }
            if batch.len() >= epochs_max {
                break;
            }
        }
        // Damaged ones before the batch are not looked at again.
        if let Some(place) = damaged_through {
            self.confirm(place);
        }
        batch
    }

    fn bytes(&self) -> u64 {
        self.segments.iter().map(Segment::bytes).sum()
    }

    fn counts(&self) -> SpoolCounts {
        let waiting = |segment: &Segment| segment.records_from(self.first_unconfirmed(segment));
        let oldest = self.segments.iter().find(|segment| waiting(segment) > 0);
        let age = |since: SystemTime| SystemTime::now().duration_since(since).ok();
        SpoolCounts {
            epochs: self.segments.iter().map(waiting).sum(),
            bytes: self.bytes(),
            oldest: oldest
                .and_then(|segment| age(segment.appended_at(self.first_unconfirmed(segment))?)),
            ..self.counts
        }
    }
}

fn lock(folder: &Path) -> Result<File, SpoolError> {
    let failed =
        |source| SpoolError::Folder { folder: folder.to_owned(), action: "locking it", source };
    let file = File::create(folder.join("lock")).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(SpoolError::Busy { folder: folder.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

fn confirmed_path(folder: &Path) -> PathBuf {
    folder.join("confirmed")
}

/// Nothing is confirmed if the file cannot be read: sending twice does no harm.
fn read_confirmed(path: &Path) -> Place {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(segment)), Some(Ok(index))) => Place { segment, index },
        _ => Place::default(),
    }
}

fn write_confirmed(path: &Path, place: Place) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, format!("{} {}\n", place.segment, place.index))?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests;
