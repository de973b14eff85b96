//! The index of a day: read piece by piece, appended to, rewritten.

use std::io;
use std::path::Path;

use crate::disk::{Access, Disk, DiskFile};
use crate::format::{
    ENTRY_BYTES, HEADER_BYTES, HeaderState, INDEX_MAGIC, IndexEntry, check_header, header,
};
use crate::walk::Source;

/// Entries read at once.
const PIECE_ENTRIES: u64 = 1024;

/// Reads the sound entries of an index, in their order.
#[derive(Debug)]
pub(crate) struct IndexReader {
    source: Source,
    /// Entries in the file, sound or not.
    count: u64,
    next: u64,
    piece: Vec<u8>,
    piece_start: u64,
}

impl IndexReader {
    /// Opens an index; `None` if there is none that can be read, which is as good as none.
    pub(crate) fn open(disk: &dyn Disk, path: &Path) -> Option<Self> {
        let file = disk.open(path, Access::Read).ok()?;
        let length = file.about().ok()?.bytes;
        let mut source = Source::new(file);
        let mut start = [0; HEADER_BYTES];
        let sound = source.fill(&mut start, 0).ok()?
            && check_header(&start, INDEX_MAGIC) == HeaderState::Sound;
        let count = length.saturating_sub(HEADER_BYTES as u64) / ENTRY_BYTES as u64;
        sound.then(|| Self { source, count, next: 0, piece: Vec::new(), piece_start: 0 })
    }

    /// Entries in the file, sound or not.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// Bytes read so far.
    pub(crate) const fn read_bytes(&self) -> u64 {
        self.source.read_bytes
    }

    /// The last entry, if it is sound.
    pub(crate) fn last(&mut self) -> Option<IndexEntry> {
        let place = entry_place(self.count.checked_sub(1)?);
        let mut bytes = [0; ENTRY_BYTES];
        let read = self.source.fill(&mut bytes, place).ok()?;
        read.then(|| IndexEntry::from_bytes(&bytes, place)).flatten()
    }

    /// The next sound entry.
    pub(crate) fn next_sound(&mut self) -> Option<IndexEntry> {
        while self.next < self.count {
            let number = self.next;
            self.next += 1;
            let Some(bytes) = self.entry_bytes(number) else {
                self.next = self.count;
                return None;
            };
            if let Some(entry) = IndexEntry::from_bytes(&bytes, entry_place(number)) {
                return Some(entry);
            }
        }
        None
    }

    fn entry_bytes(&mut self, number: u64) -> Option<[u8; ENTRY_BYTES]> {
        let held = (self.piece.len() / ENTRY_BYTES) as u64;
        if !(self.piece_start..self.piece_start + held).contains(&number) {
            let entries = (self.count - number).min(PIECE_ENTRIES);
            self.piece.resize(entries as usize * ENTRY_BYTES, 0);
            self.piece_start = number;
            let read = self.source.fill(&mut self.piece, entry_place(number));
            if !matches!(read, Ok(true)) {
                self.piece.clear();
                return None;
            }
        }
        let at = (number - self.piece_start) as usize * ENTRY_BYTES;
        self.piece[at..].first_chunk().copied()
    }
}

/// Appends to an index.
#[derive(Debug)]
pub(crate) struct IndexWriter {
    file: Box<dyn DiskFile>,
    count: u64,
}

impl IndexWriter {
    /// Goes on behind `count` entries.
    pub(crate) fn resume(disk: &dyn Disk, path: &Path, count: u64) -> io::Result<Self> {
        Ok(Self { file: disk.open(path, Access::Extend)?, count })
    }

    /// Rewrites an index. Until it is whole, readers walk through what it does not cover.
    pub(crate) fn create(disk: &dyn Disk, path: &Path, entries: &[IndexEntry]) -> io::Result<Self> {
        let file = disk.open(path, Access::Replace)?;
        file.write_all_at(&header(INDEX_MAGIC), 0)?;
        let mut index = Self { file, count: 0 };
        for piece in entries.chunks(PIECE_ENTRIES as usize) {
            let place = |at| entry_place(index.count + at);
            let bytes: Vec<u8> =
                (0..).zip(piece).flat_map(|(at, entry)| entry.to_bytes(place(at))).collect();
            index.file.write_all_at(&bytes, entry_place(index.count))?;
            index.count += piece.len() as u64;
        }
        Ok(index)
    }

    /// Makes all of it durable, which is only needed where it replaces one that was wrong.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    pub(crate) fn append(&mut self, entry: IndexEntry) -> io::Result<()> {
        let place = entry_place(self.count);
        self.file.write_all_at(&entry.to_bytes(place), place)?;
        self.count += 1;
        Ok(())
    }
}

/// Where an entry lies.
const fn entry_place(number: u64) -> u64 {
    HEADER_BYTES as u64 + number * ENTRY_BYTES as u64
}
