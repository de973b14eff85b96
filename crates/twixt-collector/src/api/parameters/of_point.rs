//! What a question about points may say.

use serde::Deserialize;
use twixt_history::{RowQuestion, Step};
use twixt_model::{PointId, RoundTripKind, Scope, Segment, Timestamp};
use utoipa::IntoParams;

use super::{
    ANY_SCOPE, AnswerFormat, HOUR, Problem, ROWS_DEFAULT, StepName, TEXT_MAX, cursor, limit, span,
    text,
};

/// Most rows of an answer: they have distributions, which are merged for it.
const ROWS_MAX: usize = 20_000;

/// Which round trips.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in super::super) struct RoundTripParameters {
    /// Name of the point; omitted: all points.
    #[param(max_length = 1024)]
    point: Option<String>,
    /// Class of traffic; omitted: all.
    #[param(max_length = 1024)]
    class: Option<String>,
    /// Name of the algorithm; omitted: all.
    #[param(max_length = 1024)]
    algorithm: Option<String>,
    /// Kind of round trips, such as `tcp-handshake`; omitted: all.
    #[param(max_length = 1024, example = "tcp-handshake")]
    kind: Option<String>,
    /// Part of the kind, such as `toward-servers`; `*` for all. Omitted: the whole.
    #[param(max_length = 1024)]
    part: Option<String>,
    /// Scope of the rows, such as `all` or a prefix pair; `*` for everything. Omitted: all traffic.
    #[param(max_length = 1024)]
    scope: Option<String>,
    /// Also the share of round trips that took longer than this, with an interval.
    #[param(minimum = 0, example = 50_000_000)]
    pub(in super::super) above_ns: Option<i64>,
    /// Start: RFC 3339 with an offset, or seconds since 1970. Omitted: an hour before the end.
    #[param(max_length = 64, example = "2024-01-31T10:00:00Z")]
    start: Option<String>,
    /// End, inclusive.
    #[param(max_length = 64)]
    end: Option<String>,
    /// Length of the rows; omitted: minutes.
    #[param(inline)]
    step: Option<StepName>,
    /// Maximum number of rows.
    #[param(minimum = 1, maximum = 20_000)]
    limit: Option<usize>,
    /// Where an earlier answer ended: its `next`.
    #[param(max_length = 64)]
    cursor: Option<String>,
    /// Format of the answer; omitted: JSON.
    #[param(inline)]
    pub(in super::super) format: Option<AnswerFormat>,
}

/// Which reordering.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in super::super) struct ReorderingParameters {
    /// Name of the point; omitted: all points.
    #[param(max_length = 1024)]
    point: Option<String>,
    /// Class of traffic; omitted: all.
    #[param(max_length = 1024)]
    class: Option<String>,
    /// Name of the algorithm; omitted: all.
    #[param(max_length = 1024)]
    algorithm: Option<String>,
    /// `all`, a prefix, or `other`; omitted: everything.
    #[param(max_length = 1024, example = "203.0.113.0/24")]
    scope: Option<String>,
    /// Also whether the share out of order is above this one, for certain; between 0 and 1.
    #[param(minimum = 0, maximum = 1)]
    threshold: Option<f64>,
    /// Start: RFC 3339 with an offset, or seconds since 1970. Omitted: an hour before the end.
    #[param(max_length = 64, example = "2024-01-31T10:00:00Z")]
    start: Option<String>,
    /// End, inclusive.
    #[param(max_length = 64)]
    end: Option<String>,
    /// Length of the rows; omitted: minutes.
    #[param(inline)]
    step: Option<StepName>,
    /// Maximum number of rows.
    #[param(minimum = 1, maximum = 20_000)]
    limit: Option<usize>,
    /// Where an earlier answer ended: its `next`.
    #[param(max_length = 64)]
    cursor: Option<String>,
    /// Format of the answer; omitted: JSON.
    #[param(inline)]
    pub(in super::super) format: Option<AnswerFormat>,
}

