//! What was reported of a series, so that a replay does not report it again and nothing is left out.

use std::collections::BTreeSet;

use twixt_model::Epoch;

use crate::config::SeriesProgress;

/// Most epochs reported beyond those that are concluded that are remembered.
const REPORTED_MAX: usize = 256;

/// What was reported, so that a replay does not report it again.
#[derive(Debug)]
pub(crate) struct Reported {
    /// Epochs up to this one are no longer waited for.
    pub(crate) through: Epoch,
    /// The last epoch of which something was reported in its turn. Of those between this one and
    /// `through` nothing came; that is reported with the next that does.
    last: Option<Epoch>,
    /// Epochs beyond `last` that were reported before their turn.
    beyond: BTreeSet<Epoch>, // at most REPORTED_MAX
    /// A replay repeats everything up to this, and these.
    before_replay: (Option<Epoch>, BTreeSet<Epoch>),
}

impl Reported {
    pub(crate) const fn nothing() -> Self {
        Self {
            through: Epoch(i64::MIN),
            last: None,
            beyond: BTreeSet::new(),
            before_replay: (None, BTreeSet::new()),
        }
    }

    /// Nothing yet of a replay.
    pub(crate) fn resumed(progress: &SeriesProgress) -> Self {
        let through = Epoch(progress.replay_from.0.saturating_sub(1));
        let reported = progress.reported.iter().map(|&(epoch, _)| epoch).collect();
        Self {
            through,
            last: progress.last.filter(|&last| last <= through),
            before_replay: (progress.last, reported),
            ..Self::nothing()
        }
    }

    /// The last epoch of which something was reported in its turn, here or before a restart.
    pub(crate) fn all_last(&self) -> Option<Epoch> {
        self.last.max(self.before_replay.0)
    }

    /// Epochs beyond that which were reported before their turn.
    pub(crate) fn all_beyond(&self) -> Vec<Epoch> {
        let last = self.all_last();
        let reported = self.beyond.union(&self.before_replay.1).copied();
        reported.filter(|&epoch| Some(epoch) > last).collect()
    }

    /// Epochs up to this one are no longer waited for.
    pub(crate) fn conclude(&mut self, through: Epoch) {
        self.through = self.through.max(through);
    }

    /// Notes that something is reported of an epoch in its turn, and of all before it.
    pub(crate) fn note(&mut self, epoch: Epoch) {
        self.last = self.last.max(Some(epoch));
        while self.beyond.first().is_some_and(|&first| Some(first) <= self.last) {
            self.beyond.pop_first();
        }
    }

    /// Whether that was new.
    pub(crate) fn add_beyond(&mut self, epoch: Epoch) -> bool {
        if self.beyond.len() >= REPORTED_MAX {
            self.beyond.pop_first();
        }
        self.beyond.insert(epoch)
    }

    /// The epochs between the last of which something was reported and this one.
    pub(crate) fn missing_before(&self, epoch: Epoch) -> Vec<(Epoch, Epoch)> {
        let Some(last) = self.last else { return Vec::new() };
        let mut missing = Vec::new();
        let mut next = last.0.saturating_add(1);
        let reported =
            self.beyond.range(Epoch(next)..).copied().take_while(|reported| *reported < epoch);
        for Epoch(reported) in reported.chain([epoch]) {
            if next < reported {
                missing.push((Epoch(next), Epoch(reported - 1)));
            }
            next = reported.saturating_add(1);
        }
        missing
    }

    /// Whether it was reported before a restart.
    pub(crate) fn was_reported(&self, epoch: Epoch) -> bool {
        let (last, beyond) = &self.before_replay;
        Some(epoch) <= *last || beyond.contains(&epoch)
    }

    /// What of some epochs in a row was not reported before a restart.
    pub(crate) fn unreported(&self, first: Epoch, last: Epoch) -> Option<(Epoch, Epoch)> {
        let next =
            self.before_replay.0.map_or(first, |reported| Epoch(reported.0.saturating_add(1)));
        let first = first.max(next);
        (first <= last && !self.was_reported(last)).then_some((first, last))
    }
}
