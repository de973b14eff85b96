//! Where state goes that grows with packets, once it is large.
//!
//! Whoever runs an algorithm may give it such a place; this crate opens no file.

use std::fmt::Debug;
use std::sync::Arc;

/// A place beside memory, such as a directory for temporary files.
pub trait SpillPlace: Debug + Send + Sync {
    /// A new file, which is gone when nothing holds it any more.
    fn file(&self) -> Arc<dyn SpillFile>;

    /// Memory that records of a kind take at most before they go there.
    fn memory_bytes(&self) -> usize;
}

/// A file that grows at its end. Whoever made the place knows of any failure, and refuses what was
/// concluded after one.
pub trait SpillFile: Debug + Send + Sync {
    /// Appends bytes, and returns where they begin; `None` after a failure.
    fn append(&self, bytes: &[u8]) -> Option<u64>;

    /// Reads all of `bytes` from a place on; `false` after a failure.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> bool;
}
