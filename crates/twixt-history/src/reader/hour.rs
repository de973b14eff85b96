//! The rows of one hour, from wherever they are.

use std::collections::BTreeMap;

use twixt_model::Span;
use twixt_store::{Depth, is_folder};

use super::first_rows::{FirstRows, Gathered};
use super::listing::{HourListing, Listing};
use super::{HistoryReader, Live};
use crate::error::{HistoryError, Unreadable};
use crate::file::{Columns, Wanted, read, read_groups};
use crate::holes::{Covered, Hole, holes, note_missing};
use crate::open::{HourPart, OpenWanted};
use crate::question::RowQuestion;
use crate::rollup::{RollUps, rolled_up};
use crate::row::{Row, SeriesKey};
use crate::step::{Hour, Step};

/// How often an hour is looked at again because it was sealed meanwhile.
const TRIES_MAX: u32 = 4;

/// What there is of an hour.
#[derive(Debug, Default)]
pub(super) struct HourRows {
    /// In order of time, holes included.
    pub(super) rows: Vec<Row>,
    /// Whether there are more behind them.
    pub(super) is_cut: bool,
    pub(super) problems: Vec<Unreadable>,
}

/// What is stored of an hour.
#[derive(Debug, Default)]
pub(super) struct StoredRows {
    pub(super) gathered: Gathered,
    pub(super) problems: Vec<Unreadable>,
}

/// What to read of an hour, and where from.
struct HourSource<'a> {
    hour: Hour,
    question: &'a RowQuestion,
    there: &'a HourListing,
    live: Option<&'a dyn Live>,
}

impl HistoryReader {
    /// The rows of an hour; of epochs, the first `keep` at least.
    pub(super) fn hour(
        &self,
        hour: Hour,
        question: &RowQuestion,
        keep: usize,
        expected: &BTreeMap<SeriesKey, Span>,
        listing: &mut Listing<'_>,
        live: Option<&dyn Live>,
    ) -> Result<HourRows, HistoryError> {
        let (there, mut found) = self.stored(hour, question, keep, listing, live)?;
        if question.step != Step::Epoch {
            found.gathered.rows.iter_mut().for_each(Row::close_late_gaps);
        }
        let why = match () {
            () if !found.problems.is_empty() => Hole::Unreadable,
            () if there.only_rollups => Hole::NoLongerKept,
            () => Hole::NothingStored,
        };
        let Gathered { mut rows, cut, covered } = found.gathered;
        note_missing(&mut rows, expected, why);
        rows.retain(|row| question.wants(row));
        rows.extend(holes(covered, hour, question.step, expected, why));
        if let Some(last) = &cut {
            rows.retain(|row| row.answer_order() <= last.answer_order());
        }
        rows.sort_by(|one, other| one.answer_order().cmp(&other.answer_order()));
        Ok(HourRows { rows, is_cut: cut.is_some(), problems: found.problems })
    }

    /// What is stored of an hour, looked at again where it was sealed meanwhile. Gaps of sums still have
    /// the epochs that were estimated late.
    pub(super) fn stored(
        &self,
        hour: Hour,
        question: &RowQuestion,
        keep: usize,
        listing: &mut Listing<'_>,
        live: Option<&dyn Live>,
    ) -> Result<(HourListing, StoredRows), HistoryError> {
        let mut tries = 0;
        loop {
            let there = listing.hour(hour, question.step)?;
            let source = HourSource { hour, question, there: &there, live };
            let found = match question.step {
                Step::Epoch => self.stored_epochs(&source, keep)?,
                _ => self.stored_sums(&source)?,
            };
            tries += 1;
            // A folder that is still there was whole while it was read.
            let folders = &self.folders;
            let is_there = |part: &HourPart| {
                is_folder(folders.disk.as_ref(), &folders.open.part_path(*part)).unwrap_or(false)
            };
            let is_whole = there.open.iter().all(is_there);
            if is_whole || tries >= TRIES_MAX {
                return Ok((there, found));
            }
            listing.renew()?;
        }
    }

