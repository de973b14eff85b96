//! The first rows of an hour of epochs, chosen while it is read: an hour may have many more rows than an
//! answer, and than fit into memory.

use std::collections::{BTreeMap, BTreeSet};

use crate::holes::{Covered, left_of};
use crate::question::RowQuestion;
use crate::row::{Row, SeriesKey};

/// The first rows of those that were added, in the order of answers.
#[derive(Debug)]
pub(super) struct FirstRows<'a> {
    question: &'a RowQuestion,
    /// How many are kept, twice as many while they are gathered.
    keep: usize,
    rows: Vec<Row>,
    is_cut: bool,
    covered: Covered,
    /// Epochs that were estimated late: a gap may be stored for them as well.
    late: BTreeMap<SeriesKey, BTreeSet<i64>>,
}

/// What was gathered.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// In no order, without holes.
    pub(super) rows: Vec<Row>,
    /// The last of them, if there are more behind it.
    pub(super) cut: Option<Row>,
    /// What stored rows cover, whether or not they are asked for.
    pub(super) covered: Covered,
}

impl<'a> FirstRows<'a> {
    pub(super) fn new(question: &'a RowQuestion, keep: usize) -> Self {
        Self {
            question,
            keep: keep.max(1),
            rows: Vec::new(),
            is_cut: false,
            covered: Covered::default(),
            late: BTreeMap::new(),
        }
    }

    /// Adds stored rows of any scope.
    pub(super) fn add(&mut self, rows: Vec<Row>) {
        for row in rows {
            if !self.question.wants_series(&row.series) {
                continue;
            }
            self.covered.add(&row);
            if row.late_epochs > 0 {
                self.late.entry(row.series.clone()).or_default().extend(row.epoch);
            }
            if self.may_be_answered(&row) {
                self.rows.push(row);
            }
        }
        if self.rows.len() > self.keep.saturating_mul(2) {
            self.cut();
        }
    }

    /// What was gathered, without the epochs of gaps that were estimated late.
    pub(super) fn finish(mut self) -> Gathered {
        if self.rows.len() > self.keep {
            self.cut();
        }
        let last =
            self.rows.iter().max_by(|one, other| one.answer_order().cmp(&other.answer_order()));
        let cut = last.filter(|_| self.is_cut).cloned();
        let late = self.late;
        let left = self.rows.into_iter().flat_map(|row| match late.get(&row.series) {
            Some(late) if row.is_gap() => left_of(&row, late),
            _ => vec![row],
        });
        let rows = left.filter(|row| self.question.wants(row)).collect();
        Gathered { rows, cut, covered: self.covered }
    }

    /// Whether it is asked for, and is not before the cursor. Of a gap, a later part may be left.
    fn may_be_answered(&self, row: &Row) -> bool {
        let Some(cursor) = self.question.after else {
            return row.is_gap() || self.question.wants(row);
        };
        match row.is_gap() {
            true => row.end_ns >= cursor.start_ns,
            false => row.start_ns >= cursor.start_ns && self.question.wants(row),
        }
    }

    fn cut(&mut self) {
        let by = |one: &Row, other: &Row| one.answer_order().cmp(&other.answer_order());
        self.rows.select_nth_unstable_by(self.keep - 1, by);
        self.rows.truncate(self.keep);
        self.is_cut = true;
    }
}

#[cfg(test)]
mod tests {
    use twixt_model::{Span, Timestamp};

    use super::*;
    use crate::question::Cursor;
    use crate::step::Step;
    use crate::testing::{SECOND_NS, START_NS, row, series};

    fn span(first: i64, last: i64) -> Span {
        let at = |number: i64| Timestamp::from_nanos(START_NS + number * SECOND_NS);
        Span { start: at(first), end: Timestamp::from_nanos(at(last + 1).as_nanos() - 1) }
    }

    fn epoch_of(number: i64) -> i64 {
        START_NS / SECOND_NS + number
    }

    fn gap(first: i64, last: i64) -> Row {
        let epochs = (last - first + 1) as u64;
        Row::of_gap(series("a", "b"), epoch_of(first), span(first, last), epochs, "why".to_owned())
    }

    /// Seconds and gaps of what is gathered of rows, in order.
    fn gathered(rows: Vec<Row>, keep: usize, after: Option<Cursor>) -> (Vec<(i64, u64)>, bool) {
        let question = RowQuestion { after, ..RowQuestion::all(Step::Epoch) };
        let mut first = FirstRows::new(&question, keep);
        rows.into_iter().for_each(|row| first.add(vec![row]));
        let Gathered { rows, cut, .. } = first.finish();
        let mut seen: Vec<(i64, u64)> =
            rows.iter().map(|row| ((row.start_ns - START_NS) / SECOND_NS, row.gaps)).collect();
        seen.sort_unstable();
        (seen, cut.is_some())
    }

    /// Of a gap of ten epochs from 3 on, when these were estimated late.
    #[track_caller]
    fn check_closed(late: &[i64], left: &[(i64, u64)]) {
        let late = late.iter().map(|&number| Row { late_epochs: 1, ..row("a", "b", number) });
        let question = RowQuestion::all(Step::Epoch);
        let mut first = FirstRows::new(&question, usize::MAX);
        first.add(late.chain([gap(3, 12)]).collect());
        let rows: Vec<Row> = first.finish().rows.into_iter().filter(Row::is_gap).collect();
        let found: Vec<(i64, u64)> =
            rows.iter().map(|row| ((row.start_ns - START_NS) / SECOND_NS, row.gaps)).collect();
        assert_eq!(found, left);
        for row in &rows {
            let number = (row.start_ns - START_NS) / SECOND_NS;
            assert_eq!(row.epoch, Some(epoch_of(number)));
            assert_eq!(row.span(), span(number, number + row.gaps as i64 - 1));
        }
    }

    #[test]
    fn what_was_estimated_late_is_no_gap() {
        check_closed(&[], &[(3, 10)]);
        check_closed(&[2, 13], &[(3, 10)]);
        check_closed(&[3, 12], &[(4, 8)]);
        check_closed(&[5, 6, 9], &[(3, 2), (7, 2), (10, 3)]);
        check_closed(&[3, 4, 5, 6, 7, 8, 9, 10, 11, 12], &[]);
    }

    #[test]
    fn the_first_rows_are_kept_in_whatever_order_they_come() {
        let rows = |numbers: &[i64]| -> Vec<Row> {
            numbers.iter().map(|&number| row("a", "b", number)).collect()
        };
        let first = (vec![(0, 0), (1, 0), (2, 0)], true);
        assert_eq!(gathered(rows(&[0, 1, 2, 3, 4, 5, 6, 7]), 3, None), first);
        assert_eq!(gathered(rows(&[7, 6, 5, 4, 3, 2, 1, 0]), 3, None), first);
        assert_eq!(gathered(rows(&[5, 1, 7, 0, 6, 2, 4, 3]), 3, None), first);
        assert_eq!(gathered(rows(&[2, 0, 1]), 3, None), (first.0, false));
    }

    #[test]
    fn behind_a_cursor_the_later_part_of_a_gap_is_kept() {
        let late = Row { late_epochs: 1, ..row("a", "b", 5) };
        let cursor = Some(Cursor::behind(&late));
        let rows = vec![gap(3, 12), late, row("a", "b", 1), gap(0, 0)];
        let (seen, is_cut) = gathered(rows, 9, cursor);
        assert_eq!((seen, is_cut), (vec![(3, 2), (5, 0), (6, 7)], false));
    }
}
