//! `/metrics` and `/healthz`, on a listener of their own: the one that agents connect to tells
//! nothing to strangers.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::estimating::EstimatingMetrics;
use crate::ingest::IngestMetrics;
use crate::journal::JournalMetrics;
use crate::recording::RecordingMetrics;
use crate::server::ServerMetrics;

const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The counters of all components.
#[derive(Debug)]
pub(crate) struct Telemetry {
    registry: Registry,
    pub(crate) server: ServerMetrics,
    pub(crate) ingest: IngestMetrics,
    pub(crate) journal: JournalMetrics,
    pub(crate) estimating: EstimatingMetrics,
    pub(crate) recording: RecordingMetrics,
}

impl Telemetry {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("twixt_collector");
        let server = ServerMetrics::new(&mut registry);
        let ingest = IngestMetrics::new(&mut registry);
        let journal = JournalMetrics::new(&mut registry);
        let estimating = EstimatingMetrics::new(&mut registry);
        let recording = RecordingMetrics::new(&mut registry);
        Self { registry, server, ingest, journal, estimating, recording }
    }

    /// What can be asked for.
    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/metrics", get(metrics))
            .route("/healthz", get(health))
            .with_state(Arc::new(self))
    }
}

async fn metrics(State(telemetry): State<Arc<Telemetry>>) -> Response {
    let mut text = String::new();
    match encode(&mut text, &telemetry.registry) {
        Ok(()) => ([(header::CONTENT_TYPE, MEDIA_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Well if epochs can be stored, or nobody tried yet.
async fn health(State(telemetry): State<Arc<Telemetry>>) -> Response {
    match telemetry.journal.healthy.get() {
        1 => (StatusCode::OK, "ok\n").into_response(),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "cannot store epochs\n").into_response(),
    }
}
