//! Forgetting: whole files are deleted, the oldest first.

use twixt_model::Timestamp;

use crate::error::HistoryError;
use crate::file::{FileName, Folder};
use crate::folders::Folders;

/// What is forgotten, and when. Hours that are not sealed stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryRetention {
    /// Epochs of hours that ended longer ago than this.
    pub epochs_age_ns: Option<i64>,
    /// Minutes and hours of hours that ended longer ago than this.
    pub rollups_age_ns: Option<i64>,
    /// When all files together have more bytes: the oldest epochs, and when none are left the
    /// oldest minutes and hours.
    pub bytes_max: Option<u64>,
}

/// What was deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedFiles {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that are left.
    pub left_bytes: u64,
    /// When what is left begins, if something was deleted; the end of time if nothing is left.
    pub oldest_left: Option<Timestamp>,
}

impl RemovedFiles {
    /// Both together; what is left is what the later one left.
    pub(crate) fn and_then(self, later: Self) -> Self {
        Self {
            files: self.files + later.files,
            bytes: self.bytes + later.bytes,
            left_bytes: later.left_bytes,
            oldest_left: later.oldest_left.or(self.oldest_left),
        }
    }
}

/// A file that may be deleted.
struct Candidate<'a> {
    folder: &'a Folder,
    name: FileName,
    bytes: u64,
}

pub(crate) fn expire(
    folders: &Folders,
    retention: &HistoryRetention,
    now: Timestamp,
) -> Result<RemovedFiles, HistoryError> {
    let epochs = candidates(&folders.epochs)?;
    let rollups = candidates(&folders.rollups)?;
    let open_bytes = folders.open.bytes()?;
    let mut left_bytes = open_bytes;
    left_bytes += epochs.iter().chain(&rollups).map(|file| file.bytes).sum::<u64>();
    let mut removed = RemovedFiles::default();
    let open = folders.open.parts()?.into_iter().map(|part| part.hour.span().start);
    let mut oldest_left = open.min().unwrap_or(Timestamp::MAX);
    for (files, age_ns) in [(epochs, retention.epochs_age_ns), (rollups, retention.rollups_age_ns)]
    {
        let before_ns = age_ns.map(|age_ns| now.as_nanos().saturating_sub(age_ns));
        for file in files {
            let span = file.name.hour.span();
            let is_old = before_ns.is_some_and(|before_ns| span.end.as_nanos() < before_ns);
            let is_too_much = retention.bytes_max.is_some_and(|bytes_max| left_bytes > bytes_max);
            if is_old || is_too_much {
                file.folder.delete(file.name)?;
                removed.files += 1;
                removed.bytes += file.bytes;
                left_bytes -= file.bytes;
            } else {
                oldest_left = oldest_left.min(span.start);
            }
        }
    }
    let oldest_left = (removed.files > 0).then_some(oldest_left);
    Ok(RemovedFiles { left_bytes, oldest_left, ..removed })
}

/// The files of a folder, the oldest first.
fn candidates(folder: &Folder) -> Result<Vec<Candidate<'_>>, HistoryError> {
    let sized = |name: FileName| {
        let bytes = folder.disk().about(&folder.file_path(name)).map_or(0, |about| about.bytes);
        Candidate { folder, name, bytes }
    };
    Ok(folder.files()?.into_iter().map(sized).collect())
}
