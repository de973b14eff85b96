//! A part of the spool that is deleted at once: one log, in a folder named by a number.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use twixt_model::{Epoch, Span, Timestamp};
use twixt_store::{Depth, Durability, Entry, Log, Options, Query, StoreError, Writer};

/// What the only point and the only stream of such a log are called.
const NAME: &str = "epochs";
/// Records of which it is remembered when they came.
const MOMENTS_MAX: usize = 1 << 16;

/// One log. Records are known by their index, which is their time in the log.
#[derive(Debug)]
pub(super) struct Segment {
    number: u64,
    folder: PathBuf,
    log: Log,
    writer: Writer,
    records: u64,
    bytes: u64,
    /// When records came, of the last so many.
    moments: VecDeque<SystemTime>, // at most MOMENTS_MAX
}

/// The numbers of the segments in a folder, oldest first.
pub(super) fn numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

impl Segment {
    /// An empty one.
    pub(super) fn new(spool: &Path, number: u64) -> Result<Self, StoreError> {
        let folder = spool.join(format!("{number:012}"));
        let log = Log::open(&folder, Options::default());
        let writer = log.writer(NAME)?;
        let moments = VecDeque::new();
        Ok(Self { number, folder, log, writer, records: 0, bytes: 0, moments })
    }

    /// One that an earlier run left.
    pub(super) fn recover(spool: &Path, number: u64) -> Result<Self, StoreError> {
        let mut segment = Self::new(spool, number)?;
        // By their indices: a damaged record leaves a hole.
        let found = segment.scan(Query::all().to_depth(Depth::Heads));
        segment.records = found.map(|(index, _)| index + 1).max().unwrap_or(0);
        segment.bytes = folder_bytes(&segment.folder);
        Ok(segment)
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Records, confirmed or not.
    pub(super) const fn records(&self) -> u64 {
        self.records
    }

    pub(super) fn records_from(&self, first: u64) -> u64 {
        self.records.saturating_sub(first)
    }

    /// Bytes on disk.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When a record came; of an earlier run, when the segment was last written.
    pub(super) fn appended_at(&self, index: u64) -> Option<SystemTime> {
        let from_end = usize::try_from(self.records.checked_sub(index)?).ok()?;
        match self.moments.len().checked_sub(from_end) {
            Some(place) => self.moments.get(place).copied(),
            None => fs::metadata(self.folder.join(NAME)).and_then(|folder| folder.modified()).ok(),
        }
    }

    pub(super) fn append(&mut self, epoch: Epoch, payload: &[u8]) -> Result<(), StoreError> {
        let index = Timestamp::from_nanos(self.records.cast_signed());
        let entry = Entry { stream: NAME, span: Span::at(index), epoch };
        let appended = self.writer.append(&entry, payload, Durability::Written);
        self.bytes = folder_bytes(&self.folder);
        appended?;
        self.records += 1;
        self.moments.push_back(SystemTime::now());
        if self.moments.len() > MOMENTS_MAX {
            self.moments.pop_front();
        }
        Ok(())
    }

    pub(super) fn sync(&mut self) -> Result<(), StoreError> {
        self.writer.sync()
    }

    /// The records from `first` on, at most so many; `None` in the place of one that is damaged.
    pub(super) fn records_after(
        &self,
        first: u64,
        most: usize,
    ) -> impl Iterator<Item = (u64, Option<(Epoch, Vec<u8>)>)> {
        let start = Timestamp::from_nanos(first.cast_signed());
        let query = Query::between(Span { start, end: Timestamp::MAX });
        let mut found = self.scan(query).peekable();
        (first..self.records).take(most).map(move |index| {
            while found.next_if(|(at, _)| *at < index).is_some() {}
            (index, found.next_if(|(at, _)| *at == index).map(|(_, record)| record))
        })
    }

    /// Whatever of it cannot be deleted is found again at the next start.
    pub(super) fn delete(self) {
        let Self { folder, writer, .. } = self;
        drop(writer);
        if let Err(error) = fs::remove_dir_all(&folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(folder = %folder.display(), %error, "cannot delete a part of the spool");
        }
    }

    /// Records by index.
    fn scan(&self, query: Query) -> impl Iterator<Item = (u64, (Epoch, Vec<u8>))> + use<> {
        let scan = self.log.scan(query.at_point(NAME));
        let found = scan.into_iter().flatten();
        found.map(|found| {
            (found.span.start.as_nanos().cast_unsigned(), (found.epoch, found.payload))
        })
    }
}

/// Bytes of all files in a folder and those below it.
fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => folder_bytes(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}
