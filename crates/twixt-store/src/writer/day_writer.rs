//! The files of one day, the last of them locked and being appended to.

use std::io;

use twixt_model::{Epoch, Timestamp};

use super::earlier::Earlier;
use super::known::{Known, Sought};
use super::recover::recover;
use crate::day::Day;
use crate::day_files::DayFiles;
use crate::disk::{Access, DiskFile, SharedDisk, parent_of};
use crate::error::StoreError;
use crate::format::{Head, IndexEntry, checksum};
use crate::index::IndexWriter;
use crate::quarantine::Quarantine;
use crate::query::{Depth, Query};
use crate::scan::{Scan, read_body};
use crate::walk::{FrameHead, Source};

/// How often a file may be deleted between opening and locking it.
const TRIES_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct DayWriter {
    disk: SharedDisk,
    quarantine: Quarantine,
    files: DayFiles,
    data: Source,
    /// Where the next frame goes.
    end: u64,
    /// What lies before is synced.
    synced_end: u64,
    /// `None` after it could not be written: who opens the file next completes it.
    index: Option<IndexWriter>,
    records: u64,
    /// Latest end of all records.
    reach: Timestamp,
    cut_bytes: u64,
    /// Places by stream and epoch, once they are asked for.
    known: Option<Known>,
    /// The files of the day that are full.
    earlier: Earlier,
    frame: Vec<u8>,
}

impl DayWriter {
    /// Opens and locks the last of a day's files, cuts off an unfinished end, and completes the
    /// index. The files come in order; there is one at least, which may not exist yet.
    pub(super) fn open(
        disk: &SharedDisk,
        quarantine: &Quarantine,
        mut files: Vec<DayFiles>,
    ) -> Result<Self, StoreError> {
        let last = files.pop().expect("a day has one file at least");
        let mut data = Source::new(lock(disk, quarantine, &last)?);
        let recovered = recover(disk.as_ref(), &last, &mut data)?;
        let folder = parent_of(&last.data);
        disk.sync_folder(folder).map_err(StoreError::open("sync", folder))?;
        Ok(Self {
            disk: disk.clone(),
            quarantine: quarantine.clone(),
            files: last,
            data,
            end: recovered.end,
            synced_end: 0,
            index: recovered.index,
            records: recovered.records,
            reach: recovered.reach,
            cut_bytes: recovered.cut_bytes,
            known: None,
            earlier: Earlier::new(files),
            frame: Vec::new(),
        })
    }

    pub(super) const fn day(&self) -> Day {
        self.files.day
    }

    pub(super) const fn cut_bytes(&self) -> u64 {
        self.cut_bytes
    }

    /// Records in the file that is being appended to.
    pub(super) const fn records(&self) -> u64 {
        self.records
    }

    /// Goes on in a further file, having made this one durable. It stays locked until the next is.
    pub(super) fn begin_part(&mut self) -> Result<(), StoreError> {
        self.sync()?;
        let next = Self::open(&self.disk, &self.quarantine, vec![self.files.next_part()])?;
        let full = std::mem::replace(self, next);
        self.earlier = full.earlier;
        self.earlier.add(full.files);
        Ok(())
    }

    /// Appends the frame that `build` lays out for its place.
    pub(super) fn append(
        &mut self,
        durability: super::Durability,
        build: impl FnOnce(u64, &mut Vec<u8>) -> io::Result<Head>,
    ) -> Result<(), StoreError> {
        let start = self.end;
        self.frame.clear();
        let head = build(start, &mut self.frame).map_err(StoreError::write(&self.files.data))?;
        let written = self.data.file.write_all_at(&self.frame, start);
        self.end = start + head.frame_bytes();
        let stored = written.map_err(StoreError::write(&self.files.data)).and_then(|()| {
            if durability == super::Durability::Synced { self.sync() } else { Ok(()) }
        });
        if stored.is_err() {
            // Should this fail too, the next writer cuts it off.
            let _ = self.data.file.set_bytes(start);
            self.end = start;
            return stored;
        }
        self.note(start, &head);
        Ok(())
    }

