//! Forgetting: whole days are deleted, the oldest first.

use std::io;

use twixt_model::Timestamp;

use crate::day_files::DayFiles;
use crate::disk::{Access, Disk, remove_if_there};
use crate::error::StoreError;
use crate::log::Log;

/// What was deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedDays {
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
    pub fn expire(&self, before: Timestamp) -> Result<RemovedDays, StoreError> {
        let mut removed = RemovedDays::default();
        for files in self.days()? {
            if files.day.span().end < before {
                let bytes = files.bytes(self.disk());
                removed.note(delete(self.disk(), &files)?, bytes);
            }
        }
        Ok(removed)
    }

    /// Deletes days, the oldest first, until the files have `most_bytes` together or less. Days
    /// that are being written stay, even if that is too much.
    ///
    /// # Errors
    /// When files cannot be listed or deleted.
    pub fn bound(&self, most_bytes: u64) -> Result<RemovedDays, StoreError> {
        let sized = |files: DayFiles| {
            let bytes = files.bytes(self.disk());
            (files, bytes)
        };
        let mut days: Vec<(DayFiles, u64)> = self.days()?.into_iter().map(sized).collect();
        days.sort_by_key(|(files, _)| files.day);
        let mut left: u64 = days.iter().map(|(_, bytes)| bytes).sum();
        let mut removed = RemovedDays::default();
        for (files, bytes) in days {
            if left <= most_bytes {
                break;
            }
            let deleted = delete(self.disk(), &files)?;
            removed.note(deleted, bytes);
            if deleted {
                left -= bytes;
            }
        }
        Ok(RemovedDays { left_bytes: Some(left), ..removed })
    }
}

impl RemovedDays {
    fn note(&mut self, deleted: bool, bytes: u64) {
        if deleted {
            self.days += 1;
            self.bytes += bytes;
        } else {
            self.busy += 1;
        }
    }
}

/// Deletes a day, unless it is being written; whether it did. The index goes first: without it the
/// data is whole, while an index alone would tell of records that are missing.
fn delete(disk: &dyn Disk, files: &DayFiles) -> Result<bool, StoreError> {
    let lock = match disk.open(&files.data, Access::Read) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(StoreError::open("open", &files.data)(error)),
    };
    if let Some(file) = &lock
        && !file.try_lock().map_err(StoreError::open("lock", &files.data))?
    {
        return Ok(false);
    }
    for path in [&files.index, &files.data] {
        remove_if_there(disk, path).map_err(StoreError::open("delete", path))?;
    }
    Ok(true)
}
