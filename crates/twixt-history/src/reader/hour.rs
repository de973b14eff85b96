//! The rows of one hour, from wherever they are.

use std::collections::BTreeMap;

use twixt_model::Span;
use twixt_store::{Depth, is_folder};

use super::listing::{HourListing, Listing};
use super::{HistoryReader, Live};
use crate::error::{HistoryError, Unreadable};
use crate::file::{Columns, Wanted, read};
use crate::holes::{Hole, close_gaps, holes, note_missing};
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
    pub(super) problems: Vec<Unreadable>,
}

impl HistoryReader {
    pub(super) fn hour(
        &self,
        hour: Hour,
        question: &RowQuestion,
        expected: &BTreeMap<SeriesKey, Span>,
        listing: &mut Listing<'_>,
        live: Option<&dyn Live>,
    ) -> Result<HourRows, HistoryError> {
        let mut tries = 0;
        let (there, mut found) = loop {
            let there = listing.hour(hour, question.step)?;
            let found = self.stored(hour, &there, question, live)?;
            tries += 1;
            // A folder that is still there was whole while it was read.
            let folders = &self.folders;
            let is_there = |part: &HourPart| {
                is_folder(folders.disk.as_ref(), &folders.open.part_path(*part)).unwrap_or(false)
            };
            let is_whole = there.open.iter().all(is_there);
            if is_whole || tries >= TRIES_MAX {
                break (there, found);
            }
            listing.renew()?;
        };
        let why = match () {
            () if !found.problems.is_empty() => Hole::Unreadable,
            () if there.only_rollups => Hole::NoLongerKept,
            () => Hole::NothingStored,
        };
        note_missing(&mut found.rows, expected, why);
        let missing = holes(&found.rows, hour, question.step, expected, why);
        found.rows.retain(|row| question.wants(row));
        found.rows.extend(missing);
        found.rows.sort_by(|one, other| one.answer_order().cmp(&other.answer_order()));
        Ok(found)
    }

    /// What is stored of an hour, of all scopes.
    fn stored(
        &self,
        hour: Hour,
        there: &HourListing,
        question: &RowQuestion,
        live: Option<&dyn Live>,
    ) -> Result<HourRows, HistoryError> {
        let parts = there.files.len() + there.open.len();
        let mut found = HourRows::default();
        // Minutes of several parts are combined, for which histograms are needed.
        let is_joined = parts > 1 && question.step != Step::Epoch;
        let wanted = Wanted {
            segment: question.segment.as_ref(),
            step: question.step,
            span: hour.span(),
            columns: if question.histograms || is_joined { Columns::All } else { Columns::Plain },
        };
        let folder = match question.step {
            Step::Epoch => &self.folders.epochs,
            _ => &self.folders.rollups,
        };
        for name in &there.files {
            match read(folder, *name, &wanted, &self.footers) {
                Ok(rows) => found.rows.extend(rows),
                Err(problem) => found.problems.push(problem),
            }
        }
        for part in &there.open {
            self.add_open(*part, question, live, &mut found)?;
        }
        if is_joined {
            found.rows = rolled_up(&found.rows, question.step);
        }
        match question.step {
            Step::Epoch => close_gaps(&mut found.rows),
            _ => found.rows.iter_mut().for_each(Row::close_late_gaps),
        }
        found.rows.retain(|row| question.wants_series(&row.series));
        Ok(found)
    }

    fn add_open(
        &self,
        part: HourPart,
        question: &RowQuestion,
        live: Option<&dyn Live>,
        found: &mut HourRows,
    ) -> Result<(), HistoryError> {
        if let Some(rows) = live.and_then(|live| live.rolled_up(part, question)) {
            found.rows.extend(rows);
            return Ok(());
        }
        let hour = part.hour.span();
        let span = match question.step {
            Step::Epoch => Span {
                start: hour.start.max(question.span.start),
                end: hour.end.min(question.span.end),
            },
            _ => hour,
        };
        if span.start > span.end {
            return Ok(());
        }
        let segment = question.segment.as_ref();
        let wanted = OpenWanted { segment, span, ..OpenWanted::all(part.hour) };
        let mut scan = self.folders.open.scan(part, &wanted, Depth::Payloads)?;
        let mut sums = RollUps::new(question.step);
        while let Some(rows) = scan.next_rows() {
            match question.step {
                Step::Epoch => found.rows.extend(rows.into_iter().map(|row| asked(row, question))),
                _ => rows.iter().for_each(|row| sums.add(row)),
            }
        }
        found.rows.extend(sums.rows());
        found.problems.extend(scan.problems());
        Ok(())
    }
}

/// A row as it is asked for. Histograms are most of it.
fn asked(mut row: Row, question: &RowQuestion) -> Row {
    if let Some(delay) = row.delay.as_mut().filter(|_| !question.histograms) {
        delay.histogram = None;
    }
    row
}
