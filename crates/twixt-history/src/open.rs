//! Hours that are not sealed: rows lie in a log.
//!
//! The rows of an hour lie in a folder of their own, `open/2024-01-31T10-0`, which is a log
//! (`twixt-store`) whose points are shards: all rows of a segment are in one of them, so a query
//! that asks for a segment reads no other. The number at the end is the part: rows that come when
//! an hour was sealed already begin a new one. A folder is renamed before it is deleted: one that
//! is still there was not touched.

mod scanning;
mod writing;

pub(crate) use scanning::OpenWanted;
pub(crate) use writing::{Appended, PartWriter, identity, identity_of, series_of, shard_of};

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use twixt_model::{Segment, Span};
use twixt_store::{Depth, Log, Options, SharedDisk};

use crate::error::HistoryError;
use crate::file::names;
use crate::row::SeriesKey;
use crate::step::Hour;
use crate::table::Table;

/// Files that the rows of an hour are spread over.
pub(crate) const SHARDS: u64 = 16;
/// What a folder is called that is being deleted.
const GONE: &str = "gone-";

/// A part of an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HourPart {
    pub(crate) hour: Hour,
    pub(crate) number: u32,
}

/// The folder of all hours that are not sealed.
#[derive(Clone, Debug)]
pub(crate) struct OpenFolder {
    disk: SharedDisk,
    path: PathBuf,
    table: Table,
}

impl OpenFolder {
    pub(crate) fn new(disk: &SharedDisk, path: impl Into<PathBuf>, table: Table) -> Self {
        Self { disk: disk.clone(), path: path.into(), table }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn part_path(&self, part: HourPart) -> PathBuf {
        self.path.join(format!("{}-{}", part.hour, part.number))
    }

    /// The parts that are not sealed, in order.
    pub(crate) fn parts(&self) -> Result<Vec<HourPart>, HistoryError> {
        let mut parts: Vec<HourPart> =
            names(self.disk.as_ref(), &self.path)?.iter().filter_map(|name| parse(name)).collect();
        parts.sort_unstable();
        Ok(parts)
    }

    fn log(&self, part: HourPart) -> Log {
        Log::on(self.disk.clone(), self.part_path(part), Options::default())
    }

    /// Appends to a part. What earlier parts of the hour have is not stored again.
    pub(crate) fn writer(&self, part: HourPart, sealed: HashSet<u64>) -> PartWriter {
        PartWriter::new(self.log(part), self.table, sealed)
    }

    /// Deletes a part that was sealed.
    pub(crate) fn delete(&self, part: HourPart) -> Result<(), HistoryError> {
        let path = self.part_path(part);
        let gone = self.path.join(format!("{GONE}{}-{}", part.hour, part.number));
        let _ = self.disk.remove_folder(&gone);
        match self.disk.rename(&path, &gone) {
            // Nothing was ever appended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            renamed => renamed.map_err(HistoryError::file("rename", &path))?,
        }
        // What is left of it counts no longer, and is deleted at the next start.
        let _ = self.disk.remove_folder(&gone);
        Ok(())
    }

    /// Deletes what a process that was killed had begun to delete.
    pub(crate) fn clean(&self) -> Result<(), HistoryError> {
        let names = names(self.disk.as_ref(), &self.path)?;
        for name in names.iter().filter(|name| name.starts_with(GONE)) {
            let path = self.path.join(name);
            self.disk.remove_folder(&path).map_err(HistoryError::file("delete", &path))?;
        }
        Ok(())
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> Result<u64, HistoryError> {
        let (mut bytes, disk) = (0, self.disk.as_ref());
        for part in self.parts()? {
            let path = self.part_path(part);
            for shard in names(disk, &path)? {
                let shard = path.join(shard);
                let sizes =
                    names(disk, &shard)?.into_iter().map(|name| disk.about(&shard.join(name)));
                bytes += sizes.filter_map(Result::ok).map(|about| about.bytes).sum::<u64>();
            }
        }
        Ok(bytes)
    }

    /// The series of a part, and from when to when there is something of them.
    pub(crate) fn series(
        &self,
        part: HourPart,
        segment: Option<&Segment>,
    ) -> Result<BTreeMap<SeriesKey, Span>, HistoryError> {
        let mut series: BTreeMap<SeriesKey, Span> = BTreeMap::new();
        let wanted = OpenWanted { segment, ..OpenWanted::all(part.hour) };
        for found in self.scan(part, &wanted, Depth::Heads)? {
            let Some(key) = series_of(&found.stream) else { continue };
            if segment.is_none_or(|segment| key.is_of(segment)) {
                let span = series.entry(key).or_insert(found.span);
                *span = span.union(found.span);
            }
        }
        Ok(series)
    }
}

fn parse(name: &str) -> Option<HourPart> {
    let (day, rest) = name.split_once('T')?;
    let (hour, number) = rest.split_once('-')?;
    let hour = Hour::within(day.parse().ok()?, hour.parse().ok()?)?;
    let part = HourPart { hour, number: number.parse().ok()? };
    (format!("{}-{}", part.hour, part.number) == name).then_some(part)
}
