//! `/v1/flows`: the epochs of an interval of time, paired again, flow by flow.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::documents::FlowsDocument;
use super::parameters::{Asked, FlowParameters};
use super::problem::Problem;
use super::{Api, ErrorDocument};
use crate::flows::FlowsError;

/// The flows with the largest delay, deviation or loss.
#[utoipa::path(
    get,
    path = "/v1/flows",
    params(FlowParameters),
    responses(
        (status = 200, description = "The answer", body = FlowsDocument),
        (
            status = 400,
            description = "Invalid request, or too many epochs to pair",
            body = ErrorDocument
        ),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
        (status = 503, description = "Too many requests are waiting", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn flows(
    State(api): State<Arc<Api>>,
    Asked(parameters): Asked<FlowParameters>,
) -> Result<Json<FlowsDocument>, Problem> {
    let (asked, selection) = parameters.question(api.estimates.clock.now())?;
    let (log, history) = (api.epochs.clone(), Arc::clone(&api.estimates.history));
    let about = asked.clone();
    let compare = move || crate::flows::flows(&log, |question| history.answer(question), &about);
    let answer = api.compare(compare).await?.map_err(|error| match error {
        FlowsError::TooManyEpochs | FlowsError::TooManyBytes => {
            Problem::Question(error.to_string())
        }
        error => Problem::Failed(api.hidden(&error.to_string())),
    })?;
    let mut document = FlowsDocument::of(&asked, answer, selection);
    for problem in &mut document.completeness.problems {
        *problem = api.hidden(problem);
    }
    Ok(Json(document))
}
