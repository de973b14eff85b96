//! `/v1/flows` and `/v1/flow`: the epochs of an interval of time, paired again, flow by flow.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::documents::{FlowDocument, FlowsDocument};
use super::parameters::{Asked, FlowParameters, OneFlowParameters};
use super::problem::Problem;
use super::{Api, ErrorDocument};
use crate::flows::{FlowsAnswer, FlowsAsked, FlowsError};

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
    let answer = api.flows(&asked).await?;
    Ok(Json(FlowsDocument::of(&asked, answer, selection)))
}

/// One flow, epoch by epoch.
#[utoipa::path(
    get,
    path = "/v1/flow",
    params(OneFlowParameters),
    responses(
        (status = 200, description = "The answer", body = FlowDocument),
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
pub(super) async fn flow(
    State(api): State<Arc<Api>>,
    Asked(parameters): Asked<OneFlowParameters>,
) -> Result<Json<FlowDocument>, Problem> {
    let asked = parameters.question(api.estimates.clock.now())?;
    let answer = api.flows(&asked).await?;
    Ok(Json(FlowDocument::of(&asked, answer)))
}

impl Api {
    /// Pairs epochs again, when its turn comes.
    async fn flows(&self, asked: &FlowsAsked) -> Result<FlowsAnswer, Problem> {
        let (log, history) = (self.epochs.clone(), Arc::clone(&self.estimates.history));
        let about = asked.clone();
        let compare =
            move || crate::flows::flows(&log, |question| history.answer(question), &about);
        let answer = self.compare(compare).await?;
        let mut answer = answer.map_err(|error| match error {
            FlowsError::TooManyEpochs | FlowsError::TooManyBytes => {
                Problem::Question(error.to_string())
            }
            error => Problem::Failed(self.hidden(&error.to_string())),
        })?;
        for problem in &mut answer.problems {
            *problem = self.hidden(problem);
        }
        Ok(answer)
    }
}
