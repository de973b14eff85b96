//! Reordering.

use serde::{Deserialize, Serialize};
use twixt_history::{PointSums, Row, RowAnswer, RowQuestion, Unreadable};
use twixt_model::Prefix;
use utoipa::ToSchema;

use super::super::{CompletenessDocument, TimeRange};
use super::{ObservedDocument, Sorted};

/// Reordering of one prefix, or of all, in an interval of time at a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PrefixDocument {
    /// Domain within which point names are unique.
    pub domain: String,
    /// The point.
    pub point: String,
    /// Class of traffic; empty without classes.
    pub class: String,
    /// The algorithm.
    pub algorithm: String,
    /// Scope: `all`, a prefix that packets came from, or `other`.
    pub scope: String,
    /// Start, by the clock of the point, nanoseconds since 1970.
    pub start_ns: i64,
    /// End.
    pub end_ns: i64,
    /// Epochs in which packets of it were judged.
    pub epochs: u64,
    /// Packets with data that were judged.
    pub packets: u64,
    /// Packets that others overtook.
    pub out_of_order: u64,
    /// Packets that came late because they were sent again.
    pub retransmitted: u64,
    /// Packets that came late, and nothing tells why.
    pub undecided: u64,
    /// Copies of packets; not judged.
    pub duplicates: u64,
    /// The share of packets that was out of order for certain; null without packets.
    pub fraction: Option<f64>,
    /// The share that would have been if all undecided packets were overtaken.
    pub fraction_max: Option<f64>,
    /// How far packets were overtaken on average, in packets; null where the algorithm cannot tell.
    pub extent_mean: Option<f64>,
    /// At most.
    pub extent_max: Option<u64>,
    /// `above`, `below` or `unclear`: the share beside `threshold` of the request; null if that has
    /// none.
    pub verdict: Option<String>,
    /// Why the verdict is unclear; null if it is not.
    pub reason: Option<String>,
}

/// Reordering over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReorderingDocument {
    /// The requested time.
    pub range: TimeRange,
    /// Length of the rows.
    pub step: String,
    /// What is missing.
    pub completeness: CompletenessDocument,
    /// The share that verdicts compare with; null if none was requested.
    pub threshold: Option<f64>,
    /// What the points observed in all, and gaps, in order of time.
    pub observed: Vec<ObservedDocument>,
    /// Reordering of all traffic and by prefix, in order of time.
    pub prefixes: Vec<PrefixDocument>,
    /// All of the time together, those with most packets out of order first.
    pub total: Vec<PrefixDocument>,
    /// Why there is no total; null if there is.
    pub reason: Option<String>,
    /// Where to continue, if there are more rows.
    pub next: Option<String>,
}

impl ReorderingDocument {
    /// Of an answer; `show` makes a problem a text.
    #[must_use]
    pub fn of(
        question: &RowQuestion,
        answer: &RowAnswer,
        threshold: Option<f64>,
        show: impl Fn(&Unreadable) -> String,
    ) -> Self {
        let sorted = Sorted::new(answer, show);
        let is_asked = |row: &&Row| question.scope.as_ref().is_none_or(|scope| *scope == row.scope);
        let document = |row: &Row| PrefixDocument::of(row, threshold);
        let mut total: Vec<PrefixDocument> =
            sorted.totals.iter().flatten().filter(is_asked).filter_map(document).collect();
        total.sort_by(|one, other| {
            let order = |of: &PrefixDocument| (of.scope == "all", of.out_of_order, of.packets);
            order(other).cmp(&order(one)).then_with(|| one.scope.cmp(&other.scope))
        });
        Self {
            range: question.span.into(),
            step: question.step.name().to_owned(),
            threshold,
            reason: sorted.reason(),
            prefixes: answer.rows.iter().filter(is_asked).filter_map(document).collect(),
            total,
            observed: sorted.observed,
            completeness: sorted.completeness,
            next: answer.next.map(|next| next.to_string()),
        }
    }
}

impl PrefixDocument {
    /// `None` of rows that are not of reordering.
    #[must_use]
    pub fn of(row: &Row, threshold: Option<f64>) -> Option<Self> {
        let sums = row.point.as_ref().and_then(PointSums::reordering)?;
        // Verdicts rest on counts alone.
        let nowhere = Prefix::of(std::net::Ipv4Addr::UNSPECIFIED.into(), 0);
        let estimate = sums.estimate(nowhere);
        let unclear = threshold.and_then(|threshold| estimate.reason(threshold));
        Some(Self {
            domain: row.series.domain.clone(),
            point: row.series.upstream.clone(),
            class: row.series.class.clone(),
            algorithm: row.series.algorithm.clone(),
            scope: row.scope.clone(),
            start_ns: row.start_ns,
            end_ns: row.end_ns,
            epochs: row.epochs,
            packets: sums.packets,
            out_of_order: sums.out_of_order,
            retransmitted: sums.retransmitted,
            undecided: sums.undecided,
            duplicates: sums.duplicates,
            fraction: estimate.fraction(),
            fraction_max: estimate.fraction_max(),
            extent_mean: sums.extent_mean(),
            extent_max: sums.extent_max,
            verdict: threshold.map(|threshold| estimate.verdict(threshold).name().to_owned()),
            reason: unclear.map(str::to_owned).or_else(|| row.reason.clone()),
        })
    }
}
