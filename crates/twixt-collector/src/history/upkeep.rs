//! Seals hours and deletes what is old, now and then, in a thread of its own: writing a large hour
//! takes longer than estimates can wait.

use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use tracing::{info, warn};
use twixt_history::{HistoryError, UpkeepDone};

use super::{Estimates, HistoryMetrics, Work};
use crate::clock::AgeReference;
use crate::stop::StopRequest;

/// How often it is looked what is due.
const EVERY: Duration = Duration::from_secs(10);
/// How often it is looked whether to stop.
const STEP: Duration = Duration::from_millis(100);

/// Seals hours and deletes what is old.
pub(crate) struct Upkeep {
    estimates: Estimates,
    metrics: HistoryMetrics,
    age_reference: AgeReference,
}

impl Upkeep {
    pub(crate) fn new(estimates: Estimates, metrics: HistoryMetrics) -> Self {
        Self { estimates, metrics, age_reference: AgeReference::default() }
    }

    /// Until told to stop.
    pub(crate) fn run(mut self, stop: &StopRequest) {
        loop {
            self.run_apart();
            let mut waited = Duration::ZERO;
            while waited < EVERY {
                if stop.is_requested() {
                    return;
                }
                thread::sleep(STEP);
                waited += STEP;
            }
        }
    }

    /// Does what is due, in a thread that ends then: sealing takes much memory once an hour, and the
    /// allocator keeps what a thread needed until the thread needs some again, or ends.
    fn run_apart(&mut self) {
        thread::scope(|scope| {
            let builder = thread::Builder::new().name("sealing".to_owned());
            match builder.spawn_scoped(scope, || self.run_once()) {
                Ok(sealing) => sealing.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(problem) => warn!(%problem, "cannot start a thread to seal hours; retrying"),
            }
        });
    }

    /// Does what is due.
    pub(crate) fn run_once(&mut self) {
        let Estimates { history, points, clock, .. } = &self.estimates;
        let newest = self.estimates.tables().filter_map(|history| history.newest()).max();
        let (old_by, is_doubtful) = self.age_reference.moment(clock.now(), newest, clock.instant());
        if is_doubtful {
            warn!(
                "the clock is more than a day ahead of the newest estimate: ages count from the \
                 estimate"
            );
        }
        let now = clock.now();
        let mut all: Vec<Result<UpkeepDone, HistoryError>> =
            points.all().map(|history| history.keep_by(now, old_by)).collect();
        // Estimates have what the tables of one point leave of the bytes for all.
        let bytes = |done: &Result<UpkeepDone, HistoryError>| {
            done.as_ref().map_or(0, |done| done.removed.left_bytes)
        };
        let beside_bytes = all.iter().map(bytes).sum();
        all.push(history.keep_beside(now, old_by, beside_bytes));
        let failed = all.iter().find_map(|done| match done {
            Ok(done) => done.unsealed.first(),
            Err(problem) => Some(problem),
        });
        self.note_health(failed);
        self.metrics.note_bytes(all.iter().map(bytes).sum());
        all.iter().flatten().for_each(|done| self.log(done));
        self.metrics.copy(&self.estimates);
    }

    /// Says once when it begins to fail, and once when it works again.
    fn note_health(&self, failed: Option<&HistoryError>) {
        let was_healthy = self.metrics.is_healthy(Work::Sealing);
        self.metrics.note_health(Work::Sealing, failed.is_none());
        match failed {
            Some(problem) => {
                self.metrics.failed.inc();
                if was_healthy {
                    warn!(%problem, "cannot seal or delete estimates; retrying");
                }
            }
            None if !was_healthy => info!("estimates can be sealed again"),
            None => {}
        }
    }

    fn log(&self, done: &UpkeepDone) {
        for hour in &done.sealed {
            info!(%hour, "sealed");
        }
        for problem in &done.problems {
            warn!(%problem, "an estimate could not be sealed");
        }
        self.metrics.unreadable.inc_by(done.problems.len() as u64);
        self.metrics.removed(&done.removed);
        if done.removed.files > 0 {
            let (files, bytes) = (done.removed.files, done.removed.bytes);
            info!(files, bytes, "old estimates deleted");
        }
    }
}
