//! What can go wrong with files of estimates.

use std::io;
use std::path::{Path, PathBuf};

use twixt_store::StoreError;

/// Why estimates cannot be stored, sealed or listed. A file that cannot be read is not an error of
/// this kind: it is a [`Unreadable`](crate::Unreadable) of an answer, which has the rest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// A folder or file cannot be listed, written or deleted. Check permissions and free space.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The log of an hour cannot be written. Check permissions and free space.
    #[error("{}", .0.with_cause())]
    Log(#[from] StoreError),
    /// An hour cannot be written as Parquet. Check free space.
    #[error("cannot write {}: {problem}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

impl HistoryError {
    /// For `map_err`.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { action, path: path.to_owned(), source }
    }
}

/// Something that an answer lacks because it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unreadable {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub text: String,
    /// The disk failed, so it may be readable later; else it is damaged, or of another format.
    pub is_disk_error: bool,
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.path.display(), self.text)
    }
}
