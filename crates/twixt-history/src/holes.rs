//! Rows for what is not there: a row that is missing would be taken for a quiet network.

use std::collections::{BTreeMap, BTreeSet};

use twixt_model::{Scope, Span};

use crate::row::{Row, SeriesKey, scope_kind};
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

/// Rows for the parts of an hour that rows of a series do not cover. `expected` says from when to
/// when there should be any; runs of holes are one row.
pub(crate) fn holes(
    rows: &[Row],
    hour: Hour,
    step: Step,
    expected: &BTreeMap<SeriesKey, Span>,
    why: Hole,
) -> Vec<Row> {
    let mut covered: BTreeMap<&SeriesKey, Vec<Span>> = BTreeMap::new();
    for row in rows {
        covered.entry(&row.series).or_default().push(row.span());
    }
    let mut found = Vec::new();
    for (series, span) in expected {
        let start_ns = span.start.as_nanos().max(hour.span().start.as_nanos());
        let end_ns = span.end.as_nanos().min(hour.span().end.as_nanos());
        let mut spans = covered.remove(series).unwrap_or_default();
        spans.sort_unstable_by_key(|span| span.start);
        let mut next_ns = start_ns;
        let end = Span::at(twixt_model::Timestamp::from_nanos(end_ns.saturating_add(1)));
        for span in spans.into_iter().chain([end]) {
            let until_ns = span.start.as_nanos().min(end.start.as_nanos());
            found.extend(hole(series, step, next_ns, until_ns, why));
            next_ns = next_ns.max(span.end.as_nanos().saturating_add(1));
        }
    }
    found
}

/// Epochs that a minute or an hour should have, and of which nothing was stored, are gaps of it:
/// what it says rests on fewer epochs than it has, which must be seen.
pub(crate) fn note_missing(rows: &mut [Row], expected: &BTreeMap<SeriesKey, Span>, why: Hole) {
    // One in each epoch of which something is known; flows come and go.
    let all = scope_kind(&Scope::All);
    let of_all = |row: &&mut Row| row.scope_kind == all && !row.is_gap() && row.step != Step::Epoch;
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

/// Takes epochs that were estimated late out of the gaps that were stored before.
pub(crate) fn close_gaps(rows: &mut Vec<Row>) {
    let mut late: BTreeMap<SeriesKey, BTreeSet<i64>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.late_epochs > 0) {
        late.entry(row.series.clone()).or_default().extend(row.epoch);
    }
    if late.is_empty() {
        return;
    }
    *rows = std::mem::take(rows)
        .into_iter()
        .flat_map(|row| match late.get(&row.series) {
            Some(late) if row.is_gap() => left_of(&row, late),
            _ => vec![row],
        })
        .collect();
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

    #[track_caller]
    fn check(there: &[i64], step: Step, expected: Span, found: &[(i64, u64)]) {
        let rows: Vec<Row> = there.iter().map(|&number| row("a", "b", number)).collect();
        let rows = if step == Step::Epoch { rows } else { rolled_up(&rows, step) };
        let hour = Hour::of(Timestamp::from_nanos(START_NS));
        let expected = BTreeMap::from([(series("a", "b"), expected)]);
        let holes = holes(&rows, hour, step, &expected, Hole::NothingStored);
        let seen: Vec<(i64, u64)> =
            holes.iter().map(|hole| ((hole.start_ns - START_NS) / SECOND_NS, hole.gaps)).collect();
        assert_eq!(seen, found);
        assert!(holes.iter().all(|hole| hole.is_gap() && hole.reason.is_some()));
    }

    /// Of a gap of ten epochs from 3 on, when these were estimated late.
    #[track_caller]
    fn check_closed(late: &[i64], left: &[(i64, u64)]) {
        let gap = Row::of_gap(series("a", "b"), epoch_of(3), span(3, 12), 10, "why".to_owned());
        let late = late.iter().map(|&number| Row { late_epochs: 1, ..row("a", "b", number) });
        let mut rows: Vec<Row> = late.chain([gap]).collect();
        close_gaps(&mut rows);
        let found: Vec<(i64, u64)> = rows
            .iter()
            .filter(|row| row.is_gap())
            .map(|row| ((row.start_ns - START_NS) / SECOND_NS, row.gaps))
            .collect();
        assert_eq!(found, left);
        for row in rows.iter().filter(|row| row.is_gap()) {
            let number = (row.start_ns - START_NS) / SECOND_NS;
            assert_eq!(row.epoch, Some(epoch_of(number)));
            assert_eq!(row.span(), span(number, number + row.gaps as i64 - 1));
        }
    }

    fn epoch_of(number: i64) -> i64 {
        START_NS / SECOND_NS + number
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
        let found = |why| holes(&[], hour, Step::Minute, &expected, why);
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
    fn what_is_not_covered_is_a_hole() {
        check(&[0, 1, 2, 3], Step::Epoch, span(0, 3), &[]);
        check(&[0, 3], Step::Epoch, span(0, 5), &[(1, 2), (4, 2)]);
        check(&[], Step::Epoch, span(0, 99_999), &[(0, 3_600)]);
        check(&[2, 130], Step::Minute, span(0, 200), &[(60, 60), (180, 21)]);
        check(&[], Step::Hour, span(0, 99_999), &[(0, 3_600)]);
    }
}
