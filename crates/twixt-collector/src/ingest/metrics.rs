//! What requests are counted as.

use axum::http::StatusCode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Counters of requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct IngestMetrics {
    requests: Family<[(&'static str, String); 1], Counter>,
    pub(super) body_bytes: Counter,
    pub(super) undecodable: Counter,
}

impl IngestMetrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register("requests", "Requests, by status code", metrics.requests.clone());
        registry.register(
            "body_bytes",
            "Bytes of request bodies, decompressed",
            metrics.body_bytes.clone(),
        );
        registry.register(
            "records_undecodable",
            "Records that are not sealed epochs of a known format",
            metrics.undecodable.clone(),
        );
        metrics
    }

    /// Labels are the few codes that are answered with.
    pub(super) fn count(&self, status: StatusCode) {
        self.requests.get_or_create(&[("code", status.as_str().to_owned())]).inc();
    }
}
