//! The index of a day: read piece by piece, appended to, written anew.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

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
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let length = file.metadata().ok()?.len();
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
    file: File,
    count: u64,
}

impl IndexWriter {
    /// Goes on behind `count` entries.
    pub(crate) fn resume(path: &Path, count: u64) -> io::Result<Self> {
        Ok(Self { file: OpenOptions::new().write(true).open(path)?, count })
    }

    /// Writes an index anew. Until it is whole, the one before stays.
    pub(crate) fn create(
        path: &Path,
        entries: impl IntoIterator<Item = IndexEntry>,
    ) -> io::Result<Self> {
        let draft = path.with_extension("twxi-new");
        let mut out = BufWriter::new(File::create(&draft)?);
        out.write_all(&header(INDEX_MAGIC))?;
        let mut count = 0;
        for entry in entries {
            out.write_all(&entry.to_bytes(entry_place(count)))?;
            count += 1;
        }
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        fs::rename(&draft, path)?;
        Ok(Self { file, count })
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
