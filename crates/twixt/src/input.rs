//! Files that commands read: captures and epoch files, told apart by content.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use twixt_capture::{BatchEnd, CaptureFile, Ending, Frame};
use twixt_measure::{FILE_HEADER, FileTail, RecordReader, Sealed};

use crate::exit::note;
use crate::output::units;
use crate::progress::Progress;

/// A capture that is being read, with a person watching.
pub(crate) struct Capture {
    file: CaptureFile,
    shown_bytes: u64,
}

impl Capture {
    /// Opens a capture; `-` is standard input.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let opened = if is_stdin(path) { CaptureFile::stdin() } else { CaptureFile::open(path) };
        Ok(Self { file: opened?, shown_bytes: 0 })
    }

    /// A capture that comes through a pipe.
    pub(crate) fn from_reader(input: Box<dyn Read + Send>, name: &str) -> anyhow::Result<Self> {
        Ok(Self { file: CaptureFile::from_reader(input, name)?, shown_bytes: 0 })
    }

    /// How large it is; 0 if it has no size.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.file.size_bytes().unwrap_or(0)
    }

    /// Reads a batch of frames, and shows how far it came.
    #[inline]
    pub(crate) fn read_batch(
        &mut self,
        progress: &Progress,
        sink: impl FnMut(Frame<'_>),
    ) -> BatchEnd {
        let end = self.file.read_batch(sink);
        progress.advance(self.file.bytes_read() - self.shown_bytes);
        self.shown_bytes = self.file.bytes_read();
        end
    }

    /// The file itself.
    pub(crate) const fn file(&self) -> &CaptureFile {
        &self.file
    }

    /// Whether it ended before its end.
    pub(crate) fn is_partial(&self) -> bool {
        self.file.ending().is_some_and(|ending| *ending != Ending::Complete)
    }

    /// Says what is wrong with how it ended; whether there was something.
    pub(crate) fn note_ending(&self, path: &Path) -> bool {
        if let Some(ending) = self.file.ending().filter(|_| self.is_partial()) {
            let (shown, frames) = (path.display(), units::count(self.file.counts().frames));
            note(format_args!("{shown}: {ending}; the {frames} frames before that were used"));
        }
        self.is_partial()
    }
}

/// Whether the path means standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether the file is one that `record` wrote.
pub(crate) fn is_epoch_file(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && FILE_HEADER.starts_with(&magic)
}

/// Reads an epoch file, epoch by epoch. Returns whether a part of it was unusable, having said so.
pub(crate) fn read_epochs(path: &Path, mut each: impl FnMut(Sealed)) -> anyhow::Result<bool> {
    let shown = path.display();
    let mut file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
    let mut reader = RecordReader::new();
    let mut chunk = vec![0; 1 << 20];
    let mut partial = false;
    loop {
        let length = file.read(&mut chunk).with_context(|| format!("cannot read {shown}"))?;
        if length == 0 {
            break;
        }
        reader.feed(&chunk[..length]);
        loop {
            match reader.next_sealed() {
                Ok(Some(sealed)) => each(sealed),
                Ok(None) => break,
                Err(error @ twixt_measure::FileError::Record { .. }) => {
                    note(format_args!("{shown}: {error}; the record is left out"));
                    partial = true;
                }
                Err(_) => break,
            }
        }
    }
    let records = reader.records();
    match reader.finish() {
        Ok(FileTail::Clean) => {}
        Ok(FileTail::Torn { bytes }) => {
            note(format_args!(
                "{shown}: the last {bytes} bytes are an unfinished record; {records} epochs were read"
            ));
            partial = true;
        }
        Err(error) if records == 0 => return Err(error).with_context(|| format!("{shown}")),
        Err(error) => {
            note(format_args!("{shown}: {error}; {records} epochs before it were read"));
            partial = true;
        }
    }
    Ok(partial)
}
