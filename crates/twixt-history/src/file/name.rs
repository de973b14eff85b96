//! Names of files: hour, part and checksum.

use std::io;
use std::path::{Path, PathBuf};

use twixt_store::{Day, Disk, SharedDisk, remove_if_there};

use crate::error::HistoryError;
use crate::step::Hour;
use crate::table::Table;

const ENDING: &str = ".parquet";

/// The name of a sealed file: `2024-01-31/10-0-9f86d081884c7d65.parquet` for the first part of the
/// hour from 10:00 on. Epochs that came after the hour was sealed are in further parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileName {
    pub(crate) hour: Hour,
    pub(crate) part: u32,
    pub(crate) checksum: u64,
}

/// A folder of sealed files.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    disk: SharedDisk,
    path: PathBuf,
    table: Table,
}

impl Folder {
    pub(crate) fn new(disk: &SharedDisk, path: impl Into<PathBuf>, table: Table) -> Self {
        Self { disk: disk.clone(), path: path.into(), table }
    }

    /// What its files have.
    pub(crate) const fn table(&self) -> Table {
        self.table
    }

    pub(crate) const fn disk(&self) -> &SharedDisk {
        &self.disk
    }

    /// The folder of an hour's day.
    pub(crate) fn day_path(&self, day: Day) -> PathBuf {
        self.path.join(day.to_string())
    }

    pub(crate) fn file_path(&self, name: FileName) -> PathBuf {
        let FileName { hour, part, checksum } = name;
        let file = format!("{:02}-{part}-{checksum:016x}{ENDING}", hour.of_day());
        self.day_path(hour.day()).join(file)
    }

    /// The days of which there is something, in order.
    pub(crate) fn days(&self) -> Result<Vec<Day>, HistoryError> {
        let names = names(self.disk.as_ref(), &self.path)?;
        let mut days: Vec<Day> = names.iter().filter_map(|name| name.parse().ok()).collect();
        days.sort_unstable();
        Ok(days)
    }

    /// The files of a day, in order.
    pub(crate) fn files_of(&self, day: Day) -> Result<Vec<FileName>, HistoryError> {
        let names = names(self.disk.as_ref(), &self.day_path(day))?;
        let mut files: Vec<FileName> = names.iter().filter_map(|name| parse(day, name)).collect();
        files.sort_unstable();
        Ok(files)
    }

    /// All files, in order.
    pub(crate) fn files(&self) -> Result<Vec<FileName>, HistoryError> {
        let mut files = Vec::new();
        for day in self.days()? {
            files.extend(self.files_of(day)?);
        }
        Ok(files)
    }

    /// Makes the names of a day's files survive the death of the machine.
    pub(crate) fn sync(&self, day: Day) -> Result<(), HistoryError> {
        let path = self.day_path(day);
        self.disk.sync_folder(&path).map_err(HistoryError::file("sync", &path))
    }

    /// Deletes a file, and the folder of its day if nothing else is in it.
    pub(crate) fn delete(&self, name: FileName) -> Result<(), HistoryError> {
        let path = self.file_path(name);
        let disk = self.disk.as_ref();
        remove_if_there(disk, &path).map_err(HistoryError::file("delete", &path))?;
        let day = self.day_path(name.hour.day());
        if disk.list(&day).is_ok_and(|names| names.is_empty()) {
            // If it stays, the next that is deleted there takes it with it.
            let _ = disk.remove_folder(&day);
        }
        Ok(())
    }
}

/// The names in a folder; none if it is not there.
pub(crate) fn names(disk: &dyn Disk, folder: &Path) -> Result<Vec<String>, HistoryError> {
    match disk.list(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(HistoryError::file("list", folder)),
    }
}

fn parse(day: Day, name: &str) -> Option<FileName> {
    let mut parts = name.strip_suffix(ENDING)?.split('-');
    let (hour, part, checksum) = (parts.next()?, parts.next()?, parts.next()?);
    let is_whole = parts.next().is_none() && hour.len() == 2 && checksum.len() == 16;
    let found = FileName {
        hour: Hour::within(day, hour.parse().ok()?)?,
        part: part.parse().ok()?,
        checksum: u64::from_str_radix(checksum, 16).ok()?,
    };
    is_whole.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let day: Day = "2024-01-31".parse().unwrap();
        let hour = Hour::within(day, 7).unwrap();
        let name = FileName { hour, part: 3, checksum: 0xabc };
        let path = Folder::new(&twixt_store::real_disk(), "x", Table::Estimates).file_path(name);
        assert_eq!(path, Path::new("x/2024-01-31/07-3-0000000000000abc.parquet"));
        assert_eq!(parse(day, path.file_name().unwrap().to_str().unwrap()), Some(name));
        for other in ["07-3-abc.parquet", "24-0-0000000000000abc.parquet", "new", "07-3.parquet"] {
            assert_eq!(parse(day, other), None, "{other}");
        }
    }
}
