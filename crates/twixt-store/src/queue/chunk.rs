//! One file of a queue. Only the process that created it appends to it.

use std::io;
use std::path::{Path, PathBuf};

use twixt_model::Timestamp;

use super::format::{CHUNK_MAGIC, HEAD_BYTES, RecordHead, chunk_name};
use crate::compress::{self, LEVEL_DEFAULT};
use crate::disk::{Access, DiskFile, SharedDisk, remove_if_there};
use crate::error::StoreError;
use crate::format::{HEADER_BYTES, HeaderState, check_header, checksum, header};
use crate::quarantine::Quarantine;
use crate::walk::{Source, Step, Walk};

#[derive(Debug)]
pub(super) struct Chunk {
    path: PathBuf,
    /// Number of the first record.
    first: u64,
    /// Behind the last record.
    next: u64,
    /// Where the next record goes.
    end: u64,
    /// Open as long as it is appended to or must be synced.
    file: Option<Box<dyn DiskFile>>,
    is_synced: bool,
    /// Nothing more is appended to it.
    is_closed: bool,
    /// When the first record was appended.
    first_at: Option<Timestamp>,
}

impl Chunk {
    /// Creates an empty one. What an earlier attempt left is overwritten.
    pub(super) fn create(disk: &SharedDisk, folder: &Path, first: u64) -> Result<Self, StoreError> {
        let path = folder.join(chunk_name(first));
        let file = disk.open(&path, Access::Replace).map_err(StoreError::open("create", &path))?;
        let written = file.write_all_at(&header(CHUNK_MAGIC), 0);
        if let Err(error) = written {
            let _ = disk.remove(&path);
            return Err(StoreError::write(&path)(error));
        }
        Ok(Self {
            path,
            first,
            next: first,
            end: HEADER_BYTES as u64,
            file: Some(file),
            is_synced: false,
            is_closed: false,
            first_at: None,
        })
    }

    /// One that an earlier process left.
    pub(super) fn recover(
        disk: &SharedDisk,
        quarantine: &Quarantine,
        folder: &Path,
        first: u64,
    ) -> Result<Self, StoreError> {
        let path = folder.join(chunk_name(first));
        let reading = || StoreError::open("read", &path);
        if quarantine.holds(disk.as_ref(), &path).map_err(reading())? {
            quarantine.release(disk, &path).map_err(StoreError::write(&path))?;
        }
        let mut data = Source::new(disk.open(&path, Access::Read).map_err(reading())?);
        let end = data.file.about().map_err(reading())?.bytes;
        let found = Recovered::of(&mut data, first, end).map_err(reading())?;
        match header_state(&mut data).map_err(reading())? {
            HeaderState::Newer(version) => {
                return Err(StoreError::NewerVersion { path, found: version });
            }
            HeaderState::Foreign if found.first_at.is_none() => {
                return Err(StoreError::Foreign { path });
            }
            _ => {}
        }
        let Recovered { next, first_at } = found;
        Ok(Self { path, first, next, end, file: None, is_synced: false, is_closed: true, first_at })
    }

    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.end
    }

    pub(super) const fn first_at(&self) -> Option<Timestamp> {
        self.first_at
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(super) const fn close(&mut self) {
        self.is_closed = true;
    }

    /// Whether something of it would be lost if the machine died.
    pub(super) const fn is_synced(&self) -> bool {
        self.is_synced
    }

    /// Appends a record. After a failure nothing more is appended to this chunk.
    pub(super) fn append(
        &mut self,
        label: i64,
        at: Timestamp,
        payload: &[u8],
    ) -> Result<(), StoreError> {
        let file = self.file.as_deref().expect("a chunk that is not closed is open");
        let (number, appended_ns) = (self.next, at.as_nanos());
        let written = frame_of(number, label, appended_ns, payload, self.end)
            .and_then(|frame| file.write_all_at(&frame, self.end).map(|()| frame.len()));
        match written {
            Ok(bytes) => {
                self.end += bytes as u64;
                self.next += 1;
                self.is_synced = false;
                self.first_at = self.first_at.or(Some(at));
                Ok(())
            }
            Err(error) => {
                // What is left of it is no record, and if it stays it counts as a damaged one.
                let _ = file.set_bytes(self.end);
                self.is_closed = true;
                Err(StoreError::write(&self.path)(error))
            }
        }
    }

    /// Makes all of it durable, but for its name. A chunk of an earlier process is synced too.
    pub(super) fn sync(
        &mut self,
        disk: &SharedDisk,
        quarantine: &Quarantine,
    ) -> Result<(), StoreError> {
        if self.is_synced {
            return Ok(());
        }
        let opened = match self.file.take() {
            _ if quarantine.knows(&self.path) => quarantine.release(disk, &self.path),
            Some(file) => Ok(file),
            None => disk.open(&self.path, Access::Read),
        };
        let synced = opened.and_then(|file| match file.sync() {
            Ok(()) => Ok(file),
            Err(cause) => quarantine.write_anew(disk, &self.path, &cause),
        });
        match synced {
            Ok(file) => {
                self.is_synced = true;
                self.file = Some(file).filter(|_| !self.is_closed);
                Ok(())
            }
            Err(error) => {
                self.is_closed = true;
                Err(StoreError::write(&self.path)(error))
            }
        }
    }

    /// Opens it for reading.
    pub(super) fn read(&self, disk: &SharedDisk) -> Result<Source, StoreError> {
        let file = disk.open(&self.path, Access::Read);
        file.map(Source::new).map_err(StoreError::open("read", &self.path))
    }

    pub(super) fn reading(&self) -> impl FnOnce(io::Error) -> StoreError {
        StoreError::open("read", &self.path)
    }

    pub(super) fn delete(self, disk: &SharedDisk) -> Result<(), StoreError> {
        remove_if_there(disk.as_ref(), &self.path).map_err(StoreError::open("delete", &self.path))
    }
}

