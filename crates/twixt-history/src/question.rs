//! What one asks of a history, and what one gets.

use std::fmt;
use std::str::FromStr;

use twixt_model::{Segment, Span, Timestamp};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::Unreadable;
use crate::row::{Row, SeriesKey};
use crate::step::Step;

/// Rows of one answer at most.
pub const ROWS_MAX: usize = 100_000;

/// Which rows are asked for. What is `None` does not matter.
#[derive(Clone, Debug)]
pub struct RowQuestion {
    /// The two points.
    pub segment: Option<Segment>,
    /// Class of traffic.
    pub class: Option<String>,
    /// Name of the algorithm.
    pub algorithm: Option<String>,
    /// What rows are about, as text, such as `all`.
    pub scope: Option<String>,
    /// Kind of what they are about.
    pub scope_kind: Option<String>,
    /// Kind of round trips.
    pub kind: Option<String>,
    /// Part of the kind; empty for the whole.
    pub part: Option<String>,
    /// Whether rows of what one point observed in all are answered whatever is asked: they say
    /// where there was nothing to measure.
    pub of_all: bool,
    /// Rows that start within.
    pub span: Span,
    /// How long rows are.
    pub step: Step,
    /// Whether histograms are needed.
    pub histograms: bool,
    /// Whether only rows are wanted of which nothing is known.
    pub only_gaps: bool,
    /// Rows at most; never more than [`ROWS_MAX`].
    pub limit: usize,
    /// Rows behind this one.
    pub after: Option<Cursor>,
}

impl RowQuestion {
    /// All of all time, in some step.
    #[must_use]
    pub const fn all(step: Step) -> Self {
        Self {
            segment: None,
            class: None,
            algorithm: None,
            scope: None,
            scope_kind: None,
            kind: None,
            part: None,
            of_all: false,
            span: Span { start: Timestamp::MIN, end: Timestamp::MAX },
            step,
            histograms: false,
            only_gaps: false,
            limit: ROWS_MAX,
            after: None,
        }
    }

    /// Whether rows of a series are asked for.
    #[must_use]
    pub fn wants_series(&self, series: &SeriesKey) -> bool {
        self.segment.as_ref().is_none_or(|segment| series.is_of(segment))
            && self.class.as_ref().is_none_or(|class| *class == series.class)
            && self.algorithm.as_ref().is_none_or(|algorithm| *algorithm == series.algorithm)
    }

    /// Whether a row matches. A gap has no scope: gaps are returned
    /// whatever the scope.
    pub(crate) fn wants(&self, row: &Row) -> bool {
        let is_about = |asked: &Option<String>, text: &str| {
            row.is_gap() || asked.as_ref().is_none_or(|asked| asked == text)
        };
        let is_asked = || {
            is_about(&self.scope, &row.scope)
                && is_about(&self.scope_kind, &row.scope_kind)
                && is_about(&self.kind, &row.kind)
                && is_about(&self.part, &row.part)
        };
        self.wants_series(&row.series)
            && (row.is_gap() || !self.only_gaps)
            && self.span.contains(row.span().start)
            && ((self.of_all && row.is_of_all()) || is_asked())
    }
}

/// A place in an answer, between a row and the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub(crate) start_ns: i64,
    pub(crate) identity: u64,
}

impl Cursor {
    /// Behind a row.
    #[must_use]
    pub fn behind(row: &Row) -> Self {
        let Row { series, scope_kind, scope, .. } = row;
        let SeriesKey { upstream, downstream, class, algorithm, domain, epoch_ns } = series;
        let parts = [upstream, downstream, class, algorithm, domain, scope_kind, scope];
        let run = row.run.map(|run| run.to_string()).unwrap_or_default();
        let of_point = [&row.kind, &row.part, &run];
        let mut text = epoch_ns.to_string();
        for part in parts.into_iter().chain(of_point) {
            text += &format!(":{}:{part}", part.len());
        }
        Self { start_ns: row.start_ns, identity: xxh3_64(text.as_bytes()) }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:016x}", self.start_ns, self.identity)
    }
}

/// The text is not a cursor. Use one that an answer gave, as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a valid cursor: use one from an earlier answer")]
pub struct ParseCursorError(String);

impl FromStr for Cursor {
    type Err = ParseCursorError;

    fn from_str(text: &str) -> Result<Self, ParseCursorError> {
        let parsed = || {
            let (start, identity) = text.split_once('.')?;
            let cursor = Self {
                start_ns: start.parse().ok()?,
                identity: u64::from_str_radix(identity, 16).ok()?,
            };
            // One place, one text.
            (cursor.to_string() == text).then_some(cursor)
        };
        parsed().ok_or_else(|| ParseCursorError(text.to_owned()))
    }
}

/// What there is.
#[derive(Clone, Debug, Default)]
pub struct RowAnswer {
    /// In order of time. Where nothing is known, a row says so.
    pub rows: Vec<Row>,
    /// Where to go on, if there is more.
    pub next: Option<Cursor>,
    /// From when to when something is stored of what was asked for, at all.
    pub stored: Option<Span>,
    /// Files that could not be used.
    pub problems: Vec<Unreadable>,
}

impl RowAnswer {
    /// Epochs that the rows rest on, and of which nothing is known.
    #[must_use]
    pub fn epochs(&self) -> (u64, u64) {
        let add = |sum: (u64, u64), row: &Row| {
            (sum.0.saturating_add(row.epochs), sum.1.saturating_add(row.gaps))
        };
        self.rows.iter().fold((0, 0), add)
    }

    /// The same of one point, whose epochs have a row of what was observed in all.
    #[must_use]
    pub fn point_epochs(&self) -> (u64, u64) {
        let add = |sum: (u64, u64), row: &Row| {
            (sum.0.saturating_add(row.epochs), sum.1.saturating_add(row.gaps))
        };
        self.rows.iter().filter(|row| row.is_of_all()).fold((0, 0), add)
    }

    /// Whether nothing is missing from it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.problems.is_empty() && self.epochs().1 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::row;

    #[test]
    fn cursors_are_read_as_they_are_written() {
        let cursor = Cursor::behind(&row("a", "b", 5));
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in
            ["", "5", "5.", "x.0000000000000000", "5.00000000000000000", "5.+000000000000001"]
        {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
    }
}
