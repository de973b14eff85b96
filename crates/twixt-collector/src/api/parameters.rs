//! What a question may say, as it stands in a URL.

mod of_point;

pub(super) use of_point::{HeavyParameters, ReorderingParameters, RoundTripParameters};

use std::time::Duration;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use twixt_history::{Cursor, ROWS_MAX, RowQuestion, Step, parse_moment};
use twixt_model::{PointId, Scope, Segment, Span, Timestamp};
use utoipa::{IntoParams, ToSchema};

use super::documents::{FlowOrder, FlowSelection};
use super::problem::Problem;
use crate::bundle::BundleAsked;
use crate::flows::FlowsAsked;

/// Rows of an answer by default: a week of minutes of one segment.
const ROWS_DEFAULT: usize = 10_080;
/// Flows of an answer by default.
const FLOWS_DEFAULT: usize = 20;
/// Most flows of an answer.
const FLOWS_MAX: usize = 1_000;
/// Epochs of which evidence is shown by default.
const EPOCHS_DEFAULT: usize = 100;
/// Most epochs of which evidence is shown.
pub(super) const EPOCHS_MAX: usize = 1_000;
/// Most columns of a heat map.
const COLUMNS_MAX: usize = 10_000;
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
/// Longest text of a parameter.
const TEXT_MAX: usize = 1_024;
/// Longest text of a moment.
const MOMENT_MAX: usize = 64;
/// Every scope.
const ANY_SCOPE: &str = "*";

/// A query string; what is wrong with it is answered like everything else.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = Query::<T>::from_request_parts(parts, state).await;
        read.map(|Query(asked)| Self(asked)).map_err(|error| {
            let text = error.body_text();
            // The parameter and its problem say it all.
            let problem = text.strip_prefix("Failed to deserialize query string: ");
            Problem::Question(problem.unwrap_or(&text).to_owned())
        })
    }
}

/// Length of the rows.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum StepName {
    /// As long as the epochs of the agents.
    Epoch,
    /// A minute.
    Minute,
    /// An hour.
    Hour,
}

/// Format of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum AnswerFormat {
    /// One document.
    #[default]
    Json,
    /// A table with the columns of sealed hours. What is missing is in headers.
    Parquet,
}

/// Which estimates.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EstimateParameters {
    /// Names of the two points, `UPSTREAM:DOWNSTREAM`; omitted: all segments.
    #[param(max_length = 1024, pattern = "^[^:]+:.+$")]
    segment: Option<String>,
    /// Class of traffic; omitted: all.
    #[param(max_length = 1024)]
    class: Option<String>,
    /// Scope of the estimates, such as `all` or a flow; `*` for everything. Omitted: all traffic.
    #[param(max_length = 1024)]
    scope: Option<String>,
    /// Name of the algorithm; omitted: all.
    #[param(max_length = 1024)]
    algorithm: Option<String>,
    /// Start: RFC 3339 with an offset, or seconds since 1970.
    #[param(max_length = 64, example = "2024-01-31T10:00:00Z")]
    start: Option<String>,
    /// End, inclusive.
    #[param(max_length = 64, example = "2024-01-31T11:00:00+01:00")]
    end: Option<String>,
    /// Length of the rows; omitted: minutes.
    #[param(inline)]
    step: Option<StepName>,
    /// Maximum number of rows.
    #[param(minimum = 1, maximum = 100_000)]
    limit: Option<usize>,
    /// Where an earlier answer ended: its `next`.
    #[param(max_length = 64)]
    cursor: Option<String>,
    /// Format of the answer; omitted: JSON.
    #[param(inline)]
    pub(super) format: Option<AnswerFormat>,
}

/// Which gaps.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct GapParameters {
    /// Names of the two points, `UPSTREAM:DOWNSTREAM`; omitted: all segments.
    #[param(max_length = 1024, pattern = "^[^:]+:.+$")]
    segment: Option<String>,
    /// Class of traffic; omitted: all.
    #[param(max_length = 1024)]
    class: Option<String>,
    /// Start: RFC 3339 with an offset, or seconds since 1970. Omitted: a day before the end.
    #[param(max_length = 64, example = "2024-01-31T10:00:00Z")]
    start: Option<String>,
    /// End, inclusive.
    #[param(max_length = 64)]
    end: Option<String>,
    /// Maximum number of gaps.
    #[param(minimum = 1, maximum = 100_000)]
    limit: Option<usize>,
    /// Where an earlier answer ended: its `next`.
    #[param(max_length = 64)]
    cursor: Option<String>,
}

