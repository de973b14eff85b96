//! What recording counts.

use std::sync::atomic::Ordering;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use twixt_history::{Counts, RemovedFiles};

use super::Estimates;

/// What can fail by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Appending estimates to the log of their hour.
    Storing,
    /// Writing hours as Parquet, and deleting old ones.
    Sealing,
}

impl Work {
    /// All of it.
    const ALL: [Self; 2] = [Self::Storing, Self::Sealing];

    const fn name(self) -> &'static str {
        match self {
            Self::Storing => "storing",
            Self::Sealing => "sealing",
        }
    }
}

/// Counters of what is stored of estimates.
#[derive(Clone, Debug, Default)]
pub(crate) struct HistoryMetrics {
    rows: Counter,
    repeated: Counter,
    sealed: Counter,
    rollups_refused: Counter,
    rollup_bytes: Gauge<i64>,
    folded: Counter,
    pub(super) left_out: Counter,
    pub(crate) failed: Counter,
    pub(super) unreadable: Counter,
    bytes: Gauge<i64>,
    removed_files: Counter,
    healthy: Family<[(&'static str, &'static str); 1], Gauge>,
}

impl HistoryMetrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let new = Self::default();
        let counters = [
            ("history_rows", "Estimates stored", &new.rows),
            ("history_rows_repeated", "Estimates already stored", &new.repeated),
            ("history_seals", "Hours sealed", &new.sealed),
            (
                "history_rollups_refused",
                "Hours whose minutes were removed from memory because there were too many",
                &new.rollups_refused,
            ),
            (
                "history_scopes_folded",
                "Times that the smaller scopes of a point in a minute or an hour became one row",
                &new.folded,
            ),
            (
                "history_scopes_left_out",
                "Groups, prefixes and flows of an epoch of a point without a row of their own",
                &new.left_out,
            ),
            ("history_failures", "Failures to store estimates or seal hours", &new.failed),
            (
                "history_unreadable",
                "Unreadable records found when an hour was sealed",
                &new.unreadable,
            ),
            ("history_files_removed", "Files deleted by age or total size", &new.removed_files),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        registry.register(
            "history_rollup_bytes",
            "Memory of minutes and hours that are not sealed",
            new.rollup_bytes.clone(),
        );
        registry.register("history_bytes", "Bytes of all stored estimates", new.bytes.clone());
        registry.register(
            "history_healthy",
            "Whether the last attempt to store estimates or seal hours succeeded",
            new.healthy.clone(),
        );
        Work::ALL.iter().for_each(|work| new.note_health(*work, true));
        new
    }

    pub(crate) fn note_health(&self, work: Work, is_healthy: bool) {
        self.healthy.get_or_create(&[("work", work.name())]).set(i64::from(is_healthy));
    }

    pub(crate) fn is_healthy(&self, work: Work) -> bool {
        self.healthy.get_or_create(&[("work", work.name())]).get() == 1
    }

    /// The history counts by itself.
    pub(super) fn copy(&self, estimates: &Estimates) {
        let counts: Vec<Counts> = estimates.tables().map(|history| history.counts()).collect();
        let copy = |counter: &Counter, count: fn(&Counts) -> u64| {
            let count = counts.iter().map(count).sum();
            counter.inner().store(count, Ordering::Relaxed);
        };
        copy(&self.rows, |counts| counts.rows);
        copy(&self.repeated, |counts| counts.repeated);
        copy(&self.sealed, |counts| counts.sealed);
        copy(&self.rollups_refused, |counts| counts.rollups_refused);
        copy(&self.folded, |counts| counts.folded);
        let bytes: usize = estimates.tables().map(|history| history.rollup_bytes()).sum();
        self.rollup_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    pub(super) fn removed(&self, removed: &RemovedFiles) {
        self.removed_files.inc_by(removed.files);
    }

    /// Of all tables, as far as they could be looked at.
    pub(super) fn note_bytes(&self, bytes: u64) {
        self.bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}
