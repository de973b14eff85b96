//! `/v1/alerts`: what is checked, how that stands, and what was reported; and the only requests
//! that change something: somebody attends to an alert, or silences it.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use serde::de::DeserializeOwned;
use tracing::info;
use twixt_model::Delay;

use super::documents::{AcknowledgeDocument, AlertRuleDocument, AlertsDocument, SilenceDocument};
use super::parameters::{Asked, NoParameters};
use super::problem::Problem;
use super::{Api, ErrorDocument};
use crate::alerts::{Acknowledgement, AlertBoard, AlertMessage, AlertTarget, MarkError, Silence};

/// Of a request that changes something.
const BODY_BYTES_MAX: usize = 16 << 10;
const NS_PER_SECOND: i64 = 1_000_000_000;
const SILENCE_SECONDS_MAX: u32 = 30 * 86_400;

/// Alerts: rules, how they stand, and what changed since the collector's start.
#[utoipa::path(
    get,
    path = "/v1/alerts",
    responses(
        (status = 200, description = "The answer", body = AlertsDocument),
        (status = 400, description = "This request has no parameters", body = ErrorDocument),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn alerts(
    State(api): State<Arc<Api>>,
    Asked(NoParameters {}): Asked<NoParameters>,
    headers: HeaderMap,
) -> Result<Json<AlertsDocument>, Problem> {
    Ok(Json(AlertsDocument {
        rules: api.alerts.rules().iter().map(AlertRuleDocument::from).collect(),
        standing: api.alerts.standing(),
        changes: api.alerts.changes(),
        may_silence: api.readers.operator(&headers).is_ok(),
    }))
}

/// Somebody attends to an alert, until it is clear, or nobody does.
#[utoipa::path(
    post,
    path = "/v1/alerts/acknowledge",
    request_body = AcknowledgeDocument,
    responses(
        (status = 200, description = "How the alert stands", body = AlertMessage),
        (status = 400, description = "No such alert, or not JSON", body = ErrorDocument),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 403, description = "This token allows to read only", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
        (status = 500, description = "It could not be saved", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn acknowledge(
    State(api): State<Arc<Api>>,
    request: Request,
) -> Result<Json<AlertMessage>, Problem> {
    let by = api.readers.operator(request.headers())?;
    let AcknowledgeDocument { target, acknowledged } = body(request).await?;
    let at_ns = api.estimates.clock.now().as_nanos();
    let acknowledgement = acknowledged.then(|| Acknowledgement { by: by.clone(), at_ns });
    let stands =
        mark(&api, target, move |board, target| board.acknowledge(target, acknowledgement));
    let stands = stands.await?;
    info!(alert = stands.alert, segment = segment(&stands), by, acknowledged, "alert acknowledged");
    Ok(Json(stands))
}

/// An alert sends no messages for a while: its state is still shown and logged.
#[utoipa::path(
    post,
    path = "/v1/alerts/silence",
    request_body = SilenceDocument,
    responses(
        (status = 200, description = "How the alert stands", body = AlertMessage),
        (status = 400, description = "No such alert, too long, or not JSON", body = ErrorDocument),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 403, description = "This token allows to read only", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
        (status = 500, description = "It could not be saved", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn silence(
    State(api): State<Arc<Api>>,
    request: Request,
) -> Result<Json<AlertMessage>, Problem> {
    let by = api.readers.operator(request.headers())?;
    let SilenceDocument { target, seconds } = body(request).await?;
    if seconds > SILENCE_SECONDS_MAX {
        let days = SILENCE_SECONDS_MAX / 86_400;
        return Err(Problem::Question(format!("a silence lasts at most {days} days")));
    }
    let until = api.estimates.clock.now() + Delay::from_nanos(i64::from(seconds) * NS_PER_SECOND);
    let until_ns = until.as_nanos();
    let silence = (seconds > 0).then(|| Silence { by: by.clone(), until_ns });
    let stands = mark(&api, target, move |board, target| board.silence(target, silence)).await?;
    info!(alert = stands.alert, segment = segment(&stands), by, seconds, "alert silenced");
    Ok(Json(stands))
}

/// Marks an alert that is watched, and says how it stands then.
async fn mark(
    api: &Api,
    target: AlertTarget,
    mark: impl FnOnce(&AlertBoard, &AlertTarget) -> Result<(), MarkError> + Send + 'static,
) -> Result<AlertMessage, Problem> {
    let board = api.alerts.clone();
    let marked = api.read(move || {
        if board.standing_of(&target).is_none() {
            return Err(Problem::Question(NOT_WATCHED.to_owned()));
        }
        let marked = mark(&board, &target);
        marked.map_err(|error| Problem::Failed(error.to_string()))?;
        board.standing_of(&target).ok_or_else(|| Problem::Question(NOT_WATCHED.to_owned()))
    });
    marked.await?
}

const NOT_WATCHED: &str = "no alert of this name is watched on this segment, class and algorithm";

/// What a request asks for. Only JSON that calls itself so is read: a form of a foreign page cannot
/// send that.
async fn body<T: DeserializeOwned>(request: Request) -> Result<T, Problem> {
    let declared = request.headers().get(header::CONTENT_TYPE);
    let declared = declared.and_then(|value| value.to_str().ok()).unwrap_or_default();
    if declared.split(';').next().map(str::trim) != Some("application/json") {
        let problem = "send Content-Type: application/json";
        return Err(Problem::Question(problem.to_owned()));
    }
    let bytes = axum::body::to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    let bytes = bytes.map_err(|error| Problem::Question(format!("unreadable body: {error}")))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Problem::Question(format!("not what is expected: {error}")))
}

fn segment(message: &AlertMessage) -> String {
    format!("{}:{}", message.upstream, message.downstream)
}
