//! Seals an hour: from its log to Parquet.
//!
//! The same log makes the same files, so after a kill in between it is done again, and nothing
//! is lost or there twice: the log counts until it is deleted, which is done last.

use crate::error::{HistoryError, Unreadable};
use crate::file::{FileName, FileWriter, Folder};
use crate::folders::Folders;
use crate::open::{HourPart, OpenWanted, SHARDS};
use crate::rollup::rolled_up;
use crate::row::Row;
use crate::step::Step;

/// Rows that are sorted and written at a time. A row group has this many at least, unless there
/// are no more. All of them are in memory meanwhile.
const GROUP_ROWS: usize = 1 << 14;

/// Writes the files of a part. Returns what of its log is damaged. What the system cannot read at
/// present is an error: the log would be deleted with it.
pub(crate) fn seal(folders: &Folders, part: HourPart) -> Result<Vec<Unreadable>, HistoryError> {
    let mut epochs = Sorted::new(&folders.epochs, part)?;
    let mut rollups = Sorted::new(&folders.rollups, part)?;
    let mut problems = Vec::new();
    for shard in 0..SHARDS {
        let wanted = OpenWanted { shard: Some(shard), ..OpenWanted::all(part.hour) };
        let scanned = folders.open.all_rows(part, &wanted)?;
        problems.extend(scanned.problems);
        // All rows of a series are in one shard.
        for step in [Step::Minute, Step::Hour] {
            rollups.add(rolled_up(&scanned.rows, step))?;
        }
        epochs.add(scanned.rows)?;
    }
    epochs.finish()?;
    rollups.finish()?;
    Ok(problems)
}

/// A file that is being written, and rows that wait until there are enough to sort.
struct Sorted<'a> {
    folder: &'a Folder,
    part: HourPart,
    writer: FileWriter,
    waiting: Vec<Row>,
    rows: u64,
}

impl<'a> Sorted<'a> {
    fn new(folder: &'a Folder, part: HourPart) -> Result<Self, HistoryError> {
        let writer = FileWriter::new(folder, part.hour, part.number)?;
        Ok(Self { folder, part, writer, waiting: Vec::new(), rows: 0 })
    }

    fn add(&mut self, rows: Vec<Row>) -> Result<(), HistoryError> {
        self.waiting.extend(rows);
        if self.waiting.len() >= GROUP_ROWS { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), HistoryError> {
        let mut rows = std::mem::take(&mut self.waiting);
        rows.sort_by(|one, other| one.file_order().cmp(&other.file_order()));
        self.rows += rows.len() as u64;
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
