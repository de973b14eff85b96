//! The log as a whole: its points, its writers and scans.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::compress::LEVEL_DEFAULT;
use crate::day_files::{self, DayFiles};
use crate::error::StoreError;
use crate::name;
use crate::query::{Depth, Found, Query};
use crate::report::{Cause, Damage};
use crate::scan::{Scan, read_body};
use crate::walk::Source;
use crate::writer::Writer;

/// How to write.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Level of zstd, from 1 (fast) to 19 (small); beyond, the nearest counts.
    pub level: i32,
}

impl Default for Options {
    fn default() -> Self {
        Self { level: LEVEL_DEFAULT }
    }
}

/// A folder of records. Opening it touches nothing: whoever only reads needs no right to write.
#[derive(Clone, Debug)]
pub struct Log {
    folder: PathBuf,
    options: Options,
}

impl Log {
    /// The log in a folder, which a writer makes if it is not there.
    #[must_use]
    pub fn open(folder: impl Into<PathBuf>, options: Options) -> Self {
        Self { folder: folder.into(), options }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
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
            if !days_in(&folder, &point)?.is_empty() {
                points.push(point);
            }
        }
        Ok(points)
    }

    /// Writes records of a point.
    ///
    /// # Errors
    /// When the name makes no name of a folder.
    pub fn writer(&self, point: &str) -> Result<Writer, StoreError> {
        Ok(Writer::new(&self.folder, self.folder_of(point)?, point, self.options))
    }

    /// Goes through the records that are asked for.
    ///
    /// # Errors
    /// When folders cannot be listed. What is wrong with files is said in the report of the scan.
    pub fn scan(&self, query: Query) -> Result<Scan, StoreError> {
        let days = match &query.point {
            Some(point) => days_in(&self.folder_of(point)?, point)?,
            None => self.days()?,
        };
        Ok(Scan::new(query, days))
    }

    /// The payload of a record that a scan found.
    ///
    /// # Errors
    /// When it is damaged, or deleted since.
    pub fn payload(&self, found: &Found) -> Result<Vec<u8>, Damage> {
        let cause = match self.read_payload(found) {
            Ok(Some(payload)) => return Ok(payload),
            Ok(None) => Cause::Payload,
            Err(error) => Cause::Unreadable(error.to_string()),
        };
        Err(Damage {
            point: found.point.clone(),
            day: found.day,
            place: found.place,
            bytes: found.stored_bytes,
            cause,
            span: Some(found.span),
            epoch: Some(found.epoch),
        })
    }

    /// All days of all points: points by name, days in order.
    pub(crate) fn days(&self) -> Result<Vec<DayFiles>, StoreError> {
        let mut days = Vec::new();
        for (point, folder) in self.folders()? {
            days.extend(days_in(&folder, &point)?);
        }
        Ok(days)
    }

    fn folders(&self) -> Result<Vec<(String, PathBuf)>, StoreError> {
        day_files::points(&self.folder).map_err(StoreError::open("list", &self.folder))
    }

    fn folder_of(&self, point: &str) -> Result<PathBuf, StoreError> {
        let folder = name::folder_of(point)
            .ok_or_else(|| StoreError::PointName { point: point.to_owned() })?;
        Ok(self.folder.join(folder))
    }

    fn read_payload(&self, found: &Found) -> io::Result<Option<Vec<u8>>> {
        let folder = self.folder_of(&found.point).map_err(io::Error::other)?;
        let files = DayFiles::new(&folder, &found.point, found.day);
        let mut data = Source::new(File::open(&files.data)?);
        let Some(head) = data.head_at(found.place)? else { return Ok(None) };
        // Nothing is allocated for bytes that are not there.
        let end = found.place.saturating_add(head.frame_bytes());
        if head.frame_bytes() != found.stored_bytes || end > data.file.metadata()?.len() {
            return Ok(None);
        }
        let body = read_body(&mut data, found.place, &head, Depth::Payloads)?;
        Ok(body.map(|(_, payload)| payload))
    }
}

/// The days of a point; none if it has no folder.
fn days_in(folder: &Path, point: &str) -> Result<Vec<DayFiles>, StoreError> {
    match day_files::days(folder, point) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(StoreError::open("list", folder)),
    }
}
