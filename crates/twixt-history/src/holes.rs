//! Rows for what is not there: a row that is missing would be taken for a quiet network.

use std::collections::{BTreeMap, BTreeSet};

use twixt_model::Span;

use crate::row::{Row, SeriesKey};
use crate::step::{Hour, Step};

/// Why a hole is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hole {
    /// Nothing was stored: the collector did not run, or received nothing.
    NothingStored,
    /// Minutes and hours are kept, epochs no longer.
    NoLongerKept,
    /// A file that might have it cannot be read.
    Unreadable,
}

impl Hole {
    const fn reason(self) -> &'static str {
        match self {
            Self::NothingStored => "no estimate is stored",
            Self::NoLongerKept => "epochs of this time are no longer kept: request minutes",
            Self::Unreadable => "stored data cannot be read",
        }
    }
}

/// What rows of each series cover, as runs without a gap between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Covered {
    /// The last moment of each run by its first.
    runs: BTreeMap<SeriesKey, BTreeMap<i64, i64>>,
}

impl Covered {
    pub(crate) fn add(&mut self, row: &Row) {
        let runs = match self.runs.get_mut(&row.series) {
            Some(runs) => runs,
            None => self.runs.entry(row.series.clone()).or_default(),
        };
        let (mut start_ns, mut end_ns) = (row.start_ns, row.end_ns);
        // Runs that begin at or before the moment behind it, from the last to the first that touches it.
        while let Some((&first_ns, &last_ns)) = runs.range(..=end_ns.saturating_add(1)).next_back()
            && last_ns.saturating_add(1) >= start_ns
        {
            if first_ns <= start_ns && end_ns <= last_ns {
                return;
            }
            runs.remove(&first_ns);
            (start_ns, end_ns) = (start_ns.min(first_ns), end_ns.max(last_ns));
        }
        runs.insert(start_ns, end_ns);
    }
}

/// Rows for the parts of an hour that rows of a series do not cover. `expected` says from when to
/// when there should be any; runs of holes are one row.
pub(crate) fn holes(
    mut covered: Covered,
    hour: Hour,
    step: Step,
    expected: &BTreeMap<SeriesKey, Span>,
    why: Hole,
) -> Vec<Row> {
    let mut found = Vec::new();
    for (series, span) in expected {
        let start_ns = span.start.as_nanos().max(hour.span().start.as_nanos());
        let end_ns = span.end.as_nanos().min(hour.span().end.as_nanos());
        let beyond_ns = end_ns.saturating_add(1);
        let runs = covered.runs.remove(series).unwrap_or_default();
        let mut next_ns = start_ns;
        for (first_ns, last_ns) in runs.into_iter().chain([(beyond_ns, beyond_ns)]) {
            found.extend(hole(series, step, next_ns, first_ns.min(beyond_ns), why));
            next_ns = next_ns.max(last_ns.saturating_add(1));
        }
    }
    found
}

/// Epochs that a minute or an hour should have, and of which nothing was stored, are gaps of it:
/// what it says rests on fewer epochs than it has, which must be seen.
pub(crate) fn note_missing(rows: &mut [Row], expected: &BTreeMap<SeriesKey, Span>, why: Hole) {
    // One in each epoch of which something is known; flows come and go.
    let of_all = |row: &&mut Row| row.is_of_all() && !row.is_gap() && row.step != Step::Epoch;
    for row in rows.iter_mut().filter(of_all) {
        let Some(span) = expected.get(&row.series) else { continue };
        let epoch_ns = row.series.epoch_ns.max(1);
        let from_ns = row.start_ns.max(span.start.as_nanos());
        let until_ns = row.end_ns.min(span.end.as_nanos());
        // Epochs count where they start.
        let before = from_ns.saturating_sub(1).div_euclid(epoch_ns);
        let epochs = until_ns.div_euclid(epoch_ns).saturating_sub(before).max(0) as u64;
        let missing = epochs.saturating_sub(row.epochs.saturating_add(row.gaps));
        if missing > 0 {
            row.gaps = row.gaps.saturating_add(missing);
            let reason = || format!("{missing} of {epochs} epochs: {}", why.reason());
            row.reason.get_or_insert_with(reason);
        }
    }
}

