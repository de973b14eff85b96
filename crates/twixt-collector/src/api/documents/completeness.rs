//! What time an answer is about, and what is missing from it.

use serde::{Deserialize, Serialize};
use twixt_history::{RowAnswer, moment_text};
use twixt_model::{Span, Timestamp};
use utoipa::ToSchema;

/// An interval of time, UTC. A bound that was not given is null.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimeRange {
    /// Start, RFC 3339.
    pub start: Option<String>,
    /// End, RFC 3339.
    pub end: Option<String>,
    /// Start, nanoseconds since 1970.
    pub start_ns: Option<i64>,
    /// End, nanoseconds since 1970.
    pub end_ns: Option<i64>,
}

/// An interval of time, UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MomentRange {
    /// Start, RFC 3339.
    pub start: String,
    /// End, RFC 3339.
    pub end: String,
    /// Start, nanoseconds since 1970.
    pub start_ns: i64,
    /// End, nanoseconds since 1970.
    pub end_ns: i64,
}

/// What is missing from an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CompletenessDocument {
    /// Whether nothing is missing from the rows shown.
    pub complete: bool,
    /// Epochs that the rows shown rest on.
    pub epochs: u64,
    /// Epochs without data; a row says why.
    pub gaps: u64,
    /// The time range for which any matching data are stored; null if none.
    pub stored: Option<MomentRange>,
    /// Files that cannot be used.
    pub problems: Vec<String>,
}

impl From<Span> for TimeRange {
    fn from(span: Span) -> Self {
        let start = Some(span.start).filter(|start| *start > Timestamp::MIN);
        let end = Some(span.end).filter(|end| *end < Timestamp::MAX);
        Self {
            start: start.map(moment_text),
            end: end.map(moment_text),
            start_ns: start.map(Timestamp::as_nanos),
            end_ns: end.map(Timestamp::as_nanos),
        }
    }
}

impl From<Span> for MomentRange {
    fn from(span: Span) -> Self {
        Self {
            start: moment_text(span.start),
            end: moment_text(span.end),
            start_ns: span.start.as_nanos(),
            end_ns: span.end.as_nanos(),
        }
    }
}

impl MomentRange {
    /// The interval of time, by its numbers.
    pub(crate) const fn span(&self) -> Span {
        let (start, end) = (self.start_ns, self.end_ns);
        Span { start: Timestamp::from_nanos(start), end: Timestamp::from_nanos(end) }
    }
}

impl CompletenessDocument {
    /// Of an answer; `show` makes a problem a text.
    #[must_use]
    pub fn of(answer: &RowAnswer, show: impl Fn(&twixt_history::Unreadable) -> String) -> Self {
        let (epochs, gaps) = answer.epochs();
        Self {
            complete: answer.is_complete(),
            epochs,
            gaps,
            stored: answer.stored.map(MomentRange::from),
            problems: answer.problems.iter().map(show).collect(),
        }
    }
}
