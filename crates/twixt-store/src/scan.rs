//! Records in the order in which they were stored, point by point and day by day.

mod day_scan;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use crate::day_files::{DayFiles, data_file};
use crate::disk::SharedDisk;
use crate::error::StoreError;
use crate::query::{Found, Query};
use crate::report::{Cause, Damage, Report};
use day_scan::DayScan;

pub(crate) use day_scan::read_body;

/// Goes through the records that a [`Query`] asks for: points by name, days in order, records as
/// they were appended. Holds one record, and a piece of one index.
///
/// It takes no lock: a writer may append meanwhile, and a day may be deleted.
#[derive(Debug)]
pub struct Scan {
    disk: SharedDisk,
    query: Query,
    days: VecDeque<DayFiles>,
    current: Option<DayScan>,
    /// The folder of the log; empty where there is no day to read.
    folder: PathBuf,
    report: Report,
}

impl Scan {
    pub(crate) fn new(disk: &SharedDisk, query: Query, days: Vec<DayFiles>) -> Self {
        // A day's records begin on it, so later days have nothing to offer.
        let days = days.into_iter().filter(|files| files.day.span().start <= query.span.end);
        let days: VecDeque<DayFiles> = days.collect();
        let folder =
            days.front().and_then(DayFiles::log_folder).unwrap_or(Path::new("")).to_owned();
        Self { disk: disk.clone(), query, days, current: None, folder, report: Report::default() }
    }

    /// What was read so far, and what could not be.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// The same, for those who must not go on without what the system could not read. Damage is no
    /// error: that can never be read.
    ///
    /// # Errors
    /// When something could not be read that may be sound, or that a newer release wrote.
    pub fn finish(self) -> Result<Report, StoreError> {
        let mut damages = self.report.damages.iter();
        match damages.find(|damage| damage.cause.is_unreadable()) {
            Some(damage) => Err(self.unreadable(damage)),
            None => Ok(self.report),
        }
    }

    fn unreadable(&self, damage: &Damage) -> StoreError {
        let path = data_file(&self.folder, &damage.point, damage.day, damage.part);
        match damage.cause {
            Cause::NewerVersion(found) => StoreError::NewerVersion { path, found },
            _ => StoreError::Unreadable { path, problem: damage.cause.to_string() },
        }
    }
}

impl Iterator for Scan {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            if let Some(day) = &mut self.current {
                let found = day.next(&self.query, &mut self.report);
                if found.is_some() {
                    self.report.records += 1;
                    return found;
                }
            }
            let files = self.days.pop_front()?;
            self.current = DayScan::open(self.disk.as_ref(), files, &self.query, &mut self.report);
        }
    }
}
