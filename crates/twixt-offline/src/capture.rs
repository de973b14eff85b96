//! A capture that is being read, and how far.

use std::io::Read;
use std::path::{Path, PathBuf};

use twixt_capture::{BatchEnd, CaptureError, CaptureFile, CaptureFormat, Ending};
use twixt_model::Frame;

use crate::report::{Progress, Remark};

/// A capture that is being read.
pub struct Capture {
    file: CaptureFile,
    path: PathBuf,
    reported_bytes: u64,
}

impl Capture {
    /// Opens a capture; `-` is standard input.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let opened = match is_standard_input(path) {
            true => CaptureFile::stdin(),
            false => CaptureFile::open(path),
        };
        Ok(Self { file: opened?, path: path.to_owned(), reported_bytes: 0 })
    }

    /// A capture that comes through a pipe.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_reader(input: Box<dyn Read + Send>, path: &Path) -> Result<Self, CaptureError> {
        let file = CaptureFile::from_reader(input, &path.display().to_string())?;
        Ok(Self { file, path: path.to_owned(), reported_bytes: 0 })
    }

    /// How large it is; 0 if it has no size.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.file.size_bytes().unwrap_or(0)
    }

    /// Reads a batch of frames, and reports how far it came.
    #[inline]
    pub fn read_batch(&mut self, progress: &dyn Progress, sink: impl FnMut(Frame<'_>)) -> BatchEnd {
        let end = self.file.read_batch(sink);
        progress.advance(self.file.bytes_read() - self.reported_bytes);
        self.reported_bytes = self.file.bytes_read();
        end
    }

    /// Reads to its end.
    pub fn read_to_end(&mut self, progress: &dyn Progress, mut sink: impl FnMut(Frame<'_>)) {
        while self.read_batch(progress, &mut sink) == BatchEnd::More {}
    }

    /// The file itself.
    #[must_use]
    pub const fn file(&self) -> &CaptureFile {
        &self.file
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with how it ended, if it ended before its end.
    #[must_use]
    pub fn ended_early(&self) -> Option<Remark> {
        let ending = self.file.ending().filter(|ending| **ending != Ending::Complete)?.clone();
        let (path, frames) = (self.path.clone(), self.file.counts().frames);
        Some(Remark::EndedEarly { path, ending, frames })
    }
}

/// Frames that a capture says were dropped, which it often says at its end only. A command that
/// reads it once, epoch by epoch, must know before. 0 if it cannot be read twice.
///
/// # Errors
/// When it cannot be read, or is none.
pub fn dropped_in(path: &Path) -> Result<u64, CaptureError> {
    if !path.is_file() {
        return Ok(0);
    }
    let mut file = CaptureFile::open(path)?;
    if file.format() == CaptureFormat::Pcapng {
        file.read_to_end(|_| {});
    }
    Ok(file.counts().dropped.unwrap_or(0))
}

/// Whether the path means standard input, or output.
#[must_use]
pub fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}
