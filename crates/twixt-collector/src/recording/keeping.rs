//! Seals hours and deletes what is old, now and then, in a thread of its own: writing a large hour
//! takes longer than estimates can wait.

use std::time::{Duration, Instant};

use tracing::{info, warn};
use twixt_history::{HistoryError, Kept};

use super::{Recorded, RecordingMetrics, Work};
use crate::clock::Reckoning;
use crate::stop::Stop;

/// How often it is looked what is due.
const EVERY: Duration = Duration::from_secs(10);
/// How often it is looked whether to stop.
const STEP: Duration = Duration::from_millis(100);

/// Seals and deletes until told to stop.
pub(crate) fn keep(recorded: &Recorded, metrics: &RecordingMetrics, stop: &Stop) {
    let mut keeping = Keeping { recorded, metrics, reckoning: Reckoning::default() };
    loop {
        keeping.keep_once();
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

struct Keeping<'a> {
    recorded: &'a Recorded,
    metrics: &'a RecordingMetrics,
    reckoning: Reckoning,
}

impl Keeping<'_> {
    fn keep_once(&mut self) {
        let Recorded { history, clock, .. } = self.recorded;
        let (old_by, is_doubtful) =
            self.reckoning.moment(clock.now(), history.newest(), Instant::now());
        if is_doubtful {
            warn!(
                "the clock is more than a day ahead of the newest estimate: ages count from that"
            );
        }
        let kept = history.keep_by(clock.now(), old_by);
        let failed = match &kept {
            Ok(kept) => kept.unsealed.first(),
            Err(problem) => Some(problem),
        };
        self.note_health(failed);
        if let Ok(kept) = kept {
            self.tell(&kept);
        }
        self.metrics.copy(history.counts());
    }

    /// Says once when it begins to fail, and once when it works again.
    fn note_health(&self, failed: Option<&HistoryError>) {
        let was_healthy = self.metrics.is_healthy(Work::Sealing);
        self.metrics.note_health(Work::Sealing, failed.is_none());
        match failed {
            Some(problem) => {
                self.metrics.failed.inc();
                if was_healthy {
                    warn!(%problem, "estimates cannot be sealed, or deleted; trying again");
                }
            }
            None if !was_healthy => info!("estimates can be sealed again"),
            None => {}
        }
    }

    fn tell(&self, kept: &Kept) {
        for hour in &kept.sealed {
            info!(%hour, "sealed");
        }
        for problem in &kept.problems {
            warn!(%problem, "an estimate could not be sealed");
        }
        self.metrics.unreadable.inc_by(kept.problems.len() as u64);
        self.metrics.removed(&kept.removed);
        if kept.removed.files > 0 {
            let (files, bytes) = (kept.removed.files, kept.removed.bytes);
            info!(files, bytes, "old estimates deleted");
        }
    }
}
