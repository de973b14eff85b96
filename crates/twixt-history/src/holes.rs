//! Rows for what is not there: a row that is missing would be taken for a quiet network.

use std::collections::BTreeMap;

use twixt_model::Span;

use crate::row::{Row, SeriesKey};
use crate::step::{Hour, Step};

/// Why a hole is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hole {
    /// Nothing was stored: the collector did not run, or was not told.
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
            Self::NoLongerKept => "epochs of this time are no longer kept: ask for minutes",
            Self::Unreadable => "what was stored cannot be read",
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

/// A hole, if a whole stretch begins in it.
fn hole(series: &SeriesKey, step: Step, from_ns: i64, until_ns: i64, why: Hole) -> Option<Row> {
    let epoch_ns = series.epoch_ns.max(1);
    let length_ns = step.length_ns().unwrap_or(epoch_ns).max(epoch_ns);
    let next_start = |moment_ns: i64, length_ns: i64| {
        moment_ns.saturating_add(length_ns - 1).div_euclid(length_ns).saturating_mul(length_ns)
    };
    let start_ns = next_start(from_ns, length_ns);
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

    #[test]
    fn what_is_not_covered_is_a_hole() {
        check(&[0, 1, 2, 3], Step::Epoch, span(0, 3), &[]);
        check(&[0, 3], Step::Epoch, span(0, 5), &[(1, 2), (4, 2)]);
        check(&[], Step::Epoch, span(0, 99_999), &[(0, 3_600)]);
        check(&[2, 130], Step::Minute, span(0, 200), &[(60, 60), (180, 21)]);
        check(&[], Step::Hour, span(0, 99_999), &[(0, 3_600)]);
    }
}