/// Which flows.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct FlowParameters {
    /// Names of the two points, `UPSTREAM:DOWNSTREAM`.
    #[param(max_length = 1024, pattern = "^[^:]+:.+$")]
    segment: String,
    /// Class of traffic; omitted: all.
    #[param(max_length = 1024)]
    class: Option<String>,
    /// Name of the algorithm; omitted: all that separate flows.
    #[param(max_length = 1024)]
    algorithm: Option<String>,
    /// Sort order of flows, largest first; omitted: delay.
    #[param(inline)]
    order: Option<FlowOrder>,
    /// Start: RFC 3339 with an offset, or seconds since 1970. Omitted: a minute before the end.
    /// Epochs are paired again, at most 600 of them.
    #[param(max_length = 64, example = "2024-01-31T10:00:00Z")]
    start: Option<String>,
    /// End, inclusive.
    #[param(max_length = 64)]
    end: Option<String>,
    /// Only flows with at least this many packets upstream; omitted: all.
    #[param(minimum = 1)]
    min_packets: Option<u64>,
    /// Maximum number of flows.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<usize>,
}

/// Which flow.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct OneFlowParameters {
    /// Names of the two points, `UPSTREAM:DOWNSTREAM`.
    #[param(max_length = 1024, pattern = "^[^:]+:.+$")]
    segment: String,
    /// The flow, as `/v1/flows` names it.
    #[param(max_length = 1024, example = "tcp 10.0.0.1:40312 > 10.0.1.9:443")]
    scope: String,
    /// Class of traffic; omitted: all.
    #[param(max_length = 1024)]
    class: Option<String>,
    /// Name of the algorithm; omitted: all that separate flows.
    #[param(max_length = 1024)]
    algorithm: Option<String>,
    /// Start: RFC 3339 with an offset, or seconds since 1970. Omitted: a minute before the end.
    /// Epochs are paired again, at most 600 of them.
    #[param(max_length = 64, example = "2024-01-31T10:00:00Z")]
    start: Option<String>,
    /// End, inclusive.
    #[param(max_length = 64)]
    end: Option<String>,
}

/// Which delays.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HistogramParameters {
    /// Names of the two points, `UPSTREAM:DOWNSTREAM`.
    #[param(max_length = 1024, pattern = "^[^:]+:.+$")]
    segment: String,
    /// Class of traffic; omitted: all.
    #[param(max_length = 1024)]
    class: Option<String>,
    /// Scope of the delays; omitted: all traffic.
    #[param(max_length = 1024)]
    scope: Option<String>,
    /// Name of the algorithm; omitted: all.
    #[param(max_length = 1024)]
    algorithm: Option<String>,
    /// Start: RFC 3339 with an offset, or seconds since 1970. Omitted: an hour before the end.
    #[param(max_length = 64, example = "2024-01-31T10:00:00Z")]
    start: Option<String>,
    /// End, inclusive.
    #[param(max_length = 64)]
    end: Option<String>,
    /// Length of the rows that are summed up: those that start within the time. Omitted: minutes.
    #[param(inline)]
    step: Option<StepName>,
}

/// Which estimates are summed up.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TotalParameters {
    /// Names of the two points, `UPSTREAM:DOWNSTREAM`; omitted: all segments.
    #[param(max_length = 1024, pattern = "^[^:]+:.+$")]
    segment: Option<String>,
    /// Class of traffic; omitted: all.
    #[param(max_length = 1024)]
    class: Option<String>,
    /// Name of the algorithm; omitted: all.
    #[param(max_length = 1024)]
    algorithm: Option<String>,
    /// Start: RFC 3339 with an offset, or seconds since 1970. Omitted: an hour before the end.
    #[param(max_length = 64, example = "2024-01-31T10:00:00Z")]
    start: Option<String>,
    /// End, inclusive.
    #[param(max_length = 64)]
    end: Option<String>,
    /// Length of the rows that are summed up: those that start within the time. Omitted: minutes.
    #[param(inline)]
    step: Option<StepName>,
}

/// Which delays, over time.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HeatmapParameters {
    /// Names of the two points, `UPSTREAM:DOWNSTREAM`.
    #[param(max_length = 1024, pattern = "^[^:]+:.+$")]
    segment: String,
    /// Class of traffic; omitted: all.
    #[param(max_length = 1024)]
    class: Option<String>,
    /// Name of the algorithm; omitted: all.
    #[param(max_length = 1024)]
    algorithm: Option<String>,
    /// Start: RFC 3339 with an offset, or seconds since 1970. Omitted: an hour before the end.
    #[param(max_length = 64, example = "2024-01-31T10:00:00Z")]
    start: Option<String>,
    /// End, inclusive.
    #[param(max_length = 64)]
    end: Option<String>,
    /// Length of the columns; omitted: minutes.
    #[param(inline)]
    step: Option<StepName>,
    /// Maximum number of columns, gaps included.
    #[param(minimum = 1, maximum = 10_000)]
    limit: Option<usize>,
    /// Where an earlier answer ended: its `next`.
    #[param(max_length = 64)]
    cursor: Option<String>,
}

