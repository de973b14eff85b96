//! All that is stored of a segment in an interval of time: to be carried to another machine, where it
//! is [rebuilt](crate::RebuiltFile) and answers as it does here.
//!
//! Rows are handed over as they are stored. What an answer adds, such as rows for what is missing, a
//! reader of the excerpt adds too.

use twixt_model::{Segment, Span, Timestamp};

use super::listing::Listing;
use super::{HistoryReader, Live, expected};
use crate::catalogue::Catalogue;
use crate::error::{HistoryError, Unreadable};
use crate::question::RowQuestion;
use crate::row::{Row, SeriesKey};
use crate::step::{Hour, Step};

/// Rows of an excerpt: of epochs, and of minutes and hours together. Beyond, whole hours are left out.
pub const EXCERPT_ROWS_MAX: usize = 100_000;

/// What an excerpt is of.
#[derive(Clone, Debug)]
pub struct ExcerptAsked {
    /// The two points.
    pub segment: Segment,
    /// Rows that overlap with it.
    pub span: Span,
}

/// What rows of an excerpt are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExcerptKind {
    /// Of epochs.
    Epochs,
    /// Minutes and hours.
    Sums,
}

/// The rows of one hour and kind, in the order of files. There may be none: then nothing was stored in the
/// time that the excerpt is of, but would have been kept.
#[derive(Clone, Debug, PartialEq)]
pub struct ExcerptPart {
    /// The hour.
    pub hour: Hour,
    /// What rows are.
    pub kind: ExcerptKind,
    /// The rows.
    pub rows: Vec<Row>,
}

/// What an excerpt came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExcerptSummary {
    /// Its series, and from when to when something of them is stored within its time.
    pub series: Vec<(SeriesKey, Span)>,
    /// Rows by step: of epochs, minutes, hours.
    pub rows: [u64; 3],
    /// From when on rows of epochs are left out because there are too many.
    pub epochs_end: Option<Timestamp>,
    /// From when on minutes and hours are left out because there are too many.
    pub sums_end: Option<Timestamp>,
    /// What could not be read.
    pub problems: Vec<Unreadable>,
}

impl HistoryReader {
    /// Hands over all that is stored of a segment in an interval of time, hour by hour.
    ///
    /// # Errors
    /// When folders cannot be listed, or what takes the parts fails. Problems of files are listed in the
    /// summary.
    pub fn excerpt<E: From<HistoryError>>(
        &self,
        asked: &ExcerptAsked,
        take: impl FnMut(ExcerptPart) -> Result<(), E>,
    ) -> Result<ExcerptSummary, E> {
        let catalogue = self.catalogue(Some(&asked.segment))?;
        self.excerpt_with(asked, &catalogue, None, take)
    }

    pub(crate) fn excerpt_with<E: From<HistoryError>>(
        &self,
        asked: &ExcerptAsked,
        catalogue: &Catalogue,
        live: Option<&dyn Live>,
        mut take: impl FnMut(ExcerptPart) -> Result<(), E>,
    ) -> Result<ExcerptSummary, E> {
        let series = expected(&asked.question(Step::Epoch), catalogue);
        let stored = series.values().copied().reduce(Span::union);
        let series = series.into_iter().collect();
        let mut summary = ExcerptSummary { series, ..ExcerptSummary::default() };
        let Some(stored) = stored else { return Ok(summary) };
        let mut hours = Hours { reader: self, asked, listing: Listing::new(&self.folders)?, live };
        for hour in Hour::of(stored.start).through(Hour::of(stored.end)) {
            let parts = [hours.sums(hour, &mut summary)?, hours.epochs(hour, &mut summary)?];
            parts.into_iter().flatten().try_for_each(&mut take)?;
        }
        let mut seen = std::collections::BTreeSet::new();
        summary.problems.retain(|problem| seen.insert(problem.clone()));
        Ok(summary)
    }
}

/// Reads what is stored, hour by hour.
struct Hours<'a> {
    reader: &'a HistoryReader,
    asked: &'a ExcerptAsked,
    listing: Listing<'a>,
    live: Option<&'a dyn Live>,
}

impl Hours<'_> {
    fn sums(
        &mut self,
        hour: Hour,
        summary: &mut ExcerptSummary,
    ) -> Result<Option<ExcerptPart>, HistoryError> {
        let mut rows = Vec::new();
        for step in [Step::Minute, Step::Hour] {
            rows.extend(self.stored(hour, step, summary)?.1);
        }
        let [_, minutes, hours] = summary.rows;
        if summary.sums_end.is_some() || rows.len() as u64 + minutes + hours > ROWS_MAX {
            summary.sums_end.get_or_insert(hour.span().start);
            return Ok(None);
        }
        let minutes = rows.iter().filter(|row| row.step == Step::Minute).count() as u64;
        summary.rows[1] += minutes;
        summary.rows[2] += rows.len() as u64 - minutes;
        // An hour without them has no file of them.
        Ok((!rows.is_empty()).then(|| ExcerptPart::new(hour, ExcerptKind::Sums, rows)))
    }

    fn epochs(
        &mut self,
        hour: Hour,
        summary: &mut ExcerptSummary,
    ) -> Result<Option<ExcerptPart>, HistoryError> {
        let (is_kept, rows) = self.stored(hour, Step::Epoch, summary)?;
        if summary.epochs_end.is_some() || rows.len() as u64 + summary.rows[0] > ROWS_MAX {
            summary.epochs_end.get_or_insert(hour.span().start);
            return Ok(None);
        }
        summary.rows[0] += rows.len() as u64;
        Ok(is_kept.then(|| ExcerptPart::new(hour, ExcerptKind::Epochs, rows)))
    }

    /// Whether such rows are kept, and those that overlap with what is asked for.
    fn stored(
        &mut self,
        hour: Hour,
        step: Step,
        summary: &mut ExcerptSummary,
    ) -> Result<(bool, Vec<Row>), HistoryError> {
        let span = self.asked.span;
        let mut question = self.asked.question(step);
        // A gap that began before may reach into it.
        question.span.start = hour.span().start.min(span.start);
        // Of the first hour, as many may lie before it.
        let keep = 2 * EXCERPT_ROWS_MAX;
        let found = self.reader.stored(hour, &question, keep, &mut self.listing, self.live)?;
        let (there, found) = found;
        let mut rows = found.gathered.rows;
        rows.retain(|row| row.span().start <= span.end && span.start <= row.span().end);
        rows.sort_by(|one, other| one.file_order().cmp(&other.file_order()));
        summary.problems.extend(found.problems);
        Ok((!there.only_rollups, rows))
    }
}

const ROWS_MAX: u64 = EXCERPT_ROWS_MAX as u64;

impl ExcerptAsked {
    fn question(&self, step: Step) -> RowQuestion {
        RowQuestion {
            segment: Some(self.segment.clone()),
            span: self.span,
            histograms: true,
            ..RowQuestion::all(step)
        }
    }
}

impl ExcerptPart {
    const fn new(hour: Hour, kind: ExcerptKind, rows: Vec<Row>) -> Self {
        Self { hour, kind, rows }
    }
}
