//! What pairing learns of delays, and what it knew when: a pairing that goes on where another was
//! must not learn from the same boundary twice, or it would know sooner what the other did not.

use std::collections::VecDeque;

use twixt_model::Epoch;

use crate::cut::{Evidence, TELLING_MIN};

/// Changes that are remembered. Callers poll after every epoch, which
/// concludes as many as wait at most.
const CHANGES_MAX: usize = super::WAITING_EPOCHS_MAX + 2;
/// More short delays than this say no more.
const SHORT_DELAYS_MAX: u64 = TELLING_MIN;

/// Delays in a row, at all boundaries so far, that were far shorter than what is kept.
#[derive(Clone, Debug)]
pub(super) struct Learnt {
    short_delays: u64, // at most SHORT_DELAYS_MAX
    /// Boundaries before this epoch taught what was known at the beginning.
    from: Epoch,
    /// How many there were before the boundary at which an epoch starts, where that changed.
    changes: VecDeque<(Epoch, u64)>, // at most CHANGES_MAX
    /// The boundary that was looked at last.
    last: Epoch,
}

impl Default for Learnt {
    fn default() -> Self {
        Self::resumed((Epoch(i64::MIN), 0))
    }
}

impl Learnt {
    /// Boundaries before an epoch have shown so many.
    pub(super) fn resumed((from, short_delays): (Epoch, u64)) -> Self {
        let short_delays = short_delays.min(SHORT_DELAYS_MAX);
        Self { short_delays, from, changes: VecDeque::new(), last: Epoch(i64::MIN) }
    }

    /// Takes what the boundary at which an epoch starts has shown, and tells how many there were,
    /// those included.
    pub(super) fn note(&mut self, epoch: Epoch, evidence: &Evidence) -> u64 {
        if epoch < self.from {
            return self.short_delays;
        }
        if self.changes.back().is_none_or(|&(_, before)| before != self.short_delays) {
            self.changes.push_back((epoch, self.short_delays));
        }
        if self.changes.len() > CHANGES_MAX {
            self.changes.pop_front();
        }
        let before = if evidence.is_short() { self.short_delays } else { 0 };
        self.short_delays = before.saturating_add(evidence.matched).min(SHORT_DELAYS_MAX);
        self.last = self.last.max(epoch);
        self.short_delays
    }

    /// How many there were before the boundary at which an epoch starts.
    pub(super) fn before(&self, epoch: Epoch) -> u64 {
        let before = self.changes.iter().rev().find(|&&(changed, _)| changed <= epoch);
        match before.or(self.changes.front()) {
            Some(&(_, before)) if epoch <= self.last => before,
            _ => self.short_delays,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Boundaries of epochs 1, 2, … that matched so many packets; `None` where delays were long.
    fn learn(mut learnt: Learnt, matched: &[Option<u64>]) -> Learnt {
        for (epoch, matched) in (1..).zip(matched) {
            let strain = if matched.is_some() { 0.0 } else { 1.0 };
            let matched = matched.unwrap_or(5);
            learnt.note(Epoch(epoch), &Evidence { matched, strain, ..Evidence::default() });
        }
        learnt
    }

    #[track_caller]
    fn check(matched: &[Option<u64>], before: &[u64]) {
        let all = learn(Learnt::default(), matched);
        for (epoch, before) in (1..).zip(before) {
            assert_eq!(all.before(Epoch(epoch)), *before, "before {epoch}");
            // One that goes on from there ends as the other did, whatever it sees again.
            let resumed = learn(Learnt::resumed((Epoch(epoch), *before)), matched);
            assert_eq!(resumed.short_delays, all.short_delays, "from {epoch}");
        }
    }

    #[test]
    fn what_was_known_when_is_remembered() {
        check(&[Some(2), Some(2), Some(0), Some(3)], &[0, 2, 4, 4, 7]);
        check(&[Some(3), None, Some(1)], &[0, 3, 5, 6]);
        check(&[Some(100), Some(1), None, Some(1)], &[0, 8, 8, 5, 6]);
    }

    #[test]
    fn changes_are_bounded() {
        let learnt = learn(Learnt::default(), &[Some(1), None].repeat(2 * CHANGES_MAX));
        assert_eq!(learnt.changes.len(), CHANGES_MAX);
        let last = 4 * CHANGES_MAX as i64;
        assert_eq!((learnt.before(Epoch(last - 1)), learnt.before(Epoch(last))), (5, 6));
    }
}
