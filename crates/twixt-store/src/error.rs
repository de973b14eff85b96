//! What can go wrong when a log is opened, written or listed. Damage is not an error: see `report`.

use std::io;
use std::path::{Path, PathBuf};

use crate::format::{RECORD_BYTES_MAX, STREAM_BYTES_MAX, VERSION};

/// Why the log did not do what it was asked for. Nothing of a refused record is kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A folder or file cannot be listed, opened or created. Check path and permissions.
    #[error("cannot {action} {}", path.display())]
    Open {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The disk is full, read-only or broken. The record was not stored; what was acknowledged
    /// before is not touched.
    #[error("the record was not stored: cannot append to {}", path.display())]
    Write {
        /// The data file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another writer has the file. There can be one only: stop it, or use another point name.
    #[error("{} is being written by another process", path.display())]
    Busy {
        /// The data file.
        path: PathBuf,
    },
    /// A newer release wrote the file. Upgrade.
    #[error(
        "{}: format version {found} is newer than {VERSION}, the newest that this release reads; \
         upgrade, or move the file away",
        path.display()
    )]
    NewerVersion {
        /// The data file.
        path: PathBuf,
        /// Its version.
        found: u8,
    },
    /// A file of that name exists, but twixt did not write it. Move it away.
    #[error("{} is not a file of twixt; move it away", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The point's name makes no name of a folder. Use a shorter one.
    #[error("the name of the point is too long for a directory name: {point:?}")]
    PointName {
        /// The name.
        point: String,
    },
    /// The stream's name is too long. Use a shorter one.
    #[error("the name of a stream has {length} bytes, at most {STREAM_BYTES_MAX} are allowed")]
    StreamName {
        /// Its length.
        length: usize,
    },
    /// The payload is too long. Use shorter epochs.
    #[error("a record of {length} bytes, at most {RECORD_BYTES_MAX} are allowed")]
    TooLong {
        /// Its length.
        length: usize,
    },
    /// A queue is smaller than the record. Make it larger, or use shorter epochs.
    #[error("a record of {length} bytes does not fit into {bytes_max} bytes")]
    NoRoom {
        /// Its length.
        length: usize,
        /// Size of the queue.
        bytes_max: u64,
    },
    /// The interval of time ends before it begins: a bug in the caller.
    #[error("the record ends before it begins")]
    Span,
    /// The system could not read a part of a file, which may be sound. Check the disk, try again.
    #[error("{}: {problem}", path.display())]
    Unreadable {
        /// The data file.
        path: PathBuf,
        /// What the system says.
        problem: String,
    },
}

impl StoreError {
    /// What went wrong, with what the system says of it, as one line.
    #[must_use]
    pub fn with_cause(&self) -> String {
        let cause = std::error::Error::source(self);
        cause.map_or_else(|| self.to_string(), |cause| format!("{self}: {cause}"))
    }

    /// For `map_err`, where something is opened, listed or created.
    pub(crate) fn open(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Open { action, path: path.to_owned(), source }
    }

    /// For `map_err`, where something is written.
    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Write { path: path.to_owned(), source }
    }
}
