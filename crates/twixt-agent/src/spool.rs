//! Epochs on disk until a collector has confirmed that they are stored there.
//!
//! A spool is a durable queue of `twixt-store` that threads share. What a crash leaves behind is read
//! again; an epoch may then be sent twice, which the collector notices.

mod former;
mod newest_run;
mod points;

pub(crate) use newest_run::newest_run;
pub use points::Spools;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use twixt_model::{Epoch, Timestamp};
use twixt_store::{Peeked, Queue, SharedDisk, StoreError, real_disk};

use newest_run::NewestRun;

/// The smallest spool.
pub const SPOOL_BYTES_MIN: u64 = 1 << 16;

/// What time it is, for the age of epochs.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

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
        /// The system error.
        source: io::Error,
    },
    /// Another agent has it. Give each a folder of its own.
    #[error("spool {} is used by another agent; give each its own directory", folder.display())]
    Busy {
        /// The folder of the spool.
        folder: PathBuf,
    },
    /// The name of a point is too long for a folder. Choose a shorter one.
    #[error("point {point:?}: the name is too long for a directory name")]
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
    /// Epochs that the disk refused.
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
    /// Its number in the spool.
    number: u64,
}

/// Epochs on disk. Threads may share it.
pub struct Spool {
    inner: Mutex<Inner>,
    changed: Condvar,
    now: Now,
}

#[derive(Debug)]
struct Inner {
    queue: Queue,
    newest_run: NewestRun,
    unwritten: u64,
    is_closed: bool,
}

impl Spool {
    /// Opens a spool, and makes the folder if it is not there. It never takes more than `bytes_max`
    /// bytes (at least [`SPOOL_BYTES_MIN`]).
    ///
    /// # Errors
    /// When the folder cannot be used, another agent has it, or a newer release wrote it.
    pub fn open(folder: &Path, bytes_max: u64) -> Result<Self, SpoolError> {
        Self::open_on(&real_disk(), system_time(), folder, bytes_max)
    }

    /// The same on a given disk, with a given clock.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on(
        disk: &SharedDisk,
        now: Now,
        folder: &Path,
        bytes_max: u64,
    ) -> Result<Self, SpoolError> {
        let opened = Queue::open(Arc::clone(disk), folder, bytes_max.max(SPOOL_BYTES_MIN));
        let mut queue = opened.map_err(|error| match error {
            StoreError::Busy { .. } => SpoolError::Busy { folder: folder.to_owned() },
            other => other.into(),
        })?;
        former::take_over(disk, folder, &mut queue, now())?;
        let newest_run = NewestRun::open(disk, folder).map_err(|source| SpoolError::Folder {
            folder: folder.to_owned(),
            action: "reading the number of the newest run",
            source,
        })?;
        let inner = Inner { queue, newest_run, unwritten: 0, is_closed: false };
        Ok(Self { inner: Mutex::new(inner), changed: Condvar::new(), now })
    }

    /// Epochs of a run come next. Runs of later starts have larger numbers.
    pub fn note_run(&self, run: u64) {
        if let Err(error) = self.lock().newest_run.note(run) {
            tracing::warn!(%error, "a restart after the clock was set back may reuse the number of this run");
        }
    }

    /// Takes an epoch. It survives the death of this process; [`sync`](Self::sync) makes it survive
    /// more. Where there is no room the oldest go, and are counted; so is one that cannot be written.
    ///
    /// # Errors
    /// When the disk refuses it, or it is larger than the spool.
    pub fn append(&self, epoch: Epoch, payload: &[u8]) -> Result<(), SpoolError> {
        let mut inner = self.lock();
        let appended = inner.queue.append(epoch.0, (self.now)(), payload);
        let is_refused = matches!(&appended, Err(error) if !is_too_large(error));
        inner.unwritten += u64::from(is_refused);
        drop(inner);
        self.changed.notify_all();
        appended.map(drop).map_err(Into::into)
    }

    /// Makes all that was appended survive the death of the machine.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn sync(&self) -> Result<(), SpoolError> {
        self.lock().queue.sync().map_err(Into::into)
    }

    /// The oldest epochs that are not confirmed: at most so many, and of so many bytes together
    /// unless the first has more. Damaged ones are left out, logged and counted.
    ///
    /// # Errors
    /// When the system cannot read. All can be read later then.
    pub fn batch(&self, epochs_max: usize, bytes_max: usize) -> Result<Vec<Spooled>, SpoolError> {
        let mut inner = self.lock();
        let Peeked { records, damaged } = inner.queue.peek(epochs_max, bytes_max)?;
        if let (Some(first), Some(last)) = (damaged.first(), damaged.last()) {
            let epochs: u64 = damaged.iter().map(|range| range.end - range.start).sum();
            let (first, last) = (first.start, last.end - 1);
            let spool = inner.queue.folder().display();
            tracing::error!(epochs, first, last, %spool, "damaged epochs are lost: check the disk");
        }
        drop(inner);
        let spooled = records.into_iter().map(|record| Spooled {
            epoch: Epoch(record.label),
            payload: record.payload,
            number: record.number,
        });
        Ok(spooled.collect())
    }

    /// This epoch and all before it need not be sent again.
    pub fn confirm(&self, last: &Spooled) {
        if let Err(error) = self.lock().queue.confirm(last.number) {
            // The collector knows what it has already.
            tracing::warn!(%error, "confirmed epochs may be sent again after a restart");
        }
    }

    /// Waits until there is something to send or so much time is over. `false` once the spool is
    /// closed.
    pub fn wait(&self, longest: Duration) -> bool {
        self.wait_for(longest, |inner| inner.queue.counts().records > 0)
    }

    /// Waits so long, or until the spool is closed. `false` once it is.
    pub fn pause(&self, length: Duration) -> bool {
        self.wait_for(length, |_| false)
    }

    fn wait_for(&self, longest: Duration, is_enough: impl Fn(&Inner) -> bool) -> bool {
        let deadline = Instant::now() + longest;
        let mut inner = self.lock();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if inner.is_closed || left.is_zero() || is_enough(&inner) {
                return !inner.is_closed;
            }
            let waited = self.changed.wait_timeout(inner, left);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Nothing more will be appended: wakes all waiting readers.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// What it did so far, and holds.
    pub fn counts(&self) -> SpoolCounts {
        let inner = self.lock();
        let counts = inner.queue.counts();
        let age = |since: Timestamp| {
            let age = (self.now)() - since;
            Duration::from_nanos(u64::try_from(age.as_nanos()).unwrap_or(0))
        };
        SpoolCounts {
            epochs: counts.records,
            bytes: counts.bytes,
            discarded: counts.discarded,
            unwritten: inner.unwritten,
            damaged: counts.damaged,
            oldest: counts.oldest.map(age),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Spool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Spool").field("inner", &self.inner).finish_non_exhaustive()
    }
}

/// Whether an epoch has no room even in an empty spool; it is counted as discarded.
const fn is_too_large(error: &StoreError) -> bool {
    matches!(error, StoreError::NoRoom { .. })
}

/// The clock of the machine.
pub(crate) fn system_time() -> Now {
    Arc::new(|| {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    })
}

#[cfg(test)]
mod tests;
