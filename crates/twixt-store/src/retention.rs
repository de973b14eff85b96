//! Forgetting: whole days are deleted, the oldest first.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use twixt_model::Timestamp;

use crate::day_files::DayFiles;
use crate::error::StoreError;
use crate::log::Log;

/// What was deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Days of points.
    pub days: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Days that should have gone, but are being written.
    pub busy: u64,
    /// Bytes that are left, where the whole log was looked at.
    pub left_bytes: Option<u64>,
}

impl Log {
    /// Deletes the days that were over before a moment. Records count by when they begin.
    ///
    /// # Errors
    /// When files cannot be listed or deleted.
    pub fn expire(&self, before: Timestamp) -> Result<Removed, StoreError> {
        let mut removed = Removed::default();
        for files in self.days()? {
            if files.day.span().end < before {
                let bytes = files.bytes();
                removed.note(delete(&files)?, bytes);
            }
        }
        Ok(removed)
    }

    /// Deletes days, the oldest first, until the files have `most_bytes` together or less. Days
    /// that are being written stay, even if that is too much.
    ///
    /// # Errors
    /// When files cannot be listed or deleted.
    pub fn bound(&self, most_bytes: u64) -> Result<Removed, StoreError> {
        let sized = |files: DayFiles| {
            let bytes = files.bytes();
            (files, bytes)
        };
        let mut days: Vec<(DayFiles, u64)> = self.days()?.into_iter().map(sized).collect();
        days.sort_by_key(|(files, _)| files.day);
        let mut left: u64 = days.iter().map(|(_, bytes)| bytes).sum();
        let mut removed = Removed::default();
        for (files, bytes) in days {
            if left <= most_bytes {
                break;
            }
            let deleted = delete(&files)?;
            removed.note(deleted, bytes);
            if deleted {
                left -= bytes;
            }
        }
        Ok(Removed { left_bytes: Some(left), ..removed })
    }
}

impl Removed {
    fn note(&mut self, deleted: bool, bytes: u64) {
        if deleted {
            self.days += 1;
            self.bytes += bytes;
        } else {
            self.busy += 1;
        }
    }
}

/// Deletes a day; whether nobody was writing it. The index goes first: without it the data is
/// whole, while an index alone would tell of records that are missing.
fn delete(files: &DayFiles) -> Result<bool, StoreError> {
    let lock = match File::open(&files.data) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(StoreError::open("open", &files.data)(error)),
    };
    if let Some(file) = &lock
        && let Err(problem) = file.try_lock()
    {
        return match problem {
            fs::TryLockError::WouldBlock => Ok(false),
            fs::TryLockError::Error(error) => Err(StoreError::open("lock", &files.data)(error)),
        };
    }
    for path in [&files.index, &files.data] {
        remove(path).map_err(StoreError::open("delete", path))?;
    }
    Ok(true)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
