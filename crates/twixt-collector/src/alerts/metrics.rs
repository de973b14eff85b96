//! What is counted of alerts.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::machine::{AlertState, Transition};

type Label = [(&'static str, &'static str); 1];

/// Counters of alerts.
#[derive(Clone, Debug, Default)]
pub(crate) struct AlertMetrics {
    alerts: Family<Label, Gauge>,
    transitions: Family<Label, Counter>,
    pub(super) refused: Counter,
    messages: Family<Label, Counter>,
    retries: Counter,
    windows_late: Counter,
}

impl AlertMetrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register("alerts", "Alerts on series, by state", metrics.alerts.clone());
        registry.register(
            "alert_transitions",
            "Alert state changes, by new state",
            metrics.transitions.clone(),
        );
        registry.register(
            "alert_epochs_refused",
            "Epochs not checked because there are too many alerts on series",
            metrics.refused.clone(),
        );
        registry.register(
            "webhook_messages",
            "Messages to webhooks, by outcome",
            metrics.messages.clone(),
        );
        registry.register(
            "webhook_retries",
            "Retries of messages to webhooks",
            metrics.retries.clone(),
        );
        registry.register(
            "alert_windows_late",
            "Windows checked again because epochs in them were estimated late",
            metrics.windows_late.clone(),
        );
        for state in [AlertState::Unknown, AlertState::Clear, AlertState::Raised] {
            drop(metrics.alerts.get_or_create(&[("state", state.name())]));
            drop(metrics.transitions.get_or_create(&[("to", state.name())]));
        }
        for outcome in ["sent", "dropped"] {
            drop(metrics.messages.get_or_create(&[("outcome", outcome)]));
        }
        metrics
    }

    /// An alert on a series stands somehow; before, it may have stood otherwise.
    pub(super) fn stands(&self, before: Option<AlertState>, now: AlertState) {
        if let Some(before) = before {
            self.alerts.get_or_create(&[("state", before.name())]).dec();
        }
        self.alerts.get_or_create(&[("state", now.name())]).inc();
    }

    pub(super) fn changed(&self, transition: Transition) {
        self.transitions.get_or_create(&[("to", transition.to.name())]).inc();
    }

    pub(super) fn sent(&self) {
        self.messages.get_or_create(&[("outcome", "sent")]).inc();
    }

    pub(super) fn dropped(&self) {
        self.messages.get_or_create(&[("outcome", "dropped")]).inc();
    }

    pub(super) fn checked_late(&self) {
        self.windows_late.inc();
    }

    pub(super) fn retried(&self) {
        self.retries.inc();
    }
}
