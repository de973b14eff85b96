//! What a scan read, and what it could not.

use std::fmt;

use twixt_model::{Epoch, Span};

use crate::day::Day;
use crate::day_files::stem;

/// Places of damage that a report lists; more are only counted.
pub const DAMAGES_MAX: usize = 1000;

/// What a scan read so far, and what it could not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Records handed over.
    pub records: u64,
    /// Bytes read from data files.
    pub data_bytes: u64,
    /// Bytes read from indexes.
    pub index_bytes: u64,
    /// Day files looked into.
    pub days: u64,
    /// Bytes of data that no sound index entry covered, and that were searched instead.
    pub unindexed_bytes: u64,
    /// Bytes behind the last whole record: being written, or left by a writer that was stopped.
    /// Nothing acknowledged is among them.
    pub unfinished_bytes: u64,
    /// Places where something is missing, [`DAMAGES_MAX`] at most, and the first that could not be read.
    pub damages: Vec<Damage>,
    /// Places where something is missing, all of them.
    pub damaged: u64,
    /// Bytes that are missing, at all places.
    pub damaged_bytes: u64,
    /// Places among them that may be sound: the system could not read them, or a newer release wrote
    /// them.
    pub unreadable: u64,
}

impl Report {
    /// Whether nothing is missing.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.damaged == 0 && self.unfinished_bytes == 0
    }

    pub(crate) fn add(&mut self, damage: Damage) {
        self.damaged += 1;
        let is_unreadable = damage.cause.is_unreadable();
        self.unreadable += u64::from(is_unreadable);
        self.damaged_bytes = self.damaged_bytes.saturating_add(damage.bytes);
        if self.damages.len() < DAMAGES_MAX || (is_unreadable && self.unreadable == 1) {
            self.damages.push(damage);
        }
    }
}

/// A part of a data file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The point.
    pub point: String,
    /// The day of the file: records begin on it.
    pub day: Day,
    /// Which of the day's files.
    pub part: u32,
    /// Where in the file.
    pub place: u64,
    /// How much of it.
    pub bytes: u64,
    /// What happened.
    pub cause: Cause,
    /// The time of the record that was there, where its head or the index tells.
    pub span: Option<Span>,
    /// The epoch of that record.
    pub epoch: Option<Epoch>,
}

/// What happened to a part of a data file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The beginning of the file was changed; records are not touched by that.
    Header,
    /// No record begins where one should.
    Head,
    /// The record's payload was changed.
    Payload,
    /// The index knows a record that the data file no longer has.
    Missing,
    /// The file is of a newer release. Upgrade.
    NewerVersion(u8),
    /// The system could not read it.
    Unreadable(String),
}

impl Cause {
    /// Whether what is there may be sound, though it cannot be read now or by this release.
    pub(crate) const fn is_unreadable(&self) -> bool {
        matches!(self, Self::Unreadable(_) | Self::NewerVersion(_))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => formatter.write_str("the file's header is damaged"),
            Self::Head => formatter.write_str("damaged"),
            Self::Payload => formatter.write_str("a record is damaged"),
            Self::Missing => formatter.write_str("a record is in the index but not in the file"),
            Self::NewerVersion(found) => {
                write!(formatter, "format version {found} is from a newer release; upgrade")
            }
            Self::Unreadable(problem) => write!(formatter, "cannot be read: {problem}"),
        }
    }
}

impl Damage {
    /// Whether the system could not read it: it may be sound, and readable later.
    #[must_use]
    pub const fn is_disk_error(&self) -> bool {
        matches!(self.cause, Cause::Unreadable(_))
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { point, place, bytes, cause, epoch, .. } = self;
        let file = stem(self.day, self.part);
        write!(formatter, "{point}, {file}: {cause} ({bytes} bytes at {place}")?;
        match epoch {
            Some(epoch) => write!(formatter, ", epoch {})", epoch.0),
            None => formatter.write_str(")"),
        }
    }
}
