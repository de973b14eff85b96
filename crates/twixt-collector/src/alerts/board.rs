//! How alerts stand and what was reported, for those who ask.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use twixt_engine::Series;

use super::AlertConfig;
use super::marks::{Acknowledgement, AlertTarget, MarkError, Marks, Silence};
use super::message::AlertMessage;

/// Changes that are remembered. Older ones are in the log.
const CHANGES_MAX: usize = 1_000;

/// Clones show the same.
#[derive(Clone, Debug)]
pub(crate) struct AlertBoard {
    rules: Arc<[AlertConfig]>,
    shared: Arc<Mutex<Shown>>,
}

#[derive(Debug)]
struct Shown {
    /// By number of the alert: as many as are watched.
    standing: BTreeMap<(usize, Series), AlertMessage>,
    /// In the order in which they were reported.
    changes: VecDeque<AlertMessage>, // at most CHANGES_MAX
    marks: Marks,
}

impl AlertBoard {
    pub(crate) fn new(rules: &[AlertConfig], marks: Marks) -> Self {
        let shown = Shown { standing: BTreeMap::new(), changes: VecDeque::new(), marks };
        Self { rules: rules.into(), shared: Arc::new(Mutex::new(shown)) }
    }

    /// What is checked.
    pub(crate) fn rules(&self) -> &[AlertConfig] {
        &self.rules
    }

    /// How every alert stood in its last window.
    pub(crate) fn standing(&self) -> Vec<AlertMessage> {
        self.with(|Shown { standing, marks, .. }| {
            let mut standing: Vec<AlertMessage> = standing.values().cloned().collect();
            standing.iter_mut().for_each(|message| marks.complete(message));
            standing
        })
    }

    /// How this one stood in its last window; none if it is not watched.
    pub(crate) fn standing_of(&self, target: &AlertTarget) -> Option<AlertMessage> {
        self.standing().into_iter().find(|message| AlertTarget::of(message) == *target)
    }

    /// What changed since the collector's start, newest last.
    pub(crate) fn changes(&self) -> Vec<AlertMessage> {
        self.with(|shown| shown.changes.iter().cloned().collect())
    }

    pub(super) fn stands(&self, alert: usize, series: &Series, message: AlertMessage) {
        self.with(|shown| {
            shown.marks.note(&message);
            shown.standing.insert((alert, series.clone()), message)
        });
    }

    /// A change, with what is marked.
    pub(super) fn changed(&self, mut message: AlertMessage) -> AlertMessage {
        self.with(|shown| {
            shown.marks.complete(&mut message);
            if shown.changes.len() >= CHANGES_MAX {
                shown.changes.pop_front();
            }
            shown.changes.push_back(message.clone());
            message
        })
    }

    /// Notes that somebody attends to an alert, or that nobody does.
    pub(crate) fn acknowledge(
        &self,
        target: &AlertTarget,
        acknowledgement: Option<Acknowledgement>,
    ) -> Result<(), MarkError> {
        self.with(|shown| shown.marks.acknowledge(target, acknowledgement))
    }

    /// Lets an alert send no messages for a while, or ends that.
    pub(crate) fn silence(
        &self,
        target: &AlertTarget,
        silence: Option<Silence>,
    ) -> Result<(), MarkError> {
        self.with(|shown| shown.marks.silence(target, silence))
    }

    fn with<T>(&self, look: impl FnOnce(&mut Shown) -> T) -> T {
        look(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