/// Which epochs.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EvidenceParameters {
    /// Names of the two points, `UPSTREAM:DOWNSTREAM`.
    #[param(max_length = 1024, pattern = "^[^:]+:.+$")]
    segment: String,
    /// Start: RFC 3339 with an offset, or seconds since 1970. Omitted: a minute before the end.
    #[param(max_length = 64, example = "2024-01-31T10:00:00Z")]
    start: Option<String>,
    /// End, inclusive.
    #[param(max_length = 64)]
    end: Option<String>,
    /// Maximum number of epochs of each point.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<usize>,
}

/// What a bundle is of.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct BundleParameters {
    /// Names of the two points, `UPSTREAM:DOWNSTREAM`.
    #[param(max_length = 1024, pattern = "^[^:]+:.+$")]
    segment: String,
    /// Start: RFC 3339 with an offset, or seconds since 1970. Omitted: an hour before the end. A bundle
    /// covers 31 days at most.
    #[param(max_length = 64, example = "2024-01-31T10:00:00Z")]
    start: Option<String>,
    /// End, inclusive.
    #[param(max_length = 64)]
    end: Option<String>,
}

/// No parameters.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParameters {}

/// A segment and an interval of time.
#[derive(Clone, Debug)]
pub(super) struct SegmentRange {
    pub(super) segment: Segment,
    pub(super) span: Span,
    pub(super) limit: usize,
}

impl EstimateParameters {
    pub(super) fn question(&self) -> Result<RowQuestion, Problem> {
        let scope = text("scope", self.scope.as_ref())?.unwrap_or_else(|| Scope::All.to_string());
        Ok(RowQuestion {
            segment: self.segment.as_deref().map(segment).transpose()?,
            class: text("class", self.class.as_ref())?,
            algorithm: text("algorithm", self.algorithm.as_ref())?,
            scope: Some(scope).filter(|scope| scope != ANY_SCOPE),
            span: span(self.start.as_ref(), self.end.as_ref(), None, Timestamp::MAX)?,
            limit: limit(self.limit, ROWS_DEFAULT, ROWS_MAX)?,
            after: cursor(self.cursor.as_ref())?,
            histograms: self.format == Some(AnswerFormat::Parquet),
            ..RowQuestion::all(self.step.map_or(Step::Minute, Step::from))
        })
    }
}

impl GapParameters {
    pub(super) fn question(&self, now: Timestamp) -> Result<RowQuestion, Problem> {
        const DAY: Duration = Duration::from_secs(24 * 3_600);
        Ok(RowQuestion {
            segment: self.segment.as_deref().map(segment).transpose()?,
            class: text("class", self.class.as_ref())?,
            span: span(self.start.as_ref(), self.end.as_ref(), Some(DAY), now)?,
            limit: limit(self.limit, ROWS_DEFAULT, ROWS_MAX)?,
            after: cursor(self.cursor.as_ref())?,
            only_gaps: true,
            ..RowQuestion::all(Step::Epoch)
        })
    }
}

impl FlowParameters {
    pub(super) fn question(&self, now: Timestamp) -> Result<(FlowsAsked, FlowSelection), Problem> {
        let asked = FlowsAsked {
            segment: segment(&self.segment)?,
            class: text("class", self.class.as_ref())?,
            algorithm: text("algorithm", self.algorithm.as_ref())?,
            span: span(self.start.as_ref(), self.end.as_ref(), Some(MINUTE), now)?,
            scope: None,
        };
        let selection = FlowSelection {
            order: self.order.unwrap_or_default(),
            min_packets: self.min_packets.unwrap_or(0),
            limit: limit(self.limit, FLOWS_DEFAULT, FLOWS_MAX)?,
        };
        Ok((asked, selection))
    }
}

impl OneFlowParameters {
    pub(super) fn question(&self, now: Timestamp) -> Result<FlowsAsked, Problem> {
        Ok(FlowsAsked {
            segment: segment(&self.segment)?,
            class: text("class", self.class.as_ref())?,
            algorithm: text("algorithm", self.algorithm.as_ref())?,
            span: span(self.start.as_ref(), self.end.as_ref(), Some(MINUTE), now)?,
            scope: text("scope", Some(&self.scope))?,
        })
    }
}

impl HistogramParameters {
    pub(super) fn question(&self, now: Timestamp) -> Result<RowQuestion, Problem> {
        let scope = text("scope", self.scope.as_ref())?.unwrap_or_else(|| Scope::All.to_string());
        Ok(RowQuestion {
            segment: Some(segment(&self.segment)?),
            class: text("class", self.class.as_ref())?,
            algorithm: text("algorithm", self.algorithm.as_ref())?,
            scope: Some(scope),
            span: span(self.start.as_ref(), self.end.as_ref(), Some(HOUR), now)?,
            histograms: true,
            ..RowQuestion::all(self.step.map_or(Step::Minute, Step::from))
        })
    }
}

