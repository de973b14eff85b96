//! What a writer finds: the end of the last whole frame, and an index that may lack something.

use std::io;

use twixt_model::Timestamp;

use crate::day_files::DayFiles;
use crate::disk::{Disk, parent_of, remove_if_there};
use crate::error::StoreError;
use crate::format::{
    DATA_MAGIC, HEADER_BYTES, Head, HeaderState, IndexEntry, check_header, header,
};
use crate::index::{IndexReader, IndexWriter};
use crate::query::Depth;
use crate::scan::read_body;
use crate::walk::{Source, Step, Walk};

/// A data file that ends with a whole frame, and its index.
#[derive(Debug)]
pub(super) struct Recovered {
    pub(super) end: u64,
    pub(super) records: u64,
    pub(super) reach: Timestamp,
    pub(super) index: Option<IndexWriter>,
    pub(super) cut_bytes: u64,
}

/// From where on the data has to be looked at.
#[derive(Clone, Copy)]
struct Start {
    place: u64,
    reach: Timestamp,
    /// Entries of an index that can be kept.
    kept: Option<u64>,
}

/// Makes a locked file fit to be appended to.
pub(super) fn recover(
    disk: &dyn Disk,
    files: &DayFiles,
    data: &mut Source,
) -> Result<Recovered, StoreError> {
    let opening = || StoreError::open("read", &files.data);
    let found = data.file.about().map_err(opening())?.bytes;
    let state = header_state(data).map_err(opening())?;
    if let HeaderState::Newer(found) = state {
        return Err(StoreError::NewerVersion { path: files.data.clone(), found });
    }
    let start = resume(disk, files, data, found);
    let entries = entries_from(data, start, found).map_err(opening())?;
    if state != HeaderState::Sound {
        let nothing = entries.is_empty() && start.place == HEADER_BYTES as u64;
        if nothing && state == HeaderState::Foreign {
            return Err(StoreError::Foreign { path: files.data.clone() });
        }
        let written = data.file.write_all_at(&header(DATA_MAGIC), 0);
        written.map_err(StoreError::write(&files.data))?;
    }
    let end = entries.last().map_or(start.place, IndexEntry::end);
    if end < found {
        data.file.set_bytes(end).map_err(StoreError::write(&files.data))?;
    }
    let records = start.kept.unwrap_or(0) + entries.len() as u64;
    let index = complete(disk, files, start, &entries);
    Ok(Recovered {
        end,
        records,
        reach: entries.last().map_or(start.reach, |last| last.reach),
        index: index.map_err(StoreError::write(&files.index))?,
        cut_bytes: found.saturating_sub(end),
    })
}

fn header_state(data: &mut Source) -> io::Result<HeaderState> {
    let mut start = [0; HEADER_BYTES];
    Ok(match data.fill(&mut start, 0)? {
        true => check_header(&start, DATA_MAGIC),
        false => HeaderState::Unwritten,
    })
}

/// Behind the last record of the index, if that is where it should be; else at the beginning.
fn resume(disk: &dyn Disk, files: &DayFiles, data: &mut Source, data_bytes: u64) -> Start {
    let nothing = Start { place: HEADER_BYTES as u64, reach: Timestamp::MIN, kept: None };
    let Some(mut index) = IndexReader::open(disk, &files.index) else { return nothing };
    let Some(last) = index.last() else { return nothing };
    match data.head_at(last.place) {
        Ok(Some(head)) if IndexEntry::of(last.place, &head, last.reach) == last => {
            let kept = Some(index.count());
            match last.end() <= data_bytes {
                true => Start { place: last.end(), reach: last.reach, kept },
                false => nothing,
            }
        }
        _ => nothing,
    }
}

/// The frames from a place on, without a last one that is not whole.
fn entries_from(data: &mut Source, start: Start, data_bytes: u64) -> io::Result<Vec<IndexEntry>> {
    let mut walk = Walk::new(start.place, data_bytes);
    let mut entries = Vec::new();
    let mut reach = start.reach;
    let mut last = None;
    loop {
        match walk.step::<Head>(data)? {
            Step::Frame { place, head } => {
                let entry = IndexEntry::of(place, &head, reach);
                reach = entry.reach;
                entries.push(entry);
                last = Some((place, head));
            }
            Step::Damaged { .. } => {}
            Step::End => break,
        }
    }
    // A machine that stops may leave a file with its new length but not its new bytes.
    if let Some((place, head)) = last
        && read_body(data, place, &head, Depth::Checks)?.is_none()
    {
        entries.pop();
    }
    Ok(entries)
}

/// The index with what it lacked. Without one the log works as well, only slower. But one that is
/// wrong about the data must be gone, durably, before anything is appended: a crash could bring it
/// back, and it would hide records.
fn complete(
    disk: &dyn Disk,
    files: &DayFiles,
    start: Start,
    entries: &[IndexEntry],
) -> io::Result<Option<IndexWriter>> {
    if let Some(kept) = start.kept {
        let resumed = IndexWriter::resume(disk, &files.index, kept);
        let completed = resumed.and_then(|mut index| {
            entries.iter().try_for_each(|entry| index.append(*entry)).map(|()| index)
        });
        return Ok(completed.ok());
    }
    let is_new =
        matches!(disk.about(&files.index), Err(error) if error.kind() == io::ErrorKind::NotFound);
    let created = IndexWriter::create(disk, &files.index, entries);
    if is_new {
        return Ok(created.ok());
    }
    match created.and_then(|index| index.sync().map(|()| index)) {
        Ok(index) => Ok(Some(index)),
        Err(_) => {
            remove_if_there(disk, &files.index)?;
            disk.sync_folder(parent_of(&files.index)).map(|()| None)
        }
    }
}