    /// Whether a sound record of this stream and epoch is there.
    pub(super) fn holds(&mut self, stream: &str, epoch: Epoch) -> Result<bool, StoreError> {
        let record = (checksum(stream.as_bytes()), epoch.0);
        if let Some(place) = self.place_of(record)?
            && is_of(&mut self.data, place, stream)
                .map_err(StoreError::open("read", &self.files.data))?
        {
            return Ok(true);
        }
        for (files, place) in self.earlier.places_of(&self.disk, record)? {
            let found = self
                .disk
                .open(&files.data, Access::Read)
                .and_then(|file| is_of(&mut Source::new(file), place, stream));
            match found {
                Ok(true) => return Ok(true),
                // Deleted since, or damaged.
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(StoreError::open("read", &files.data)(error)),
            }
        }
        Ok(false)
    }

    /// Makes all of the file durable. Where the system fails to, a copy of it takes its place.
    pub(super) fn sync(&mut self) -> Result<(), StoreError> {
        if self.synced_end < self.end {
            if let Err(cause) = self.data.file.sync() {
                let anew = self.quarantine.write_anew(&self.disk, &self.files.data, &cause);
                self.data.file = anew.map_err(StoreError::write(&self.files.data))?;
            }
            self.synced_end = self.end;
        }
        Ok(())
    }

    /// Where a record is, by hash of its stream and epoch.
    fn place_of(&mut self, record: (u64, i64)) -> Result<Option<u64>, StoreError> {
        let known = match self.known.take() {
            Some(known) => known,
            None => each_record(&self.disk, &self.files, |records| Known::of(records))?,
        };
        let known = match known.find(record) {
            Sought::Forgotten => {
                each_record(&self.disk, &self.files, |records| Known::all_of(records))?
            }
            _ => known,
        };
        let found = known.find(record);
        self.known = Some(known);
        Ok(match found {
            Sought::At(place) => Some(place),
            Sought::Nowhere | Sought::Forgotten => None,
        })
    }

    fn note(&mut self, place: u64, head: &Head) {
        self.records += 1;
        let entry = IndexEntry::of(place, head, self.reach);
        self.reach = entry.reach;
        if self.index.as_mut().is_some_and(|index| index.append(entry).is_err()) {
            self.index = None;
        }
        if let Some(known) = &mut self.known {
            known.add((head.stream_hash, head.epoch), place);
        }
    }
}

/// Makes something of all records of a file and their places; an error if any cannot be read.
pub(super) fn each_record<T>(
    disk: &SharedDisk,
    files: &DayFiles,
    make: impl FnOnce(&mut dyn Iterator<Item = ((u64, i64), u64)>) -> T,
) -> Result<T, StoreError> {
    let query = Query::all().to_depth(Depth::Heads);
    let mut scan = Scan::new(disk, query, vec![files.clone()]);
    let record = |found: crate::query::Found| {
        ((checksum(found.stream.as_bytes()), found.epoch.0), found.place)
    };
    let made = make(&mut scan.by_ref().map(record));
    scan.finish().map(|_| made)
}

/// Whether the record at a place is sound, and of a stream.
fn is_of(data: &mut Source, place: u64, stream: &str) -> io::Result<bool> {
    let Some(head) = data.head_at::<Head>(place)? else { return Ok(false) };
    let found = read_body(data, place, &head, Depth::Checks)?;
    Ok(found.is_some_and(|(name, _)| name == stream))
}

/// Opens a data file, creates it if it does not exist, and locks it. One that is in quarantine is
/// rewritten first.
fn lock(
    disk: &SharedDisk,
    quarantine: &Quarantine,
    files: &DayFiles,
) -> Result<Box<dyn DiskFile>, StoreError> {
    let path = &files.data;
    for _ in 0..TRIES_MAX {
        let file = disk.open(path, Access::Extend).map_err(StoreError::open("open", path))?;
        if !file.try_lock().map_err(StoreError::open("lock", path))? {
            break;
        }
        // Deleted or replaced before it was locked: what is written into it would be lost.
        if file.about().map_err(StoreError::open("open", path))?.is_linked {
            return match quarantine.holds(disk.as_ref(), path) {
                Ok(false) => Ok(file),
                Ok(true) => quarantine.release(disk, path).map_err(StoreError::write(path)),
                Err(error) => Err(StoreError::open("open", path)(error)),
            };
        }
    }
    Err(StoreError::Busy { path: path.clone() })
}