/// What is left of a gap without some epochs, in runs.
pub(crate) fn left_of(gap: &Row, known: &BTreeSet<i64>) -> Vec<Row> {
    let Some(first) = gap.epoch else { return vec![gap.clone()] };
    let beyond = first.saturating_add_unsigned(gap.gaps);
    let mut left = Vec::new();
    let mut next = first;
    for end in known.range(first..beyond).copied().chain([beyond]) {
        if next < end {
            left.push(run_of(gap, next - first, end - next));
        }
        next = end.saturating_add(1);
    }
    left
}

/// A part of a gap that begins so many epochs after it.
fn run_of(gap: &Row, skipped: i64, epochs: i64) -> Row {
    let epoch_ns = gap.series.epoch_ns;
    let start_ns = gap.start_ns.saturating_add(skipped.saturating_mul(epoch_ns));
    let end_ns = start_ns.saturating_add(epochs.saturating_mul(epoch_ns) - 1);
    Row {
        epoch: gap.epoch.map(|first| first + skipped),
        gaps: epochs as u64,
        start_ns,
        end_ns: end_ns.min(gap.end_ns),
        ..gap.clone()
    }
}

/// A hole, if a whole interval begins in it, or may have.
fn hole(series: &SeriesKey, step: Step, from_ns: i64, until_ns: i64, why: Hole) -> Option<Row> {
    let epoch_ns = series.epoch_ns.max(1);
    let length_ns = step.length_ns().unwrap_or(epoch_ns).max(epoch_ns);
    let next_start = |moment_ns: i64, length_ns: i64| {
        moment_ns.saturating_add(length_ns - 1).div_euclid(length_ns).saturating_mul(length_ns)
    };
    // What cannot be read may have been any part of it.
    let start_ns = match why {
        Hole::Unreadable => from_ns,
        _ => next_start(from_ns, length_ns),
    };
    if start_ns >= until_ns {
        return None;
    }
    let first = next_start(start_ns, epoch_ns);
    let epochs = (until_ns - 1 - first).div_euclid(epoch_ns) + 1;
    let span = Span {
        start: twixt_model::Timestamp::from_nanos(start_ns),
        end: twixt_model::Timestamp::from_nanos(until_ns - 1),
    };
    let gap = Row::of_gap(
        series.clone(),
        first.div_euclid(epoch_ns),
        span,
        epochs.max(1) as u64,
        why.reason().to_owned(),
    );
    Some(Row { step, ..gap })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollup::rolled_up;
    use crate::testing::{SECOND_NS, START_NS, row, series};
    use twixt_model::Timestamp;

    fn span(first: i64, last: i64) -> Span {
        let at = |number: i64| Timestamp::from_nanos(START_NS + number * SECOND_NS);
        Span { start: at(first), end: Timestamp::from_nanos(at(last + 1).as_nanos() - 1) }
    }

    fn covered(rows: &[Row]) -> Covered {
        let mut covered = Covered::default();
        rows.iter().for_each(|row| covered.add(row));
        covered
    }

    #[track_caller]
    fn check(there: &[i64], step: Step, expected: Span, found: &[(i64, u64)]) {
        let rows: Vec<Row> = there.iter().map(|&number| row("a", "b", number)).collect();
        let rows = if step == Step::Epoch { rows } else { rolled_up(&rows, step) };
        let hour = Hour::of(Timestamp::from_nanos(START_NS));
        let expected = BTreeMap::from([(series("a", "b"), expected)]);
        let holes = holes(covered(&rows), hour, step, &expected, Hole::NothingStored);
        let seen: Vec<(i64, u64)> =
            holes.iter().map(|hole| ((hole.start_ns - START_NS) / SECOND_NS, hole.gaps)).collect();
        assert_eq!(seen, found);
        assert!(holes.iter().all(|hole| hole.is_gap() && hole.reason.is_some()));
    }

    fn epoch_of(number: i64) -> i64 {
        START_NS / SECOND_NS + number
    }

    #[test]
    fn minutes_do_not_count_what_was_estimated_late_among_their_gaps() {
        let known = (0..30).map(|number| row("a", "b", number));
        let gap = Row::of_gap(series("a", "b"), epoch_of(30), span(30, 59), 30, "why".to_owned());
        let late = (30..50).map(|number| Row { late_epochs: 1, ..row("a", "b", number) });
        let rows: Vec<Row> = known.chain([gap]).chain(late).collect();
        let mut minutes = rolled_up(&rows, Step::Minute);
        minutes.iter_mut().for_each(Row::close_late_gaps);
        let [minute] = minutes.as_slice() else { panic!("{minutes:?}") };
        assert_eq!((minute.epochs, minute.gaps, minute.late_epochs), (50, 10, 20));
    }

    /// What is reported as missing from the minutes of some epochs.
    #[track_caller]
    fn check_minutes(there: &[i64], expected: Span, gaps: &[u64]) {
        let rows: Vec<Row> = there.iter().map(|&number| row("a", "b", number)).collect();
        let mut minutes = rolled_up(&rows, Step::Minute);
        let expected = BTreeMap::from([(series("a", "b"), expected)]);
        note_missing(&mut minutes, &expected, Hole::NothingStored);
        assert_eq!(minutes.iter().map(|row| row.gaps).collect::<Vec<_>>(), gaps);
        assert!(minutes.iter().all(|row| (row.gaps > 0) == row.reason.is_some()));
    }

    #[test]
    fn what_cannot_be_read_is_missed_even_if_it_was_no_whole_minute() {
        let hour = Hour::of(Timestamp::from_nanos(START_NS));
        let expected = BTreeMap::from([(series("a", "b"), span(10, 30))]);
        let found = |why| holes(Covered::default(), hour, Step::Minute, &expected, why);
        let unreadable = found(Hole::Unreadable);
        assert_eq!((unreadable.len(), unreadable[0].gaps), (1, 21));
        assert_eq!(unreadable[0].start_ns, START_NS + 10 * SECOND_NS);
        assert!(found(Hole::NothingStored).is_empty(), "a minute that was not asked for");
    }

    #[test]
    fn minutes_say_what_they_do_not_rest_on() {
        let all: Vec<i64> = (0..60).collect();
        check_minutes(&all, span(0, 59), &[0]);
        check_minutes(&all[..59], span(0, 59), &[1]);
        check_minutes(&[3, 7], span(3, 7), &[3]);
        check_minutes(&[3, 63], span(0, 100), &[59, 40]);
        check_minutes(&[3], span(50, 100), &[9]);
        // What the end of a question cuts off is not missed.
        check_minutes(&all, span(0, 9), &[0]);
    }

    #[test]
    fn rows_in_any_order_cover_the_same() {
        check(&[3, 1, 0, 1, 3], Step::Epoch, span(0, 5), &[(2, 1), (4, 2)]);
        check(&[4, 0, 2, 3, 1], Step::Epoch, span(0, 5), &[(5, 1)]);
    }

    #[test]
    fn what_is_not_covered_is_a_hole() {
        check(&[0, 1, 2, 3], Step::Epoch, span(0, 3), &[]);
        check(&[0, 3], Step::Epoch, span(0, 5), &[(1, 2), (4, 2)]);
        check(&[], Step::Epoch, span(0, 99_999), &[(0, 3_600)]);
        check(&[2, 130], Step::Minute, span(0, 200), &[(60, 60), (180, 21)]);
        check(&[], Step::Hour, span(0, 99_999), &[(0, 3_600)]);
    }
}
