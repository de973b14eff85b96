//! What the collector's estimates say. Knows nothing of what was injected.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use twixt_collector::EventSink;
use twixt_detect::{Detector, DetectorConfig, EpochEvidence, Incident, WatchedSeries, incidents};
use twixt_engine::{EngineEvent, PairEstimate};
use twixt_model::{Epoch, Scope};

use crate::points::MEANS_FROM;
use crate::scenario::{CLASSES, segments};

/// Takes the collector's events, and looks for changes. Clones see the same.
#[derive(Clone)]
pub(crate) struct Watching {
    shared: Arc<Mutex<Watched>>,
}

/// What was seen so far.
pub(crate) struct Watched {
    detector: Detector,
    config: DetectorConfig,
    /// The newest epoch of every series, and what of that is stored.
    newest: BTreeMap<WatchedSeries, Epoch>,
    stored_through: Option<Epoch>,
}

impl Watching {
    /// For the tests of so many epochs.
    pub(crate) fn new(epochs: u64) -> Self {
        let config = DetectorConfig::for_run(series_count() as u64, epochs);
        let watched = Watched {
            detector: Detector::new(config),
            config,
            newest: BTreeMap::new(),
            stored_through: None,
        };
        Self { shared: Arc::new(Mutex::new(watched)) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Watched> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Every class of every segment.
fn series_count() -> usize {
    segments().count() * CLASSES.len()
}

impl Watched {
    /// What the changes come to, in order of their start.
    pub(crate) fn incidents(&self) -> Vec<Incident> {
        incidents(&self.detector.changes(), self.detector.series())
    }

    /// How alarms are raised.
    pub(crate) const fn config(&self) -> &DetectorConfig {
        &self.config
    }

    /// The last epoch that is estimated and stored for every series.
    pub(crate) const fn stored_through(&self) -> Option<Epoch> {
        self.stored_through
    }

    fn observe(&mut self, pair: &PairEstimate) {
        let all = pair.estimates.iter().find(|estimate| estimate.scope == Scope::All);
        // What comes late is stored, and would come out of order here.
        let Some(estimate) = all.filter(|_| !pair.is_late) else { return };
        let series = WatchedSeries {
            segment: pair.series.segment.clone(),
            class: pair.series.class.clone(),
        };
        self.detector.observe(&series, pair.epoch, EpochEvidence::of(estimate));
        self.newest.insert(series, pair.epoch);
    }
}

impl EventSink for Watching {
    fn take(&mut self, event: &EngineEvent) -> io::Result<()> {
        if let EngineEvent::Estimated(pair) = event
            && pair.series.algorithm == MEANS_FROM
        {
            self.lock().observe(pair);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut watched = self.lock();
        if watched.newest.len() == series_count() {
            watched.stored_through = watched.newest.values().min().copied();
        }
        Ok(())
    }
}