impl TotalParameters {
    pub(super) fn question(&self, now: Timestamp) -> Result<RowQuestion, Problem> {
        Ok(RowQuestion {
            segment: self.segment.as_deref().map(segment).transpose()?,
            class: text("class", self.class.as_ref())?,
            algorithm: text("algorithm", self.algorithm.as_ref())?,
            scope: Some(Scope::All.to_string()),
            span: span(self.start.as_ref(), self.end.as_ref(), Some(HOUR), now)?,
            histograms: true,
            ..RowQuestion::all(self.step.map_or(Step::Minute, Step::from))
        })
    }
}

impl HeatmapParameters {
    pub(super) fn question(&self, now: Timestamp) -> Result<RowQuestion, Problem> {
        Ok(RowQuestion {
            segment: Some(segment(&self.segment)?),
            class: text("class", self.class.as_ref())?,
            algorithm: text("algorithm", self.algorithm.as_ref())?,
            scope: Some(Scope::All.to_string()),
            span: span(self.start.as_ref(), self.end.as_ref(), Some(HOUR), now)?,
            histograms: true,
            limit: limit(self.limit, COLUMNS_MAX, COLUMNS_MAX)?,
            after: cursor(self.cursor.as_ref())?,
            ..RowQuestion::all(self.step.map_or(Step::Minute, Step::from))
        })
    }
}

impl EvidenceParameters {
    pub(super) fn segment_range(&self, now: Timestamp) -> Result<SegmentRange, Problem> {
        Ok(SegmentRange {
            segment: segment(&self.segment)?,
            span: span(self.start.as_ref(), self.end.as_ref(), Some(MINUTE), now)?,
            limit: limit(self.limit, EPOCHS_DEFAULT, EPOCHS_MAX)?,
        })
    }
}

impl BundleParameters {
    pub(super) fn question(&self, now: Timestamp) -> Result<BundleAsked, Problem> {
        Ok(BundleAsked {
            segment: segment(&self.segment)?,
            span: span(self.start.as_ref(), self.end.as_ref(), Some(HOUR), now)?,
        })
    }
}

impl From<StepName> for Step {
    fn from(name: StepName) -> Self {
        match name {
            StepName::Epoch => Self::Epoch,
            StepName::Minute => Self::Minute,
            StepName::Hour => Self::Hour,
        }
    }
}

fn segment(written: &str) -> Result<Segment, Problem> {
    let wrong = || Problem::Question("segment: write UPSTREAM:DOWNSTREAM".to_owned());
    let (upstream, downstream) = written.split_once(':').ok_or_else(wrong)?;
    if upstream.is_empty() || downstream.is_empty() || written.len() > TEXT_MAX {
        return Err(wrong());
    }
    let point = |name: &str| PointId(name.to_owned());
    Ok(Segment { upstream: point(upstream), downstream: point(downstream) })
}

fn text(name: &str, written: Option<&String>) -> Result<Option<String>, Problem> {
    match written {
        Some(text) if text.chars().count() > TEXT_MAX => {
            Err(Problem::Question(format!("{name}: more than {TEXT_MAX} characters")))
        }
        text => Ok(text.cloned()),
    }
}

/// From `start` to `end`; without `start`, this long before `end`.
fn span(
    start: Option<&String>,
    end: Option<&String>,
    length: Option<Duration>,
    now: Timestamp,
) -> Result<Span, Problem> {
    let moment = |name: &str, written: &String| match written.chars().count() > MOMENT_MAX {
        true => Err(Problem::Question(format!("{name}: more than {MOMENT_MAX} characters"))),
        false => {
            parse_moment(written).map_err(|error| Problem::Question(format!("{name}: {error}")))
        }
    };
    let end = end.map_or(Ok(now), |written| moment("end", written))?;
    let start = match (start, length) {
        (Some(written), _) => moment("start", written)?,
        (None, Some(length)) => {
            let length_ns = i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
            Timestamp::from_nanos(end.as_nanos().saturating_sub(length_ns))
        }
        (None, None) => Timestamp::MIN,
    };
    match start <= end {
        true => Ok(Span { start, end }),
        false => Err(Problem::Question("start is after end".to_owned())),
    }
}

fn limit(written: Option<usize>, default: usize, most: usize) -> Result<usize, Problem> {
    match written.unwrap_or(default) {
        limit if (1..=most).contains(&limit) => Ok(limit),
        _ => Err(Problem::Question(format!("limit: must be from 1 to {most}"))),
    }
}

fn cursor(written: Option<&String>) -> Result<Option<Cursor>, Problem> {
    let parsed = written.map(|written| written.parse()).transpose();
    parsed.map_err(|error: twixt_history::ParseCursorError| {
        Problem::Question(format!("cursor: {error}"))
    })
}
