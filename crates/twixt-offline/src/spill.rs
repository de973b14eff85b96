//! Temporary files, for packets that exceed the memory that is allowed for them.
//!
//! The files have no names: they are gone when the program ends, however it ends.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};

use twixt_synopsis::{SpillFile, SpillPlace};

use crate::error::OfflineError;
use crate::plan::Plan;
use crate::report::{Pass, Progress, Remark, Reporter};

/// Memory for packets of a point, or for what is found of them, before they are written to files: two million
/// packets. It takes some four times as much altogether.
pub(crate) const MEMORY_BYTES: usize = 64 << 20;

/// The system's directory for temporary files.
#[derive(Clone, Debug)]
pub(crate) struct TemporaryFiles {
    memory_bytes: usize,
    failure: Arc<Mutex<Option<io::Error>>>,
}

#[derive(Debug)]
struct TemporaryFile {
    /// With its length; `None` if it could not be made.
    file: Mutex<Option<(File, u64)>>,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl TemporaryFiles {
    pub(crate) fn beyond(memory_bytes: usize) -> Self {
        Self { memory_bytes, failure: Arc::default() }
    }

    /// Fails if anything failed that was written or read.
    pub(crate) fn check(&self) -> Result<(), OfflineError> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        let directory = std::env::temp_dir();
        failure.map_or(Ok(()), |source| Err(OfflineError::TemporaryFile { directory, source }))
    }

    fn has_failed(&self) -> bool {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl Plan {
    /// The same, with these files for what exceeds memory.
    pub(crate) fn with_files(mut self, files: &TemporaryFiles) -> Self {
        let place: Arc<dyn SpillPlace> = Arc::new(files.clone());
        self.algorithms.iter_mut().for_each(|chosen| chosen.prototype.spill_to(&place));
        self
    }
}

impl SpillPlace for TemporaryFiles {
    fn file(&self) -> Arc<dyn SpillFile> {
        let failure = self.failure.clone();
        let file = noted(&failure, tempfile::tempfile()).map(|file| (file, 0));
        Arc::new(TemporaryFile { file: Mutex::new(file), failure })
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }
}

impl SpillFile for TemporaryFile {
    fn append(&self, bytes: &[u8]) -> Option<u64> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, length) = file.as_mut()?;
        let start = *length;
        let written = file.seek(SeekFrom::Start(start)).and_then(|_| file.write_all(bytes));
        noted(&self.failure, written)?;
        *length += bytes.len() as u64;
        Some(start)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> bool {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((file, _)) = file.as_mut() else { return false };
        let read = file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(bytes));
        noted(&self.failure, read).is_some()
    }
}

/// Keeps the first failure of all.
fn noted<T>(failure: &Mutex<Option<io::Error>>, result: io::Result<T>) -> Option<T> {
    let note = |error| {
        failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    };
    result.map_err(note).ok()
}

/// Ends what is read once a file failed: nothing can be concluded then.
pub(crate) struct UntilFailure<'a> {
    pub(crate) reporter: &'a dyn Reporter,
    pub(crate) temporary: &'a TemporaryFiles,
}

impl Reporter for UntilFailure<'_> {
    fn remark(&self, remark: Remark) {
        if !self.temporary.has_failed() {
            self.reporter.remark(remark);
        }
    }

    fn progress(&self, pass: Pass, total_bytes: u64) -> Box<dyn Progress> {
        self.reporter.progress(pass, total_bytes)
    }

    fn is_enough(&self) -> bool {
        self.reporter.is_enough() || self.temporary.has_failed()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn a_full_disk_is_an_error_that_ends_the_read() {
        let files = TemporaryFiles::beyond(0);
        let full = OpenOptions::new().read(true).write(true).open("/dev/full").unwrap();
        let (file, failure) = (Mutex::new(Some((full, 0))), files.failure.clone());
        let file = TemporaryFile { file, failure };
        assert_eq!((files.has_failed(), file.append(&[1; 4096])), (false, None));
        assert!(files.has_failed());
        let error = files.check().unwrap_err();
        let OfflineError::TemporaryFile { source, .. } = error else { panic!("{error}") };
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn what_was_written_is_read_and_no_more() {
        let files = TemporaryFiles::beyond(0);
        let file = files.file();
        assert_eq!((file.append(b"one"), file.append(b"two")), (Some(0), Some(3)));
        let mut bytes = [0; 4];
        assert!(file.read_at(1, &mut bytes) && &bytes == b"netw");
        files.check().unwrap();
        assert!(!file.read_at(3, &mut bytes), "it ends before");
        assert!(files.check().is_err());
    }
}
