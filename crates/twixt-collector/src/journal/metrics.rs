//! What the journal counts.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Counters of the journal.
#[derive(Clone, Debug)]
pub(crate) struct JournalMetrics {
    pub(crate) stored: Counter,
    pub(crate) duplicates: Counter,
    pub(crate) refused: Family<[(&'static str, &'static str); 1], Counter>,
    pub(crate) commits: Counter,
    pub(crate) failures: Counter,
    pub(crate) seconds: Histogram,
    pub(crate) healthy: Gauge,
    pub(crate) points: Gauge,
    pub(crate) expired_days: Counter,
}

impl JournalMetrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let seconds = Histogram::new(exponential_buckets(0.000_5, 2.0, 14));
        let metrics = Self {
            stored: Counter::default(),
            duplicates: Counter::default(),
            refused: Family::default(),
            commits: Counter::default(),
            failures: Counter::default(),
            seconds,
            healthy: Gauge::default(),
            points: Gauge::default(),
            expired_days: Counter::default(),
        };
        metrics.healthy.set(1);
        metrics.register(registry);
        metrics
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("epochs_stored", "Epochs made durable", self.stored.clone());
        registry.register("epochs_duplicate", "Epochs already stored", self.duplicates.clone());
        registry.register(
            "epochs_refused",
            "Epochs permanently refused, by reason",
            self.refused.clone(),
        );
        registry.register("commits", "Commits (files made durable)", self.commits.clone());
        registry.register(
            "commit_failures",
            "Failed commits: disk full, read-only or broken",
            self.failures.clone(),
        );
        registry.register("commit_seconds", "Commit duration", self.seconds.clone());
        registry.register(
            "storage_healthy",
            "Whether the last commit succeeded",
            self.healthy.clone(),
        );
        registry.register("points", "Points with stored epochs", self.points.clone());
        registry.register(
            "epoch_files_removed",
            "Files with a day of a point deleted by age or size",
            self.expired_days.clone(),
        );
    }
}
