//! Seals hours and deletes what is old, now and then, in a thread of its own: writing a large hour
//! takes longer than estimates can wait.

use std::time::Duration;

use tracing::{info, warn};

use super::{Recorded, RecordingMetrics};
use crate::clock;
use crate::stop::Stop;

/// How often it is looked what is due.
const EVERY: Duration = Duration::from_secs(10);
/// How often it is looked whether to stop.
const STEP: Duration = Duration::from_millis(100);

/// Seals and deletes until told to stop.
pub(crate) fn keep(recorded: &Recorded, metrics: &RecordingMetrics, stop: &Stop) {
    loop {
        keep_once(recorded, metrics);
        let mut waited = Duration::ZERO;
        while waited < EVERY {
            if stop.is_requested() {
                return;
            }
            std::thread::sleep(STEP);
            waited += STEP;
        }
    }
}

fn keep_once(recorded: &Recorded, metrics: &RecordingMetrics) {
    match recorded.history.keep(clock::now()) {
        Ok(kept) => {
            for hour in &kept.sealed {
                info!(%hour, "sealed");
            }
            for problem in &kept.problems {
                warn!(%problem, "an estimate could not be sealed");
            }
            metrics.unreadable.inc_by(kept.problems.len() as u64);
            metrics.removed(&kept.removed);
            if kept.removed.files > 0 {
                let (files, bytes) = (kept.removed.files, kept.removed.bytes);
                info!(files, bytes, "old estimates deleted");
            }
        }
        Err(problem) => {
            metrics.failed.inc();
            warn!(%problem, "estimates cannot be sealed; trying again");
        }
    }
    metrics.copy(recorded.history.counts());
}
