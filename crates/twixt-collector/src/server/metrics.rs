//! What the server counts.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Counters of connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerMetrics {
    pub(crate) open: Gauge,
    pub(crate) accepted: Counter,
    refused: Family<[(&'static str, &'static str); 1], Counter>,
}

impl ServerMetrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register("connections_open", "Open connections", metrics.open.clone());
        registry.register("connections", "Connections accepted", metrics.accepted.clone());
        registry.register(
            "connections_refused",
            "Connections closed before a request, by reason",
            metrics.refused.clone(),
        );
        metrics
    }

    /// For another listener: refusals are counted together, connections are not.
    pub(crate) fn beside(&self) -> Self {
        Self { refused: self.refused.clone(), ..Self::default() }
    }

    pub(crate) fn refuse(&self, reason: &'static str) {
        self.refused.get_or_create(&[("reason", reason)]).inc();
    }
}
