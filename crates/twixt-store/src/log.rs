//! The log as a whole: its points, its writers and scans.

use std::io;
use std::path::{Path, PathBuf};

use crate::compress::LEVEL_DEFAULT;
use crate::day::Day;
use crate::day_files::{self, DayFiles};
use crate::disk::{Disk, SharedDisk, real_disk};
use crate::error::StoreError;
use crate::name;
use crate::payloads::Payloads;
use crate::quarantine::Quarantine;
use crate::query::{Found, Query};
use crate::report::Damage;
use crate::scan::Scan;
use crate::writer::{FILE_RECORDS_MAX, PointWriter};

/// How to write.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Level of zstd, from 1 (fast) to 19 (small); beyond, the nearest counts.
    pub level: i32,
    /// Records of one file. Beyond, a day has further files.
    pub file_records_max: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { level: LEVEL_DEFAULT, file_records_max: FILE_RECORDS_MAX }
    }
}

/// A folder of records. Opening it touches nothing: reading needs no write permission.
#[derive(Clone, Debug)]
pub struct Log {
    disk: SharedDisk,
    folder: PathBuf,
    options: Options,
    quarantine: Quarantine,
}

impl Log {
    /// The log in a folder, which a writer makes if it is not there.
    #[must_use]
    pub fn open(folder: impl Into<PathBuf>, options: Options) -> Self {
        Self::on(real_disk(), folder, options)
    }

    /// The same on a given disk.
    #[must_use]
    pub fn on(disk: SharedDisk, folder: impl Into<PathBuf>, options: Options) -> Self {
        Self { disk, folder: folder.into(), options, quarantine: Quarantine::default() }
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        self.disk.as_ref()
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether the folder is there.
    ///
    /// # Errors
    /// When the system cannot tell, or a file is in its place.
    pub fn has_folder(&self) -> Result<bool, StoreError> {
        let found = match self.disk().about(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Ok(about) if !about.is_folder => Err(io::ErrorKind::NotADirectory.into()),
            found => found.map(|_| true),
        };
        found.map_err(StoreError::open("look for", &self.folder))
    }

    /// Whether the folder is there and looks like a log: it has a folder with a day in it.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.points().is_ok_and(|points| !points.is_empty())
    }

    /// The points of which there is something, by name.
    ///
    /// # Errors
    /// When the folder cannot be listed.
    pub fn points(&self) -> Result<Vec<String>, StoreError> {
        let mut points = Vec::new();
        for (point, folder) in self.folders()? {
            if !self.days_in(&folder, &point)?.is_empty() {
                points.push(point);
            }
        }
        Ok(points)
    }

    /// Writes records of a point.
    ///
    /// # Errors
    /// When the name makes no name of a folder.
    pub fn writer(&self, point: &str) -> Result<PointWriter, StoreError> {
        Ok(PointWriter::new(
            &self.disk,
            self.folder_of(point)?,
            point,
            self.options,
            &self.quarantine,
        ))
    }

    /// Goes through the records that are asked for.
    ///
    /// # Errors
    /// When folders cannot be listed. Problems of files are in the report of the scan.
    pub fn scan(&self, query: Query) -> Result<Scan, StoreError> {
        let days = match &query.point {
            Some(point) => self.days_in(&self.folder_of(point)?, point)?,
            None => self.days()?,
        };
        Ok(Scan::new(&self.disk, query, days))
    }

    /// The payload of a record that a scan found.
    ///
    /// # Errors
    /// When it is damaged, or deleted since.
    pub fn payload(&self, found: &Found) -> Result<Vec<u8>, Damage> {
        self.payloads().read(found).map(<[u8]>::to_vec)
    }

    /// Reads payloads of records that scans found, one after the other.
    #[must_use]
    pub fn payloads(&self) -> Payloads<'_> {
        Payloads::new(self)
    }

    /// The last day of which any point has something.
    ///
    /// # Errors
    /// When folders cannot be listed.
    pub fn newest_day(&self) -> Result<Option<Day>, StoreError> {
        Ok(self.days()?.iter().map(|files| files.day).max())
    }

    /// All days of all points: points by name, days in order.
    pub(crate) fn days(&self) -> Result<Vec<DayFiles>, StoreError> {
        let mut days = Vec::new();
        for (point, folder) in self.folders()? {
            days.extend(self.days_in(&folder, &point)?);
        }
        Ok(days)
    }

    fn folders(&self) -> Result<Vec<(String, PathBuf)>, StoreError> {
        day_files::points(self.disk(), &self.folder).map_err(StoreError::open("list", &self.folder))
    }

    pub(crate) fn folder_of(&self, point: &str) -> Result<PathBuf, StoreError> {
        let folder = name::folder_of(point)
            .ok_or_else(|| StoreError::PointName { point: point.to_owned() })?;
        Ok(self.folder.join(folder))
    }

    /// The days of a point; none if it has no folder.
    fn days_in(&self, folder: &Path, point: &str) -> Result<Vec<DayFiles>, StoreError> {
        match day_files::days(self.disk(), folder, point) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            listed => listed.map_err(StoreError::open("list", folder)),
        }
    }
}
