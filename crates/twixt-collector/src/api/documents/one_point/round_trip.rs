//! Round trips.

use serde::{Deserialize, Serialize};
use twixt_history::{PointSums, RoundTripSums, Row, RowAnswer, RowQuestion, Unreadable};
use twixt_model::{Percentile, RoundTripTimes};
use utoipa::ToSchema;

use super::super::{CompletenessDocument, TimeRange};
use super::{ObservedDocument, Sorted};

/// Round trips of one kind, scope and interval of time at a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RoundTripDocument {
    /// Domain within which point names are unique.
    pub domain: String,
    /// The point.
    pub point: String,
    /// Class of traffic; empty without classes.
    pub class: String,
    /// The algorithm.
    pub algorithm: String,
    /// Kind of round trips, such as `tcp-handshake`.
    pub kind: String,
    /// Part of the kind; empty for the whole.
    pub part: String,
    /// Scope: `all`, a flow, a prefix pair, …
    pub scope: String,
    /// Start, by the clock of the point, nanoseconds since 1970.
    pub start_ns: i64,
    /// End.
    pub end_ns: i64,
    /// Epochs in which the kind occurred.
    pub epochs: u64,
    /// Packets that could begin a round trip; of all traffic only.
    pub requests: Option<u64>,
    /// Packets that could end one; of all traffic only.
    pub responses: Option<u64>,
    /// Packets that could begin or end one, if it were known which; of all traffic only.
    pub ambiguous: Option<u64>,
    /// Round trips that were measured.
    pub matched: u64,
    /// Round trips that there were, as estimated from those.
    pub weighted: f64,
    /// Mean round-trip time.
    pub mean_ns: Option<i64>,
    /// Standard deviation.
    pub stddev_ns: Option<i64>,
    /// Lower end of the 95 % interval of the mean; null if the error is unknown.
    pub ci95_low_ns: Option<i64>,
    /// Upper end.
    pub ci95_high_ns: Option<i64>,
    /// Shortest that was measured.
    pub min_ns: Option<i64>,
    /// Median.
    pub p50_ns: Option<i64>,
    /// Lower end of its 95 % interval; null if the error is unknown.
    pub p50_low_ns: Option<i64>,
    /// Upper end.
    pub p50_high_ns: Option<i64>,
    /// 90th percentile.
    pub p90_ns: Option<i64>,
    /// Lower end of its 95 % interval.
    pub p90_low_ns: Option<i64>,
    /// Upper end.
    pub p90_high_ns: Option<i64>,
    /// 95th percentile.
    pub p95_ns: Option<i64>,
    /// Lower end of its 95 % interval.
    pub p95_low_ns: Option<i64>,
    /// Upper end.
    pub p95_high_ns: Option<i64>,
    /// 99th percentile.
    pub p99_ns: Option<i64>,
    /// Lower end of its 95 % interval.
    pub p99_low_ns: Option<i64>,
    /// Upper end.
    pub p99_high_ns: Option<i64>,
    /// 99.9th percentile.
    pub p999_ns: Option<i64>,
    /// Lower end of its 95 % interval.
    pub p999_low_ns: Option<i64>,
    /// Upper end.
    pub p999_high_ns: Option<i64>,
    /// Longest that was measured.
    pub max_ns: Option<i64>,
    /// The longest round trip of which enough could have been measured; null if there is no limit.
    pub horizon_ns: Option<i64>,
    /// Flows whose state gave way to that of others; null where that does not happen.
    pub forgotten_flows: Option<u64>,
    /// The share that took longer than `above_ns` of the request; null if that was not requested, or is
    /// unknown.
    pub share_above: Option<f64>,
    /// Lower end of its 95 % interval.
    pub share_above_low: Option<f64>,
    /// Upper end.
    pub share_above_high: Option<f64>,
    /// Why something is unknown; null if everything is known.
    pub reason: Option<String>,
}

/// Round trips over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RoundTripsDocument {
    /// The requested time.
    pub range: TimeRange,
    /// Length of the rows.
    pub step: String,
    /// What is missing.
    pub completeness: CompletenessDocument,
    /// The limit of `share_above`; null if none was requested.
    pub above_ns: Option<i64>,
    /// What the points observed in all, and gaps, in order of time: where it has a row and no kind
    /// has one, there were no round trips.
    pub observed: Vec<ObservedDocument>,
    /// Round trips by kind, part and scope, in order of time.
    pub round_trips: Vec<RoundTripDocument>,
    /// All of the time together, by kind, part and scope; from merged distributions.
    pub total: Vec<RoundTripDocument>,
    /// Why there is no total; null if there is.
    pub reason: Option<String>,
    /// Where to continue, if there are more rows.
    pub next: Option<String>,
}