/// Which flows.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in super::super) struct HeavyParameters {
    /// Name of the point; omitted: all points.
    #[param(max_length = 1024)]
    point: Option<String>,
    /// Class of traffic; omitted: all.
    #[param(max_length = 1024)]
    class: Option<String>,
    /// Name of the algorithm; omitted: all.
    #[param(max_length = 1024)]
    algorithm: Option<String>,
    /// A flow, or `other`; omitted: everything.
    #[param(max_length = 1024, example = "tcp 192.0.2.1:40312 > 198.51.100.9:443")]
    scope: Option<String>,
    /// Start: RFC 3339 with an offset, or seconds since 1970. Omitted: an hour before the end.
    #[param(max_length = 64, example = "2024-01-31T10:00:00Z")]
    start: Option<String>,
    /// End, inclusive.
    #[param(max_length = 64)]
    end: Option<String>,
    /// Length of the rows; omitted: minutes.
    #[param(inline)]
    step: Option<StepName>,
    /// Maximum number of rows.
    #[param(minimum = 1, maximum = 20_000)]
    limit: Option<usize>,
    /// Where an earlier answer ended: its `next`.
    #[param(max_length = 64)]
    cursor: Option<String>,
    /// Format of the answer; omitted: JSON.
    #[param(inline)]
    pub(in super::super) format: Option<AnswerFormat>,
}

impl RoundTripParameters {
    pub(in super::super) fn question(&self, now: Timestamp) -> Result<RowQuestion, Problem> {
        let kind = text("kind", self.kind.as_ref())?;
        if let Some(kind) = &kind {
            let known = kind.parse::<RoundTripKind>();
            known.map_err(|problem| Problem::Question(format!("kind: {problem}")))?;
        }
        if self.above_ns.is_some_and(|above_ns| above_ns < 0) {
            return Err(Problem::Question("above_ns: must not be negative".to_owned()));
        }
        let part = text("part", self.part.as_ref())?.unwrap_or_default();
        let scope = text("scope", self.scope.as_ref())?.unwrap_or_else(|| Scope::All.to_string());
        Ok(RowQuestion {
            class: text("class", self.class.as_ref())?,
            algorithm: text("algorithm", self.algorithm.as_ref())?,
            kind,
            part: Some(part).filter(|part| part != ANY_SCOPE),
            scope: Some(scope).filter(|scope| scope != ANY_SCOPE),
            span: span(self.start.as_ref(), self.end.as_ref(), Some(HOUR), now)?,
            limit: limit(self.limit, ROWS_DEFAULT, ROWS_MAX)?,
            after: cursor(self.cursor.as_ref())?,
            ..of_point(self.point.as_ref(), self.step)?
        })
    }
}

impl ReorderingParameters {
    pub(in super::super) fn question(&self, now: Timestamp) -> Result<RowQuestion, Problem> {
        let scope = text("scope", self.scope.as_ref())?;
        Ok(RowQuestion {
            class: text("class", self.class.as_ref())?,
            algorithm: text("algorithm", self.algorithm.as_ref())?,
            scope: scope.filter(|scope| scope != ANY_SCOPE),
            span: span(self.start.as_ref(), self.end.as_ref(), Some(HOUR), now)?,
            limit: limit(self.limit, ROWS_DEFAULT, ROWS_MAX)?,
            after: cursor(self.cursor.as_ref())?,
            ..of_point(self.point.as_ref(), self.step)?
        })
    }

    pub(in super::super) fn threshold(&self) -> Result<Option<f64>, Problem> {
        match self.threshold {
            Some(threshold) if !(0.0..=1.0).contains(&threshold) => {
                Err(Problem::Question("threshold: must be between 0 and 1".to_owned()))
            }
            threshold => Ok(threshold),
        }
    }
}

impl HeavyParameters {
    pub(in super::super) fn question(&self, now: Timestamp) -> Result<RowQuestion, Problem> {
        let scope = text("scope", self.scope.as_ref())?;
        Ok(RowQuestion {
            class: text("class", self.class.as_ref())?,
            algorithm: text("algorithm", self.algorithm.as_ref())?,
            scope: scope.filter(|scope| scope != ANY_SCOPE),
            span: span(self.start.as_ref(), self.end.as_ref(), Some(HOUR), now)?,
            limit: limit(self.limit, ROWS_DEFAULT, ROWS_MAX)?,
            after: cursor(self.cursor.as_ref())?,
            ..of_point(self.point.as_ref(), self.step)?
        })
    }
}

/// All of a point. The history knows it as both ends of a segment.
fn of_point(point: Option<&String>, step: Option<StepName>) -> Result<RowQuestion, Problem> {
    let is_wrong = |name: &&String| name.is_empty() || name.len() > TEXT_MAX;
    if point.as_ref().is_some_and(is_wrong) {
        return Err(Problem::Question("point: write the name of a point".to_owned()));
    }
    let segment = point.map(|name| {
        let point = || PointId(name.clone());
        Segment { upstream: point(), downstream: point() }
    });
    Ok(RowQuestion {
        segment,
        of_all: true,
        histograms: true,
        ..RowQuestion::all(step.map_or(Step::Minute, Step::from))
    })
}
