//! Large flows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use twixt_history::{HeavySums, PointSums, Row, RowAnswer, RowQuestion, SeriesKey, Unreadable};
use utoipa::ToSchema;

use super::super::{CompletenessDocument, TimeRange};
use super::{ObservedDocument, Sorted};

/// A large flow in an interval of time at a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HeavyFlowDocument {
    /// Domain within which point names are unique.
    pub domain: String,
    /// The point.
    pub point: String,
    /// Class of traffic; empty without classes.
    pub class: String,
    /// The algorithm.
    pub algorithm: String,
    /// The flow, or `other`: the smaller ones together.
    pub scope: String,
    /// Start, by the clock of the point, nanoseconds since 1970.
    pub start_ns: i64,
    /// End.
    pub end_ns: i64,
    /// Epochs that list it.
    pub epochs: u64,
    /// Packets in these epochs, as counted or estimated.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets in all of the time, at least.
    pub packets_min: u64,
    /// Packets in all of the time, at most: also in epochs that do not list it. Of a flow only.
    pub packets_max: Option<u64>,
    /// Why something is unknown; null if everything is known.
    pub reason: Option<String>,
}

/// Large flows over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HeavyDocument {
    /// The requested time.
    pub range: TimeRange,
    /// Length of the rows.
    pub step: String,
    /// What is missing.
    pub completeness: CompletenessDocument,
    /// What the points observed in all, and gaps, in order of time.
    pub observed: Vec<ObservedDocument>,
    /// Flows, in order of time.
    pub flows: Vec<HeavyFlowDocument>,
    /// All of the time together, the largest first.
    pub total: Vec<HeavyFlowDocument>,
    /// Why there is no total; null if there is.
    pub reason: Option<String>,
    /// Where to continue, if there are more rows.
    pub next: Option<String>,
}

impl HeavyDocument {
    /// Of an answer; `show` makes a problem a text.
    #[must_use]
    pub fn of(
        question: &RowQuestion,
        answer: &RowAnswer,
        show: impl Fn(&Unreadable) -> String,
    ) -> Self {
        let sorted = Sorted::new(answer, show);
        let all = AllFlows::of(&answer.rows, |row| row.start_ns);
        let totals = sorted.totals.as_deref().unwrap_or_default();
        let of_total = AllFlows::of(totals, |_| 0);
        let mut total: Vec<HeavyFlowDocument> =
            totals.iter().filter_map(|row| flow(row, of_total.get(row, 0))).collect();
        total.sort_by(|one, other| {
            let order = |of: &HeavyFlowDocument| (of.scope != "other", of.packets);
            order(other).cmp(&order(one)).then_with(|| one.scope.cmp(&other.scope))
        });
        Self {
            range: question.span.into(),
            step: question.step.name().to_owned(),
            reason: sorted.reason(),
            flows: sorted
                .parts
                .iter()
                .filter_map(|row| flow(row, all.get(row, row.start_ns)))
                .collect(),
            total,
            observed: sorted.observed,
            completeness: sorted.completeness,
            next: answer.next.map(|next| next.to_string()),
        }
    }
}

/// The rows of all flows together, by series and time.
struct AllFlows<'a>(BTreeMap<(&'a SeriesKey, i64), HeavySums>);

impl<'a> AllFlows<'a> {
    fn of(rows: &'a [Row], time: impl Fn(&Row) -> i64) -> Self {
        let mut all: BTreeMap<_, HeavySums> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.is_of_all()) {
            if let Some(sums) = row.point.as_ref().and_then(PointSums::heavy) {
                // An epoch may have parts of two runs of an agent.
                all.entry((&row.series, time(row))).or_default().add(sums);
            }
        }
        Self(all)
    }

    fn get(&self, row: &'a Row, time: i64) -> Option<&HeavySums> {
        self.0.get(&(&row.series, time))
    }
}

/// `None` of rows that are not of a flow, or of the others together.
fn flow(row: &Row, all: Option<&HeavySums>) -> Option<HeavyFlowDocument> {
    let sums = row.point.as_ref().and_then(PointSums::heavy).filter(|_| !row.is_of_all())?;
    let range = all.filter(|_| row.scope_kind == "flow").map(|all| sums.range(all));
    Some(HeavyFlowDocument {
        domain: row.series.domain.clone(),
        point: row.series.upstream.clone(),
        class: row.series.class.clone(),
        algorithm: row.series.algorithm.clone(),
        scope: row.scope.clone(),
        start_ns: row.start_ns,
        end_ns: row.end_ns,
        epochs: row.epochs,
        packets: sums.packets,
        bytes: sums.bytes,
        packets_min: sums.packets_min,
        packets_max: range.map(|range| range.max),
        reason: row.reason.clone(),
    })
}