/// What can be known of a chunk without its owner.
struct Recovered {
    next: u64,
    first_at: Option<Timestamp>,
}

impl Recovered {
    fn of(data: &mut Source, first: u64, end: u64) -> io::Result<Self> {
        let mut found = Self { next: first, first_at: None };
        let mut walk = Walk::new(HEADER_BYTES as u64, end);
        loop {
            match walk.step::<RecordHead>(data)? {
                Step::Frame { head, .. } => {
                    found.next = found.next.max(head.number + 1);
                    found.first_at =
                        found.first_at.or(Some(Timestamp::from_nanos(head.appended_ns)));
                }
                // The last record can never be read. Its number is not used again, so that
                // it is missed. If there were several, their number is unknown.
                Step::Damaged { place, bytes, .. } if place + bytes == end => found.next += 1,
                Step::Damaged { .. } => {}
                Step::End => return Ok(found),
            }
        }
    }
}

fn header_state(data: &mut Source) -> io::Result<HeaderState> {
    let mut start = [0; HEADER_BYTES];
    Ok(match data.fill(&mut start, 0)? {
        true => check_header(&start, CHUNK_MAGIC),
        false => HeaderState::Unwritten,
    })
}

/// A record as it is stored at a place.
fn frame_of(
    number: u64,
    label: i64,
    appended_ns: i64,
    payload: &[u8],
    place: u64,
) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; HEAD_BYTES];
    let packing = compress::pack(payload, LEVEL_DEFAULT, &mut frame)?;
    let stored = &frame[HEAD_BYTES..];
    let head = RecordHead {
        stored_bytes: stored.len() as u32, // packed only if that is shorter
        raw_bytes: payload.len() as u32,
        packing,
        number,
        label,
        appended_ns,
        payload_checksum: checksum(stored),
    };
    frame[..HEAD_BYTES].copy_from_slice(&head.to_bytes(place));
    Ok(frame)
}

/// The payload of a record; `None` if it is damaged. The file is long enough: so much is allocated.
pub(super) fn payload_of(
    data: &mut Source,
    place: u64,
    head: &RecordHead,
) -> io::Result<Option<Vec<u8>>> {
    let mut stored = vec![0; head.stored_bytes as usize];
    if !data.fill(&mut stored, place + HEAD_BYTES as u64)?
        || checksum(&stored) != head.payload_checksum
    {
        return Ok(None);
    }
    Ok(compress::unpack(stored, head.packing, head.raw_bytes))
}
