//! `/v1/round-trips`, `/v1/reordering` and `/v1/heavy`: what single points tell.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use twixt_history::{RowAnswer, RowQuestion, Table, Unreadable};

use super::documents::{HeavyDocument, ReorderingDocument, RoundTripsDocument};
use super::estimates::parquet;
use super::parameters::{
    AnswerFormat, Asked, HeavyParameters, ReorderingParameters, RoundTripParameters,
};
use super::problem::Problem;
use super::{Api, ErrorDocument};

/// Round-trip times at a point, over time and in all.
#[utoipa::path(
    get,
    path = "/v1/round-trips",
    params(RoundTripParameters),
    responses(
        (
            status = 200,
            description = "The answer",
            content(
                (RoundTripsDocument = "application/json"),
                (Vec<u8> = "application/vnd.apache.parquet")
            ),
        ),
        (status = 400, description = "Invalid request", body = ErrorDocument),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
        (status = 503, description = "Too many requests are waiting", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn round_trips(
    State(api): State<Arc<Api>>,
    Asked(asked): Asked<RoundTripParameters>,
) -> Result<Response, Problem> {
    let question = asked.question(api.estimates.clock.now())?;
    let above_ns = asked.above_ns;
    api.of_point(Table::RoundTrips, question, asked.format, move |question, answer, show| {
        Json(RoundTripsDocument::of(question, answer, above_ns, show)).into_response()
    })
    .await
}

/// Packets out of order at a point, by the prefix that they came from.
#[utoipa::path(
    get,
    path = "/v1/reordering",
    params(ReorderingParameters),
    responses(
        (
            status = 200,
            description = "The answer",
            content(
                (ReorderingDocument = "application/json"),
                (Vec<u8> = "application/vnd.apache.parquet")
            ),
        ),
        (status = 400, description = "Invalid request", body = ErrorDocument),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
        (status = 503, description = "Too many requests are waiting", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn reordering(
    State(api): State<Arc<Api>>,
    Asked(asked): Asked<ReorderingParameters>,
) -> Result<Response, Problem> {
    let question = asked.question(api.estimates.clock.now())?;
    let threshold = asked.threshold()?;
    api.of_point(Table::Reordering, question, asked.format, move |question, answer, show| {
        Json(ReorderingDocument::of(question, answer, threshold, show)).into_response()
    })
    .await
}

/// The largest flows at a point, with bounds on their packets.
#[utoipa::path(
    get,
    path = "/v1/heavy",
    params(HeavyParameters),
    responses(
        (
            status = 200,
            description = "The answer",
            content(
                (HeavyDocument = "application/json"),
                (Vec<u8> = "application/vnd.apache.parquet")
            ),
        ),
        (status = 400, description = "Invalid request", body = ErrorDocument),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
        (status = 503, description = "Too many requests are waiting", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn heavy(
    State(api): State<Arc<Api>>,
    Asked(asked): Asked<HeavyParameters>,
) -> Result<Response, Problem> {
    let question = asked.question(api.estimates.clock.now())?;
    api.of_point(Table::Heavy, question, asked.format, |question, answer, show| {
        Json(HeavyDocument::of(question, answer, show)).into_response()
    })
    .await
}

impl Api {
    /// Answers a question about points, when its turn comes: distributions are merged for it.
    async fn of_point(
        self: &Arc<Self>,
        table: Table,
        question: RowQuestion,
        format: Option<AnswerFormat>,
        document: impl FnOnce(&RowQuestion, &RowAnswer, &dyn Fn(&Unreadable) -> String) -> Response
        + Send
        + 'static,
    ) -> Result<Response, Problem> {
        let api = Arc::clone(self);
        let read = move || {
            let history = api.estimates.table(table);
            let answer = history.answer(&question).map_err(|error| api.failed(&error))?;
            if format == Some(AnswerFormat::Parquet) {
                return parquet(&api, table, &answer);
            }
            let show = |problem: &Unreadable| api.hidden(&problem.to_string());
            Ok(document(&question, &answer, &show))
        };
        self.read(read).await?
    }
}
