//! Seals an hour: from its log to Parquet.
//!
//! The same log makes the same files, so after a kill in between it is done again, and nothing
//! is lost or there twice: the log counts until it is deleted, which is done last.

use std::collections::{BTreeMap, BTreeSet};

use twixt_store::Depth;

use crate::error::{HistoryError, Unreadable};
use crate::file::{FileName, FileWriter, Folder};
use crate::folders::Folders;
use crate::open::{HourPart, OpenWanted, SHARDS, series_of};
use crate::rollup::RollUps;
use crate::row::{Row, SeriesKey};
use crate::step::Step;

/// Rows that are sorted and written at a time, as a row group: as many as come to so many bytes.
const GROUP_BYTES: usize = 16 << 20;

/// Writes the files of a part. Returns what of its log is damaged. What the system cannot read at
/// present is an error: the log would be deleted with it.
pub(crate) fn seal(folders: &Folders, part: HourPart) -> Result<Vec<Unreadable>, HistoryError> {
    let mut epochs = Sorted::new(&folders.epochs, part)?;
    let mut rollups = Sorted::new(&folders.rollups, part)?;
    // Some damage is met more than once.
    let mut problems: BTreeSet<Unreadable> = BTreeSet::new();
    for shard in 0..SHARDS {
        let all = OpenWanted { shard: Some(shard), ..OpenWanted::all(part.hour) };
        for streams in batches(folders, part, &all, &mut problems)? {
            let wanted = OpenWanted { streams: Some(&streams), ..all };
            let mut scan = folders.open.scan(part, &wanted, Depth::Payloads)?;
            let mut sums = [Step::Minute, Step::Hour].map(RollUps::new);
            while let Some(rows) = scan.next_rows() {
                sums.iter_mut().for_each(|sums| rows.iter().for_each(|row| sums.add(row)));
                rows.into_iter().try_for_each(|row| epochs.add(row))?;
            }
            sums.iter().flat_map(RollUps::rows).try_for_each(|row| rollups.add(row))?;
            problems.extend(scan.finish()?);
        }
    }
    epochs.finish()?;
    rollups.finish()?;
    Ok(problems.into_iter().collect())
}

/// The streams of a shard by series, as many at a time as come to a row group: a shard may have
/// more rows than fit into memory, and a question about a series should meet few row groups.
fn batches(
    folders: &Folders,
    part: HourPart,
    wanted: &OpenWanted<'_>,
    problems: &mut BTreeSet<Unreadable>,
) -> Result<Vec<Vec<String>>, HistoryError> {
    let mut series: BTreeMap<Option<SeriesKey>, BTreeMap<String, u64>> = BTreeMap::new();
    let mut scan = folders.open.scan(part, wanted, Depth::Heads)?;
    for found in scan.by_ref() {
        let streams = series.entry(series_of(&found.stream)).or_default();
        *streams.entry(found.stream).or_default() += found.payload_bytes;
    }
    problems.extend(scan.finish()?);
    let mut batches: Vec<(u64, Vec<String>)> = Vec::new();
    for streams in series.into_values() {
        let bytes: u64 = streams.values().sum();
        match batches.last_mut().filter(|(sum, _)| sum + bytes <= GROUP_BYTES as u64) {
            Some((sum, batch)) => {
                *sum += bytes;
                batch.extend(streams.into_keys());
            }
            None => batches.push((bytes, streams.into_keys().collect())),
        }
    }
    Ok(batches.into_iter().map(|(_, streams)| streams).collect())
}

/// A file that is being written, and rows that wait until there are enough to sort.
struct Sorted<'a> {
    folder: &'a Folder,
    part: HourPart,
    writer: FileWriter,
    waiting: Vec<Row>,
    waiting_bytes: usize,
}

impl<'a> Sorted<'a> {
    fn new(folder: &'a Folder, part: HourPart) -> Result<Self, HistoryError> {
        let writer = FileWriter::new(folder, part.hour, part.number)?;
        Ok(Self { folder, part, writer, waiting: Vec::new(), waiting_bytes: 0 })
    }

    fn add(&mut self, row: Row) -> Result<(), HistoryError> {
        self.waiting_bytes += row.memory_bytes();
        self.waiting.push(row);
        if self.waiting_bytes >= GROUP_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), HistoryError> {
        let mut rows = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        rows.sort_by(|one, other| one.file_order().cmp(&other.file_order()));
        self.writer.write(&rows)
    }

    /// Puts the file in its place, and deletes what an earlier attempt left there: durably, before the
    /// log is deleted, or a crash would bring it back beside the new one.
    fn finish(mut self) -> Result<(), HistoryError> {
        self.write()?;
        let HourPart { hour, number } = self.part;
        let written = self.writer.finish(hour, number)?;
        let is_stale =
            |name: &&FileName| name.hour == hour && name.part == number && **name != written;
        let stale: Vec<FileName> =
            self.folder.files_of(hour.day())?.into_iter().filter(|name| is_stale(&name)).collect();
        stale.iter().try_for_each(|name| self.folder.delete(*name))?;
        match stale.is_empty() {
            true => Ok(()),
            false => self.folder.sync(hour.day()),
        }
    }
}
