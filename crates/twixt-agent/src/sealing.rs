//! From parts of epochs to the spool: puts the parts of all threads of a point together, encodes, and
//! makes durable.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use twixt_measure::Sealed;
use twixt_observe::{Merger, SealedPart};

use crate::clock::ClockQuality;
use crate::config::AgentConfig;
use crate::losses::Losses;
use crate::metrics::PointMetrics;
use crate::spool::Spools;

/// How often to look whether parts came.
const LOOK: Duration = Duration::from_millis(100);

/// From parts of epochs to the spool.
#[derive(Debug)]
pub(crate) struct Sealing {
    mergers: Vec<Merger>,
    metrics: Vec<PointMetrics>,
    discarded: Losses,
    unwritten: Losses,
    /// The last error of the disk.
    problem: String,
}

/// Epochs of a point that were written to its spool together.
#[derive(Debug)]
pub struct WrittenEpochs {
    /// Index of the point.
    pub point: usize,
    /// Their bytes.
    pub epochs: Vec<Vec<u8>>,
    /// They survive the death of the machine.
    pub is_durable: bool,
}

impl Sealing {
    pub(crate) fn new(config: &AgentConfig, metrics: Vec<PointMetrics>) -> Self {
        let mergers = config.points.iter().map(|point| Merger::new(point.threads)).collect();
        let (discarded, unwritten) = (Losses::default(), Losses::default());
        Self { mergers, metrics, discarded, unwritten, problem: String::new() }
    }

    /// Until the last packet thread has ended.
    pub(crate) fn run(
        mut self,
        parts: &Receiver<(usize, SealedPart)>,
        spools: &Spools,
        quality: &Mutex<ClockQuality>,
    ) {
        let quality = || *quality.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match parts.recv_timeout(LOOK) {
                Ok((point, part)) => {
                    self.add(point, part);
                    // All that is there, before the disk is waited for.
                    parts.try_iter().for_each(|(point, part)| self.add(point, part));
                    self.store(spools, quality());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.mergers.iter_mut().for_each(Merger::finish);
        self.store(spools, quality());
    }

    /// Takes what a thread of a point sealed.
    pub(crate) fn add(&mut self, point: usize, part: SealedPart) {
        self.mergers[point].add(part);
    }

    /// Writes the epochs that are whole to the spools, and makes them durable.
    pub(crate) fn store(&mut self, spools: &Spools, quality: ClockQuality) -> Vec<WrittenEpochs> {
        let points = 0..self.mergers.len();
        let written = points.filter_map(|point| self.store_point(point, spools, quality)).collect();
        self.log_losses(spools);
        written
    }

    fn store_point(
        &mut self,
        point: usize,
        spools: &Spools,
        quality: ClockQuality,
    ) -> Option<WrittenEpochs> {
        let mut epochs = Vec::new();
        while let Some(mut sealed) = self.mergers[point].poll() {
            sealed.clock_bound = quality.bound(sealed.time_source);
            self.count(point, &sealed);
            let bytes = sealed.to_bytes();
            spools.note_run(point, sealed.run);
            match spools.append(point, sealed.epoch, &bytes) {
                Ok(()) => epochs.push(bytes),
                Err(error) => self.problem = error.to_string(),
            }
        }
        self.metrics[point].note_merger(self.mergers[point].counts());
        if epochs.is_empty() {
            return None;
        }
        let synced = spools.sync(point).inspect_err(|error| {
            tracing::warn!(%error, "cannot sync the spool: it may not survive a power failure");
        });
        Some(WrittenEpochs { point, epochs, is_durable: synced.is_ok() })
    }

    fn count(&self, point: usize, sealed: &Sealed) {
        let metrics = &self.metrics[point];
        metrics.sealed.inc();
        metrics.torn.inc_by(u64::from(sealed.torn));
        metrics.note_synopsis(sealed.synopsis.name(), sealed.synopsis.state_bytes());
    }

    /// Logs what was lost: the first at once, later ones in sums.
    fn log_losses(&mut self, spools: &Spools) {
        let (counts, now) = (spools.counts(), Instant::now());
        if let Some(epochs) = self.discarded.due(counts.discarded, now) {
            tracing::error!(epochs, "the spool is full: epochs are lost, the oldest first");
        }
        if let Some(epochs) = self.unwritten.due(counts.unwritten, now) {
            let problem = &self.problem;
            tracing::error!(epochs, problem, "epochs are lost: the spool cannot be written");
        }
    }
}
