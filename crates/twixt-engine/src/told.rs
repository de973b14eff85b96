//! What was told of a series, so that a replay does not tell it again and nothing is left out.

use std::collections::BTreeSet;

use twixt_model::Epoch;

use super::Concluded;

/// Most epochs told beyond those that are concluded that are remembered.
const TOLD_MAX: usize = 256;

/// What was told, so that a replay does not tell it again.
#[derive(Debug)]
pub(super) struct Told {
    /// Epochs up to this one are no longer waited for.
    pub(super) through: Epoch,
    /// The last epoch of which something was told in its turn. Of those between this one and
    /// `through` nothing came; that is told with the next that does.
    last: Option<Epoch>,
    /// Epochs beyond `last` that were told before their turn.
    beyond: BTreeSet<Epoch>, // at most TOLD_MAX
    /// A replay repeats everything up to this, and these.
    before_replay: (Option<Epoch>, BTreeSet<Epoch>),
}

impl Told {
    pub(super) const fn nothing() -> Self {
        Self {
            through: Epoch(i64::MIN),
            last: None,
            beyond: BTreeSet::new(),
            before_replay: (None, BTreeSet::new()),
        }
    }

    /// Nothing yet of a replay.
    pub(super) fn resumed(concluded: &Concluded) -> Self {
        let through = Epoch(concluded.replay_from.0.saturating_sub(1));
        let told = concluded.told.iter().map(|&(epoch, _)| epoch).collect();
        Self {
            through,
            last: concluded.last.filter(|&last| last <= through),
            before_replay: (concluded.last, told),
            ..Self::nothing()
        }
    }

    /// The last epoch of which something was told in its turn, here or before a restart.
    pub(super) fn all_last(&self) -> Option<Epoch> {
        self.last.max(self.before_replay.0)
    }

    /// Epochs beyond that which were told before their turn.
    pub(super) fn all_beyond(&self) -> Vec<Epoch> {
        let last = self.all_last();
        let told = self.beyond.union(&self.before_replay.1).copied();
        told.filter(|&epoch| Some(epoch) > last).collect()
    }

    /// Epochs up to this one are no longer waited for.
    pub(super) fn conclude(&mut self, through: Epoch) {
        self.through = self.through.max(through);
    }

    /// Notes that something is told of an epoch in its turn, and of all before it.
    pub(super) fn note(&mut self, epoch: Epoch) {
        self.last = self.last.max(Some(epoch));
        while self.beyond.first().is_some_and(|&first| Some(first) <= self.last) {
            self.beyond.pop_first();
        }
    }

    /// Whether that was new.
    pub(super) fn add_beyond(&mut self, epoch: Epoch) -> bool {
        if self.beyond.len() >= TOLD_MAX {
            self.beyond.pop_first();
        }
        self.beyond.insert(epoch)
    }

    /// The epochs between the last of which something was told and this one.
    pub(super) fn missing_before(&self, epoch: Epoch) -> Vec<(Epoch, Epoch)> {
        let Some(last) = self.last else { return Vec::new() };
        let mut missing = Vec::new();
        let mut next = last.0.saturating_add(1);
        let told = self.beyond.range(Epoch(next)..).copied().take_while(|told| *told < epoch);
        for Epoch(told) in told.chain([epoch]) {
            if next < told {
                missing.push((Epoch(next), Epoch(told - 1)));
            }
            next = told.saturating_add(1);
        }
        missing
    }

    /// Whether it was told before a restart.
    pub(super) fn was_told(&self, epoch: Epoch) -> bool {
        let (last, beyond) = &self.before_replay;
        Some(epoch) <= *last || beyond.contains(&epoch)
    }

    /// What of some epochs in a row was not told before a restart.
    pub(super) fn untold(&self, first: Epoch, last: Epoch) -> Option<(Epoch, Epoch)> {
        let next = self.before_replay.0.map_or(first, |told| Epoch(told.0.saturating_add(1)));
        let first = first.max(next);
        (first <= last && !self.was_told(last)).then_some((first, last))
    }
}
