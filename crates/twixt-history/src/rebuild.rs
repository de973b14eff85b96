//! Makes a history of estimates of an excerpt that came from another machine: sealed hours, as they would lie there,
//! so that they are read as every other history is.
//!
//! What came is not believed: rows that are not of the hour, the kind and the series that they claim to
//! be are refused, and so are numbers that no row of ours has.

use std::path::Path;

use twixt_model::{Span, is_hidden};
use twixt_store::{make_folders, real_disk};

use crate::catalogue::Catalogue;
use crate::error::HistoryError;
use crate::file::FileWriter;
use crate::folders::Folders;
use crate::reader::ExcerptKind;
use crate::row::{Row, SeriesKey};
use crate::step::{HOUR_NS, Hour, Step};
use crate::table::Table;

/// Epochs of a row at most. An hour has fewer, however short its epochs are.
const EPOCHS_MAX: u64 = 1 << 42;

/// Why a history cannot be made of an excerpt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RebuildError {
    /// The rows are not those of an excerpt. The file that they came from is damaged or forged.
    #[error("{0}")]
    Rows(&'static str),
    /// Files cannot be written. See the message of the history.
    #[error(transparent)]
    History(#[from] HistoryError),
}

/// The file of one hour and kind that is being written.
pub struct RebuiltFile {
    hour: Hour,
    kind: ExcerptKind,
    writer: FileWriter,
}

impl RebuiltFile {
    /// Begins a file below a folder, which becomes that of a history.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn begin(folder: &Path, hour: Hour, kind: ExcerptKind) -> Result<Self, HistoryError> {
        let folders = Folders::new(real_disk(), folder, Table::Estimates);
        let of_kind = match kind {
            ExcerptKind::Epochs => &folders.epochs,
            ExcerptKind::Sums => &folders.rollups,
        };
        Ok(Self { hour, kind, writer: FileWriter::new(of_kind, hour, 0)? })
    }

    /// Adds rows; `is_known` says which series are.
    ///
    /// # Errors
    /// When they are not those of an excerpt, or cannot be written.
    pub fn add(
        &mut self,
        mut rows: Vec<Row>,
        is_known: impl Fn(&SeriesKey) -> bool,
    ) -> Result<(), RebuildError> {
        for row in &rows {
            self.check(row)?;
            if !is_known(&row.series) {
                return Err(RebuildError::Rows("a row is of a series that is not listed"));
            }
        }
        rows.sort_by(|one, other| one.file_order().cmp(&other.file_order()));
        Ok(self.writer.write(&rows)?)
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<(), HistoryError> {
        self.writer.finish(self.hour, 0).map(drop)
    }

    fn check(&self, row: &Row) -> Result<(), RebuildError> {
        let is_of_kind = match self.kind {
            ExcerptKind::Epochs => row.step == Step::Epoch,
            ExcerptKind::Sums => row.step != Step::Epoch,
        };
        let length_ns = i128::from(row.end_ns) - i128::from(row.start_ns);
        // A row of long epochs may end in a later hour.
        let longest_ns = i128::from(row.series.epoch_ns.max(HOUR_NS));
        let counts = [row.epochs, row.gaps, row.late_epochs];
        let refuse = |problem| Err(RebuildError::Rows(problem));
        match () {
            () if Hour::of(row.span().start) != self.hour => refuse("a row is of another hour"),
            () if !is_of_kind => refuse("a row is of another length"),
            () if !(0..=longest_ns).contains(&length_ns) => refuse("a row ends at no time"),
            () if row.series.epoch_ns < 0 => refuse("an epoch has no length"),
            () if counts.iter().any(|count| *count > EPOCHS_MAX) => {
                refuse("a row has no such count")
            }
            () if !is_shown(&row.scope) || !is_shown(&row.scope_kind) => {
                refuse("a scope is hidden")
            }
            () if !row.reason.as_deref().is_none_or(is_shown) => refuse("a reason is hidden"),
            () if row.delay.as_ref().is_some_and(|delay| delay.count == 0) => {
                refuse("a row has delays of no packets")
            }
            () => Ok(()),
        }
    }
}

/// Whether a text does no more to a terminal than to be shown.
fn is_shown(text: &str) -> bool {
    !text.chars().any(is_hidden)
}

/// Notes which series there are, and from when to when something of them is stored.
///
/// # Errors
/// When the file cannot be written.
pub fn rebuild_catalogue(folder: &Path, series: &[(SeriesKey, Span)]) -> Result<(), HistoryError> {
    let disk = real_disk();
    make_folders(disk.as_ref(), folder).map_err(HistoryError::file("create", folder))?;
    let mut catalogue = Catalogue::default();
    series.iter().for_each(|(series, span)| catalogue.note(series, *span));
    catalogue.write(&disk, &Folders::new(disk.clone(), folder, Table::Estimates).catalogue)
}
