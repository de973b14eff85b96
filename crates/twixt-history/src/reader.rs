//! Reads a history: sealed hours, and those that are not, whether or not it is being written
//! meanwhile.

mod excerpt;
mod first_rows;
mod hour;
mod listing;

use std::collections::BTreeMap;
use std::path::Path;

use twixt_model::{Segment, Span, Timestamp};
use twixt_store::{SharedDisk, real_disk};

use crate::catalogue::Catalogue;
use crate::error::HistoryError;
use crate::file::{Columns, Footers, Wanted, read};
use crate::folders::Folders;
use crate::open::HourPart;
use crate::question::{Cursor, ROWS_MAX, RowAnswer, RowQuestion};
use crate::row::{Row, SeriesKey};
use crate::step::{Hour, Step};
use crate::table::Table;
use listing::Listing;

pub use excerpt::{EXCERPT_ROWS_MAX, ExcerptAsked, ExcerptKind, ExcerptPart, ExcerptSummary};

/// Reads the history in a folder.
#[derive(Debug)]
pub struct HistoryReader {
    pub(crate) folders: Folders,
    pub(crate) footers: Footers,
}

/// What the writer knows that is not in the files yet.
pub(crate) trait Live {
    /// Minutes or hours of a part that is not sealed; `None` where the log must be read.
    fn rolled_up(&self, part: HourPart, question: &RowQuestion) -> Option<Vec<Row>>;
}

impl HistoryReader {
    /// That of estimates. Opening it touches nothing.
    #[must_use]
    pub fn open(folder: &Path) -> Self {
        Self::open_table(real_disk(), folder, Table::Estimates)
    }

    /// That of a table, on a given disk.
    #[must_use]
    pub fn open_table(disk: SharedDisk, folder: &Path, table: Table) -> Self {
        Self { folders: Folders::new(disk, folder, table), footers: Footers::default() }
    }

    /// Which series there are.
    ///
    /// # Errors
    /// When folders cannot be listed.
    pub fn catalogue(&self, segment: Option<&Segment>) -> Result<Catalogue, HistoryError> {
        let mut catalogue = self.sealed_catalogue()?;
        for part in self.folders.open.parts()? {
            for (series, span) in self.folders.open.series(part, segment)? {
                catalogue.note(&series, span);
            }
        }
        Ok(catalogue)
    }

    /// Answers a question.
    ///
    /// # Errors
    /// When folders cannot be listed. Problems of files are listed in the answer.
    pub fn answer(&self, question: &RowQuestion) -> Result<RowAnswer, HistoryError> {
        let catalogue = self.catalogue(question.segment.as_ref())?;
        self.answer_with(question, &catalogue, None)
    }

    /// What sealed hours have.
    pub(crate) fn sealed_catalogue(&self) -> Result<Catalogue, HistoryError> {
        if let Some(catalogue) = Catalogue::read(&self.folders.disk, &self.folders.catalogue) {
            return Ok(catalogue);
        }
        let mut catalogue = Catalogue::default();
        for name in self.folders.rollups.files()? {
            let wanted = Wanted {
                segment: None,
                step: Step::Minute,
                span: name.hour.span(),
                columns: Columns::Keys,
            };
            if let Ok(rows) = read(&self.folders.rollups, name, &wanted, &self.footers) {
                catalogue.note_minutes(&rows);
            }
        }
        Ok(catalogue)
    }

    pub(crate) fn answer_with(
        &self,
        question: &RowQuestion,
        catalogue: &Catalogue,
        live: Option<&dyn Live>,
    ) -> Result<RowAnswer, HistoryError> {
        let expected = expected(question, catalogue);
        let stored = expected.values().copied().reduce(Span::union);
        let mut answer = RowAnswer { stored, ..RowAnswer::default() };
        let Some(stored) = stored else { return Ok(answer) };
        let first = question.after.map_or(stored.start, |cursor| {
            Timestamp::from_nanos(cursor.start_ns).max(stored.start)
        });
        let limit = question.limit.clamp(1, ROWS_MAX);
        let mut listing = Listing::new(&self.folders)?;
        for hour in Hour::of(first).through(Hour::of(stored.end)) {
            let after = question.after.filter(|_| hour == Hour::of(first));
            // One more than is answered tells that there are more.
            let mut keep = limit + 1 - answer.rows.len();
            let rows = loop {
                let found = self.hour(hour, question, keep, &expected, &mut listing, live)?;
                let rows = behind(found.rows, after);
                if !found.is_cut || answer.rows.len() + rows.len() > limit {
                    answer.problems.extend(found.problems);
                    break rows;
                }
                // Some were before the cursor, or gaps that were closed since.
                keep = keep.saturating_mul(4);
            };
            answer.rows.extend(rows);
            if answer.rows.len() > limit {
                answer.rows.truncate(limit);
                answer.next = answer.rows.last().map(Cursor::behind);
                break;
            }
        }
        Ok(answer)
    }
}

/// From when to when rows of series are expected.
fn expected(question: &RowQuestion, catalogue: &Catalogue) -> BTreeMap<SeriesKey, Span> {
    let wanted = catalogue.series().filter(|(series, _)| question.wants_series(series));
    let within = wanted.filter_map(|(series, known)| {
        let start = known.start.max(question.span.start);
        let end = known.end.min(question.span.end);
        (start <= end).then(|| (series.clone(), Span { start, end }))
    });
    within.collect()
}

/// Rows behind a cursor. One that is not found any more is taken to be before all of its time.
fn behind(rows: Vec<Row>, cursor: Option<Cursor>) -> Vec<Row> {
    let Some(cursor) = cursor else { return rows };
    let found = rows.iter().position(|row| Cursor::behind(row) == cursor);
    let first = found.map_or_else(
        || rows.partition_point(|row| row.start_ns < cursor.start_ns),
        |place| place + 1,
    );
    rows.into_iter().skip(first).collect()
}
