//! `/v1/alerts`: what is checked, how that stands, and what was reported.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::documents::{AlertRuleDocument, AlertsDocument};
use super::parameters::{Asked, NoParameters};
use super::problem::Problem;
use super::{Api, ErrorDocument};

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
) -> Result<Json<AlertsDocument>, Problem> {
    Ok(Json(AlertsDocument {
        rules: api.alerts.rules().iter().map(AlertRuleDocument::from).collect(),
        standing: api.alerts.standing(),
        changes: api.alerts.changes(),
    }))
}
