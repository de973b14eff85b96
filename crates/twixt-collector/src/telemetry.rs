//! `/metrics` and `/healthz`, on a listener of their own: the one that agents connect to tells
//! nothing to other machines.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::{prometheus_protobuf, text};
use prometheus_client::registry::Registry;
use twixt_supervise::Supervisor;

use crate::alerts::AlertMetrics;
use crate::budget::BudgetMetrics;
use crate::estimating::EstimatingMetrics;
use crate::history::{HistoryMetrics, Work};
use crate::ingest::IngestMetrics;
use crate::journal::JournalMetrics;
use crate::point_metrics::PointMetrics;
use crate::segments::SegmentMetrics;
use crate::server::ServerMetrics;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROTOBUF: &str =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

/// The counters of all components.
#[derive(Debug)]
pub(crate) struct Telemetry {
    registry: Registry,
    pub(crate) server: ServerMetrics,
    pub(crate) ingest: IngestMetrics,
    pub(crate) budget: BudgetMetrics,
    pub(crate) journal: JournalMetrics,
    pub(crate) estimating: EstimatingMetrics,
    pub(crate) history: HistoryMetrics,
    pub(crate) alerts: AlertMetrics,
}

impl Telemetry {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::default();
        let segments = SegmentMetrics::new(registry.sub_registry_with_prefix("twixt_segment"));
        let points = PointMetrics::new(registry.sub_registry_with_prefix("twixt_point"));
        let own = registry.sub_registry_with_prefix("twixt_collector");
        let server = ServerMetrics::new(own);
        let ingest = IngestMetrics::new(own);
        let budget = BudgetMetrics::new(own);
        let journal = JournalMetrics::new(own);
        let estimating = EstimatingMetrics::new(own, segments, points);
        let history = HistoryMetrics::new(own);
        let alerts = AlertMetrics::new(own);
        Self { registry, server, ingest, budget, journal, estimating, history, alerts }
    }

    /// What can be asked for, also of the threads that this supervisor watches.
    pub(crate) fn router(self, supervisor: Supervisor) -> Router {
        let telemetry = Arc::new(self);
        Router::new()
            .route("/metrics", get(metrics).with_state(Arc::clone(&telemetry)))
            .route("/healthz", get(health).with_state((telemetry, supervisor)))
    }
}

/// As text, or in the one format that has native histograms, for those who ask for it.
async fn metrics(State(telemetry): State<Arc<Telemetry>>, headers: HeaderMap) -> Response {
    let registry = &telemetry.registry;
    let (media_type, body) = match takes_protobuf(&headers) {
        true => (PROTOBUF, prometheus_protobuf::encode_to_vec(registry).ok()),
        false => {
            let mut lines = String::new();
            let encoded = text::encode(&mut lines, registry);
            (OPEN_METRICS, encoded.ok().map(|()| lines.into_bytes()))
        }
    };
    match body {
        Some(body) => ([(header::CONTENT_TYPE, media_type)], body).into_response(),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Only who scrapes native histograms names it, and then prefers it.
fn takes_protobuf(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut accepted = accepted.flat_map(|value| value.split(','));
    accepted.any(|kind| {
        kind.trim_start().starts_with("application/vnd.google.protobuf")
            && kind.contains("proto=io.prometheus.client.MetricFamily")
            && kind.contains("encoding=delimited")
    })
}

/// Healthy if all threads run, and epochs and estimates can be stored and read as far as was tried.
async fn health(State((telemetry, supervisor)): State<(Arc<Telemetry>, Supervisor)>) -> Response {
    let history = &telemetry.history;
    let work = [
        (telemetry.journal.healthy.get() == 1, "cannot store epochs\n"),
        (history.is_healthy(Work::Storing), "cannot store estimates\n"),
        (history.is_healthy(Work::Sealing), "cannot seal hours of estimates\n"),
        (telemetry.estimating.is_readable(), "cannot read stored epochs\n"),
    ];
    let failed = work.iter().filter(|(is_healthy, _)| !is_healthy).map(|(_, problem)| *problem);
    let failure = supervisor.failure().map(|failure| format!("{failure}\n"));
    let problems: String = failed.chain(failure.as_deref()).collect();
    match problems.is_empty() {
        true => (StatusCode::OK, "ok\n").into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, problems).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use tower::ServiceExt;

    use super::*;

    fn status_of(supervisor: &Supervisor) -> StatusCode {
        let router = Telemetry::new().router(supervisor.clone());
        let request = Request::get("/healthz").body(Body::empty()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(router.oneshot(request)).unwrap().status()
    }

    #[test]
    fn health_is_never_green_without_all_threads() {
        let supervisor = Supervisor::new(|| {}, || true);
        assert_eq!(status_of(&supervisor), StatusCode::OK);
        let _ = supervisor.run("estimating", || panic!("a fault"));
        assert_eq!(status_of(&supervisor), StatusCode::SERVICE_UNAVAILABLE);
    }
}
