//! `/v1/estimates` and `/v1/gaps`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use twixt_history::{Row, RowAnswer, Table, to_parquet};

use super::documents::{
    CompletenessDocument, EstimateDocument, EstimatesDocument, GapDocument, GapsDocument,
};
use super::parameters::{AnswerFormat, Asked, EstimateParameters, GapParameters};
use super::problem::Problem;
use super::{Api, ErrorDocument};

/// The media type of Parquet.
const PARQUET: &str = "application/vnd.apache.parquet";
/// Whether nothing is missing from a table.
pub const COMPLETE_HEADER: &str = "twixt-complete";
/// Where to go on, if a table is not all.
pub const NEXT_HEADER: &str = "twixt-next";

/// Estimates over time.
#[utoipa::path(
    get,
    path = "/v1/estimates",
    params(EstimateParameters),
    responses(
        (
            status = 200,
            description = "The answer",
            content(
                (EstimatesDocument = "application/json"),
                (Vec<u8> = "application/vnd.apache.parquet")
            ),
            headers(
                ("twixt-complete" = bool, description = "Parquet: whether nothing is missing"),
                ("twixt-next" = String, description = "Parquet: where to continue, if there are more rows")
            )
        ),
        (status = 400, description = "Invalid request", body = ErrorDocument),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
        (status = 503, description = "Too many requests are waiting", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn estimates(
    State(api): State<Arc<Api>>,
    Asked(asked): Asked<EstimateParameters>,
) -> Result<Response, Problem> {
    let question = asked.question()?;
    let (range, step) = (question.span.into(), question.step.name().to_owned());
    let answer = api.ask(question).await?;
    if asked.format == Some(AnswerFormat::Parquet) {
        return parquet(&api, Table::Estimates, &answer);
    }
    let document = EstimatesDocument {
        range,
        step,
        completeness: api.completeness(&answer),
        estimates: answer.rows.iter().map(EstimateDocument::from).collect(),
        next: answer.next.map(|next| next.to_string()),
    };
    Ok(Json(document).into_response())
}

/// The rows as a table.
pub(super) fn parquet(api: &Api, table: Table, answer: &RowAnswer) -> Result<Response, Problem> {
    let bytes = to_parquet(table, &answer.rows).map_err(|error| api.failed(&error))?;
    let mut response = ([(header::CONTENT_TYPE, PARQUET)], bytes).into_response();
    let headers = response.headers_mut();
    let is_complete = if answer.is_complete() { "true" } else { "false" };
    headers.insert(COMPLETE_HEADER, HeaderValue::from_static(is_complete));
    if let Some(Ok(next)) = answer.next.map(|next| HeaderValue::from_str(&next.to_string())) {
        headers.insert(NEXT_HEADER, next);
    }
    Ok(response)
}

/// Intervals without data.
#[utoipa::path(
    get,
    path = "/v1/gaps",
    params(GapParameters),
    responses(
        (status = 200, description = "The answer", body = GapsDocument),
        (status = 400, description = "Invalid request", body = ErrorDocument),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
        (status = 503, description = "Too many requests are waiting", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn gaps(
    State(api): State<Arc<Api>>,
    Asked(asked): Asked<GapParameters>,
) -> Result<Json<GapsDocument>, Problem> {
    let question = asked.question(api.estimates.clock.now())?;
    let range = question.span.into();
    let answer = api.ask(question).await?;
    Ok(Json(GapsDocument {
        range,
        completeness: api.completeness(&answer),
        gaps: answer.rows.iter().filter(|row| Row::is_gap(row)).map(GapDocument::from).collect(),
        next: answer.next.map(|next| next.to_string()),
    }))
}

impl Api {
    pub(super) fn completeness(&self, answer: &RowAnswer) -> CompletenessDocument {
        CompletenessDocument::of(answer, |problem| self.hidden(&problem.to_string()))
    }
}
