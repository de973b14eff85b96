//! What is known of single points: round trips, reordering and large flows.

mod flow;
mod reordering;
mod round_trip;

pub use flow::{HeavyDocument, HeavyFlowDocument};
pub use reordering::{PrefixDocument, ReorderingDocument};
pub use round_trip::{RoundTripDocument, RoundTripsDocument};

use serde::{Deserialize, Serialize};
use twixt_history::{Row, RowAnswer, Unreadable};
use utoipa::ToSchema;

use super::{CompletenessDocument, MomentRange};

/// Why an answer has no totals.
const TOO_MANY_ROWS: &str =
    "there are more rows than one answer sums up: request a shorter time, or a longer step";

/// What a point observed in all in an interval of time, or that nothing is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ObservedDocument {
    /// Domain within which point names are unique.
    pub domain: String,
    /// The point.
    pub point: String,
    /// Class of traffic; empty without classes.
    pub class: String,
    /// The algorithm.
    pub algorithm: String,
    /// Start, by the clock of the point, nanoseconds since 1970.
    pub start_ns: i64,
    /// End.
    pub end_ns: i64,
    /// Epochs in which it measured, or parts of one after a restart of the agent; 0 for a gap.
    pub epochs: u64,
    /// Epochs that are not recorded.
    pub gaps: u64,
    /// Packets observed.
    pub packets: Option<u64>,
    /// Packets that the kernel dropped, of all classes.
    pub dropped: Option<u64>,
    /// Packets observed after their epoch was sealed.
    pub late: Option<u64>,
    /// Why something is not recorded; null if everything is.
    pub reason: Option<String>,
}

impl From<&Row> for ObservedDocument {
    fn from(row: &Row) -> Self {
        Self {
            domain: row.series.domain.clone(),
            point: row.series.upstream.clone(),
            class: row.series.class.clone(),
            algorithm: row.series.algorithm.clone(),
            start_ns: row.start_ns,
            end_ns: row.end_ns,
            epochs: row.epochs,
            gaps: row.gaps,
            packets: row.packets,
            dropped: row.missed_upstream.dropped,
            late: row.missed_upstream.late,
            reason: row.reason.clone(),
        }
    }
}

/// The rows of an answer by what they say.
struct Sorted<'a> {
    observed: Vec<ObservedDocument>,
    /// Of kinds, prefixes and flows.
    parts: Vec<&'a Row>,
    /// All rows, each of a scope, summed up; `None` if the answer does not have all of them.
    totals: Option<Vec<Row>>,
    completeness: CompletenessDocument,
}

impl<'a> Sorted<'a> {
    fn new(answer: &'a RowAnswer, show: impl Fn(&Unreadable) -> String) -> Self {
        let (all, parts): (Vec<&Row>, Vec<&Row>) =
            answer.rows.iter().partition(|row| row.is_of_all());
        let (epochs, gaps) = answer.point_epochs();
        let known = answer.rows.iter().filter(|row| !row.is_gap());
        Self {
            observed: all.into_iter().map(ObservedDocument::from).collect(),
            parts,
            totals: answer.next.is_none().then(|| twixt_history::totals(known)),
            completeness: CompletenessDocument {
                complete: answer.problems.is_empty() && gaps == 0,
                epochs,
                gaps,
                stored: answer.stored.map(MomentRange::from),
                problems: answer.problems.iter().map(show).collect(),
            },
        }
    }

    /// Why there are no totals, if there are none.
    fn reason(&self) -> Option<String> {
        self.totals.is_none().then(|| TOO_MANY_ROWS.to_owned())
    }
}
