//! What was told of a series, so that a replay does not tell it again and nothing is left out.

use std::collections::BTreeSet;

use twixt_model::Epoch;

use super::Concluded;

/// Most epochs told beyond those that are concluded that are remembered.
const TOLD_MAX: usize = 256;

/// What was told, so that a replay does not tell it again.
#[derive(Debug)]
pub(super) struct Told {
    /// Everything up to this epoch.
    pub(super) through: Epoch,
    /// The last epoch up to that of which something was told.
    pub(super) last: Option<Epoch>,
    /// Epochs beyond that were told all the same.
    beyond: BTreeSet<Epoch>, // at most TOLD_MAX
    /// A replay repeats everything up to this, and these.
    before_replay: (Epoch, BTreeSet<Epoch>),
}

impl Told {
    pub(super) const fn nothing() -> Self {
        Self {
            through: Epoch(i64::MIN),
            last: None,
            beyond: BTreeSet::new(),
            before_replay: (Epoch(i64::MIN), BTreeSet::new()),
        }
    }

    /// Nothing yet of a replay.
    pub(super) fn resumed(concluded: &Concluded) -> Self {
        let through = Epoch(concluded.replay_from.0.saturating_sub(1));
        let told = concluded.told.iter().map(|&(epoch, _)| epoch).collect();
        Self {
            through,
            last: concluded.last.filter(|&last| last <= through),
            before_replay: (concluded.through, told),
            ..Self::nothing()
        }
    }

    /// Everything up to this epoch was told, here or before a restart.
    pub(super) fn all_through(&self) -> Epoch {
        self.through.max(self.before_replay.0)
    }

    /// Epochs beyond that were told all the same.
    pub(super) fn all_beyond(&self) -> Vec<Epoch> {
        let through = self.all_through();
        let told = self.beyond.union(&self.before_replay.1).copied();
        told.filter(|&epoch| epoch > through).collect()
    }

    /// All up to this epoch is told.
    pub(super) fn conclude(&mut self, through: Epoch) {
        self.through = self.through.max(through);
        while let Some(&first) = self.beyond.first().filter(|&&first| first <= self.through) {
            self.beyond.remove(&first);
            self.last = self.last.max(Some(first));
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
        let (through, beyond) = &self.before_replay;
        epoch <= *through || beyond.contains(&epoch)
    }
}
