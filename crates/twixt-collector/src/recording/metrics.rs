//! What recording counts.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use twixt_history::{Counts, Removed};

/// Counters of what is stored of estimates.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordingMetrics {
    rows: Gauge<i64>,
    repeated: Gauge<i64>,
    sealed: Gauge<i64>,
    rollups_refused: Gauge<i64>,
    pub(crate) failed: Counter,
    pub(super) unreadable: Counter,
    bytes: Gauge<i64>,
    removed_files: Counter<u64, AtomicU64>,
}

impl RecordingMetrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let new = Self::default();
        let gauge = |registry: &mut Registry, name: &str, help: &str, gauge: &Gauge<i64>| {
            registry.register(name, help, gauge.clone());
        };
        gauge(registry, "history_rows", "Estimates stored since the start", &new.rows);
        gauge(
            registry,
            "history_rows_repeated",
            "Estimates that were stored before",
            &new.repeated,
        );
        gauge(registry, "history_hours_sealed", "Hours sealed since the start", &new.sealed);
        gauge(
            registry,
            "history_rollups_refused",
            "Times that too many minutes were not kept in memory",
            &new.rollups_refused,
        );
        gauge(registry, "history_bytes", "Bytes of all stored estimates", &new.bytes);
        registry.register("history_failures", "Times that storing failed", new.failed.clone());
        registry.register(
            "history_unreadable",
            "Records that could not be read when an hour was sealed",
            new.unreadable.clone(),
        );
        registry.register(
            "history_files_removed",
            "Files deleted because they were old, or too many",
            new.removed_files.clone(),
        );
        new
    }

    pub(super) fn copy(&self, counts: Counts) {
        let copy = |gauge: &Gauge<i64>, count: u64| {
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        };
        copy(&self.rows, counts.rows);
        copy(&self.repeated, counts.repeated);
        copy(&self.sealed, counts.sealed);
        copy(&self.rollups_refused, counts.rollups_refused);
    }

    pub(super) fn removed(&self, removed: &Removed) {
        self.removed_files.inc_by(removed.files);
        self.bytes.set(i64::try_from(removed.left_bytes).unwrap_or(i64::MAX));
    }
}