impl RoundTripsDocument {
    /// Of an answer; `show` makes a problem a text.
    #[must_use]
    pub fn of(
        question: &RowQuestion,
        answer: &RowAnswer,
        above_ns: Option<i64>,
        show: impl Fn(&Unreadable) -> String,
    ) -> Self {
        let sorted = Sorted::new(answer, show);
        let document = |row: &Row| RoundTripDocument::of(row, above_ns);
        Self {
            range: question.span.into(),
            step: question.step.name().to_owned(),
            above_ns,
            reason: sorted.reason(),
            round_trips: sorted.parts.iter().filter_map(|row| document(row)).collect(),
            total: sorted.totals.iter().flatten().filter_map(document).collect(),
            observed: sorted.observed,
            completeness: sorted.completeness,
            next: answer.next.map(|next| next.to_string()),
        }
    }
}

impl RoundTripDocument {
    /// `None` of rows that are not of round trips.
    #[must_use]
    pub fn of(row: &Row, above_ns: Option<i64>) -> Option<Self> {
        let sums = row.point.as_ref().and_then(PointSums::round_trips)?;
        let share = above_ns.and_then(|above_ns| sums.share_above(above_ns));
        let document = Self {
            domain: row.series.domain.clone(),
            point: row.series.upstream.clone(),
            class: row.series.class.clone(),
            algorithm: row.series.algorithm.clone(),
            kind: row.kind.clone(),
            part: row.part.clone(),
            scope: row.scope.clone(),
            start_ns: row.start_ns,
            end_ns: row.end_ns,
            epochs: row.epochs,
            requests: sums.requests,
            responses: sums.responses,
            ambiguous: sums.ambiguous,
            matched: sums.matched,
            weighted: sums.weighted,
            horizon_ns: sums.horizon_ns,
            forgotten_flows: sums.forgotten_flows,
            share_above: share.map(|share| share.share),
            share_above_low: share.map(|share| share.low),
            share_above_high: share.map(|share| share.high),
            reason: reason(row, sums),
            ..Self::default()
        };
        Some(match &sums.times {
            Some(times) => document.with(times),
            None => document,
        })
    }

    fn with(self, times: &RoundTripTimes) -> Self {
        let half_ns = times.half_width_ns;
        let round = |ns: f64| ns.round() as i64;
        let at = |place: usize| times.percentiles.get(place);
        let value = |place: usize| at(place).map(|found| found.time_ns);
        let known = |place: usize| at(place).filter(|_| half_ns.is_some());
        let low = |place: usize| known(place).map(|found: &Percentile| found.low_ns);
        let high = |place: usize| known(place).map(|found: &Percentile| found.high_ns);
        Self {
            mean_ns: Some(round(times.mean_ns)),
            stddev_ns: Some(round(times.deviation_ns)),
            ci95_low_ns: half_ns.map(|half_ns| round(times.mean_ns - half_ns)),
            ci95_high_ns: half_ns.map(|half_ns| round(times.mean_ns + half_ns)),
            min_ns: Some(times.min_ns),
            max_ns: Some(times.max_ns),
            p50_ns: value(0),
            p50_low_ns: low(0),
            p50_high_ns: high(0),
            p90_ns: value(1),
            p90_low_ns: low(1),
            p90_high_ns: high(1),
            p95_ns: value(2),
            p95_low_ns: low(2),
            p95_high_ns: high(2),
            p99_ns: value(3),
            p99_low_ns: low(3),
            p99_high_ns: high(3),
            p999_ns: value(4),
            p999_low_ns: low(4),
            p999_high_ns: high(4),
            ..self
        }
    }
}

fn reason(row: &Row, sums: &RoundTripSums) -> Option<String> {
    let text = match () {
        () if row.reason.is_some() => return row.reason.clone(),
        () if sums.matched == 0 => "no request was matched with a response",
        () if sums.is_biased() => {
            "no interval: a plain table loses long round trips, and does not know how many"
        }
        () if sums.times.is_none() => "a part of the time has no distribution",
        () => return None,
    };
    Some(text.to_owned())
}
