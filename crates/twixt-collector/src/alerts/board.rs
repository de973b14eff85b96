//! How alerts stand and what was reported, for those who ask.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use twixt_engine::Series;

use super::AlertConfig;
use super::message::AlertMessage;

/// Changes that are remembered. Older ones are in the log.
const CHANGES_MAX: usize = 1_000;

/// Clones show the same.
#[derive(Clone, Debug)]
pub(crate) struct AlertBoard {
    rules: Arc<[AlertConfig]>,
    shared: Arc<Mutex<Shown>>,
}

#[derive(Debug, Default)]
struct Shown {
    /// By number of the alert: as many as are watched.
    standing: BTreeMap<(usize, Series), AlertMessage>,
    /// In the order in which they were reported.
    changes: VecDeque<AlertMessage>, // at most CHANGES_MAX
}

impl AlertBoard {
    pub(super) fn new(rules: &[AlertConfig]) -> Self {
        Self { rules: rules.into(), shared: Arc::default() }
    }

    /// What is checked.
    pub(crate) fn rules(&self) -> &[AlertConfig] {
        &self.rules
    }

    /// How every alert stood in its last window.
    pub(crate) fn standing(&self) -> Vec<AlertMessage> {
        self.with(|shown| shown.standing.values().cloned().collect())
    }

    /// What changed since the collector's start, newest last.
    pub(crate) fn changes(&self) -> Vec<AlertMessage> {
        self.with(|shown| shown.changes.iter().cloned().collect())
    }

    pub(super) fn stands(&self, alert: usize, series: &Series, message: AlertMessage) {
        self.with(|shown| shown.standing.insert((alert, series.clone()), message));
    }

    pub(super) fn changed(&self, message: AlertMessage) {
        self.with(|shown| {
            if shown.changes.len() >= CHANGES_MAX {
                shown.changes.pop_front();
            }
            shown.changes.push_back(message);
        });
    }

    fn with<T>(&self, look: impl FnOnce(&mut Shown) -> T) -> T {
        look(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
