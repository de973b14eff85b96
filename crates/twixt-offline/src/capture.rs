//! A capture that is being read, and how far. It may lie in several files, one after the other.

use std::collections::VecDeque;
use std::fs::Metadata;
use std::io::Read;
use std::path::{Path, PathBuf};

use twixt_capture::{BatchEnd, CaptureError, CaptureFile, CaptureFormat, Ending, SourceCounts};
use twixt_model::Frame;

use crate::file_pattern::{in_order_of_time, matching};
use crate::report::{Progress, Remark};

/// A capture that is being read.
pub struct Capture {
    file: CaptureFile,
    path: PathBuf,
    /// The file of it that is being read.
    file_path: PathBuf,
    reported_bytes: u64,
    /// All files, in the order of time.
    files: Vec<PathBuf>,
    /// Those that follow.
    following: VecDeque<PathBuf>,
    /// What the files before this one counted.
    before: SourceCounts,
    size_bytes: u64,
    /// What was wrong with a file before this one.
    problem: Option<Stopped>,
}

/// A file that ended before its end.
#[derive(Clone)]
struct Stopped {
    path: PathBuf,
    ending: Ending,
    frames: u64,
}

impl Capture {
    /// Opens a capture; `-` is standard input. A pattern such as `ring-*.pcap`, or several paths,
    /// are one capture in several files, which are read in the order of their first packets.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        if is_standard_input(path) {
            return Ok(Self::of(CaptureFile::stdin()?, path));
        }
        match matching(path) {
            Some(files) => Self::open_all(&files, path),
            None => Ok(Self::of(CaptureFile::open(path)?, path)),
        }
    }

    /// Opens several files as one capture, which is called `name`.
    ///
    /// # Errors
    /// When one of them cannot be read, or is no capture.
    pub fn open_all(files: &[PathBuf], name: &Path) -> Result<Self, CaptureError> {
        if let [only] = files {
            return Self::open(only);
        }
        let files = in_order_of_time(files)?;
        let mut following = VecDeque::from(files.clone());
        let first = following.pop_front().unwrap_or_else(|| name.to_owned());
        let mut capture =
            Self { path: name.to_owned(), ..Self::of(CaptureFile::open(&first)?, &first) };
        for path in &following {
            capture.size_bytes += path.metadata().map_or(0, |metadata| metadata.len());
        }
        Ok(Self { files, following, ..capture })
    }

    fn of(file: CaptureFile, path: &Path) -> Self {
        Self {
            size_bytes: file.size_bytes().unwrap_or(0),
            file,
            path: path.to_owned(),
            file_path: path.to_owned(),
            reported_bytes: 0,
            files: vec![path.to_owned()],
            following: VecDeque::new(),
            before: SourceCounts::default(),
            problem: None,
        }
    }

    /// A capture that comes through a pipe.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_reader(input: Box<dyn Read + Send>, path: &Path) -> Result<Self, CaptureError> {
        Ok(Self::of(CaptureFile::from_reader(input, &path.display().to_string())?, path))
    }

    /// How large it is; 0 if it has no size.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// What was handed over, and what was not, up to now, by all files together.
    #[must_use]
    pub fn counts(&self) -> SourceCounts {
        self.before.added(self.file.counts())
    }

    /// Reads a batch of frames, and reports how far it came.
    #[inline]
    pub fn read_batch(&mut self, progress: &dyn Progress, sink: impl FnMut(Frame<'_>)) -> BatchEnd {
        let end = self.file.read_batch(sink);
        progress.advance(self.file.bytes_read() - self.reported_bytes);
        self.reported_bytes = self.file.bytes_read();
        match end {
            BatchEnd::End if !self.following.is_empty() => self.go_on(),
            end => end,
        }
    }

    /// Goes on with the next file; one that cannot be read any more ends the capture.
    #[cold]
    fn go_on(&mut self) -> BatchEnd {
        self.problem = self.problem.take().or_else(|| self.stopped());
        let Some(next) = self.following.pop_front() else { return BatchEnd::End };
        self.before = self.counts();
        match CaptureFile::open(&next) {
            Ok(file) => {
                (self.file, self.file_path, self.reported_bytes) = (file, next, 0);
                BatchEnd::More
            }
            Err(error) => {
                let ending = Ending::Unreadable { offset: 0, detail: error.to_string() };
                self.problem = Some(Stopped { path: next, ending, frames: 0 });
                self.following.clear();
                BatchEnd::End
            }
        }
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

    /// The files that it lies in, in the order of time.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Its path; of several files, their pattern.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with how it ended, if it ended before its end.
    #[must_use]
    pub fn ended_early(&self) -> Option<Remark> {
        let Stopped { path, ending, frames } = self.problem.clone().or_else(|| self.stopped())?;
        Some(Remark::EndedEarly { path, ending, frames })
    }

    fn stopped(&self) -> Option<Stopped> {
        let ending = self.file.ending().filter(|ending| **ending != Ending::Complete)?.clone();
        let (path, frames) = (self.file_path.clone(), self.file.counts().frames);
        Some(Stopped { path, ending, frames })
    }
}

/// Frames that a capture says were dropped, which it often says at its end only. A command that
/// reads it once, epoch by epoch, must know before. 0 if it cannot be read twice.
///
/// # Errors
/// When it cannot be read, or is none.
pub fn dropped_in(path: &Path) -> Result<u64, CaptureError> {
    if let Some(files) = matching(path) {
        return files.iter().map(|path| dropped_in(path)).sum();
    }
    if !path.is_file() {
        return Ok(0);
    }
    let mut file = CaptureFile::open(path)?;
    if file.format() == CaptureFormat::Pcapng {
        file.read_to_end(|_| {});
    }
    Ok(file.counts().dropped.unwrap_or(0))
}

/// Whether the path can be read only once: standard input, or a pipe such as the shell makes of
/// `<(zcat capture.gz)`.
#[must_use]
pub fn is_read_once(path: &Path) -> bool {
    let is_pipe = |file: Metadata| !file.is_file() && !file.is_dir();
    is_standard_input(path) || path.metadata().is_ok_and(is_pipe)
}

/// Whether the path means standard input, or output.
#[must_use]
pub fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}