    /// The first epochs of an hour.
    fn stored_epochs(
        &self,
        source: &HourSource<'_>,
        keep: usize,
    ) -> Result<StoredRows, HistoryError> {
        let HourSource { hour, question, there, .. } = *source;
        let mut first = FirstRows::new(question, keep);
        let mut problems = Vec::new();
        let columns = if question.histograms { Columns::All } else { Columns::Plain };
        let segment = question.segment.as_ref();
        let wanted = Wanted { segment, step: Step::Epoch, span: hour.span(), columns };
        for name in &there.files {
            let take = |rows: Vec<Row>| first.add(rows);
            let read = read_groups(&self.folders.epochs, *name, &wanted, &self.footers, take);
            problems.extend(read.err());
        }
        let span = Span {
            start: hour.span().start.max(question.span.start),
            end: hour.span().end.min(question.span.end),
        };
        for part in there.open.iter().filter(|_| span.start <= span.end) {
            let wanted = OpenWanted { segment, span, ..OpenWanted::all(hour) };
            let mut scan = self.folders.open.scan(*part, &wanted, Depth::Payloads)?;
            while let Some(rows) = scan.next_rows() {
                first.add(rows.into_iter().map(|row| asked(row, question)).collect());
            }
            problems.extend(scan.problems());
        }
        Ok(StoredRows { gathered: first.finish(), problems })
    }

    /// The minutes of an hour, or the hour, of all scopes.
    fn stored_sums(&self, source: &HourSource<'_>) -> Result<StoredRows, HistoryError> {
        let HourSource { hour, question, there, live } = *source;
        let parts = there.files.len() + there.open.len();
        let mut rows = Vec::new();
        let mut problems = Vec::new();
        // Minutes of several parts are combined, for which histograms are needed.
        let is_joined = parts > 1;
        let wanted = Wanted {
            segment: question.segment.as_ref(),
            step: question.step,
            span: hour.span(),
            columns: if question.histograms || is_joined { Columns::All } else { Columns::Plain },
        };
        for name in &there.files {
            match read(&self.folders.rollups, *name, &wanted, &self.footers) {
                Ok(found) => rows.extend(found),
                Err(problem) => problems.push(problem),
            }
        }
        for part in &there.open {
            match live.and_then(|live| live.rolled_up(*part, question)) {
                Some(found) => rows.extend(found),
                None => rows.extend(self.open_sums(*part, question, &mut problems)?),
            }
        }
        if is_joined {
            rows = rolled_up(&rows, question.step);
        }
        rows.retain(|row| question.wants_series(&row.series));
        let mut covered = Covered::default();
        rows.iter().for_each(|row| covered.add(row));
        Ok(StoredRows { gathered: Gathered { rows, cut: None, covered }, problems })
    }

    /// Sums up the log of a part.
    fn open_sums(
        &self,
        part: HourPart,
        question: &RowQuestion,
        problems: &mut Vec<Unreadable>,
    ) -> Result<Vec<Row>, HistoryError> {
        let wanted =
            OpenWanted { segment: question.segment.as_ref(), ..OpenWanted::all(part.hour) };
        let mut scan = self.folders.open.scan(part, &wanted, Depth::Payloads)?;
        let mut sums = RollUps::new(question.step);
        while let Some(rows) = scan.next_rows() {
            rows.iter().for_each(|row| sums.add(row));
        }
        problems.extend(scan.problems());
        Ok(sums.rows().collect())
    }
}

/// A row as it is asked for. Histograms are most of it.
fn asked(mut row: Row, question: &RowQuestion) -> Row {
    if let Some(delay) = row.delay.as_mut().filter(|_| !question.histograms) {
        delay.histogram = None;
    }
    if let Some(point) = row.point.as_mut().filter(|_| !question.histograms) {
        point.without_histogram();
    }
    row
}
