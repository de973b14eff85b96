//! Whole observations kept near an epoch's boundary: copies of what was counted there.
//!
//! Bounded; which ones are kept depends on the observations alone and not on their order, so
//! that merged stashes equal the stash of one meter that saw everything.

use twixt_model::Observation;

/// Largest bound of a stash: 7.5 MiB of message for each side of an epoch.
pub const STASH_LIMIT: usize = 1 << 18;

/// Observations near one boundary of an epoch. Those nearest to it are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stash {
    keep: Keep,
    max: usize, // at most STASH_LIMIT
    observations: Vec<Observation>,
    overflow: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    First,
    Last,
}

impl Stash {
    /// Near an epoch's start: keeps the first `max`, at most [`STASH_LIMIT`].
    #[must_use]
    pub fn head(max: usize) -> Self {
        Self::new(Keep::First, max)
    }

    /// Near an epoch's end: keeps the last `max`, at most [`STASH_LIMIT`].
    #[must_use]
    pub fn tail(max: usize) -> Self {
        Self::new(Keep::Last, max)
    }

    fn new(keep: Keep, max: usize) -> Self {
        Self { keep, max: max.min(STASH_LIMIT), observations: Vec::new(), overflow: 0 }
    }

    /// Keeps a copy.
    pub fn insert(&mut self, observation: Observation) {
        self.observations.push(observation);
        // Letting it grow to twice its size makes dropping the surplus cheap.
        if self.observations.len() > 2 * self.max {
            self.shrink();
        }
    }

    /// Adds what another stash of the same boundary kept, and what it could not keep.
    pub fn merge(&mut self, other: &Self) {
        self.max = self.max.max(other.max);
        self.overflow = self.overflow.saturating_add(other.overflow);
        self.observations.extend_from_slice(&other.observations);
        self.settle();
    }

    /// Cuts it to its bound and sorts it by time, for when nothing more will come.
    pub(crate) fn settle(&mut self) {
        self.shrink();
        self.observations.sort_unstable();
    }

    /// What was kept, in the order of time once the epoch is sealed.
    #[must_use]
    pub fn observations(&self) -> &[Observation] {
        &self.observations
    }

    /// How many it may keep.
    #[must_use]
    pub const fn max(&self) -> usize {
        self.max
    }

    /// How many could not be kept. Those cannot be moved, if they should have been.
    #[must_use]
    pub const fn overflow(&self) -> u64 {
        self.overflow
    }

    /// Discards the observations once they are not needed any more. Counts stay.
    pub(crate) fn forget(&mut self) {
        self.observations = Vec::new();
    }

    pub(crate) fn restored(mut self, observations: Vec<Observation>, overflow: u64) -> Self {
        (self.observations, self.overflow) = (observations, overflow);
        self.settle();
        self
    }

    fn shrink(&mut self) {
        let surplus = self.observations.len().saturating_sub(self.max);
        if surplus == 0 {
            return;
        }
        if self.max > 0 {
            let kept = self.max - 1;
            match self.keep {
                Keep::First => self.observations.select_nth_unstable(kept),
                Keep::Last => {
                    self.observations.select_nth_unstable_by(kept, |one, other| other.cmp(one))
                }
            };
        }
        self.observations.truncate(self.max);
        self.overflow = self.overflow.saturating_add(surplus as u64);
    }
}

#[cfg(test)]
mod tests {
    use twixt_model::Timestamp;

    use super::*;

    fn at(time_ns: i64) -> Observation {
        Observation { time: Timestamp::from_nanos(time_ns), ..Observation::default() }
    }

    #[track_caller]
    fn check(mut stash: Stash, times_ns: &[i64], kept_ns: &[i64], overflow: u64) {
        times_ns.iter().for_each(|&time_ns| stash.insert(at(time_ns)));
        stash.settle();
        let kept: Vec<i64> = stash.observations().iter().map(|kept| kept.time.as_nanos()).collect();
        assert_eq!((kept.as_slice(), stash.overflow()), (kept_ns, overflow));
    }

    #[test]
    fn those_nearest_to_the_boundary_are_kept_and_the_others_counted() {
        let times_ns = [9, 3, 7, 1, 5, 8, 2, 6, 4];
        check(Stash::head(3), &times_ns, &[1, 2, 3], 6);
        check(Stash::tail(3), &times_ns, &[7, 8, 9], 6);
        check(Stash::tail(20), &times_ns, &[1, 2, 3, 4, 5, 6, 7, 8, 9], 0);
        check(Stash::head(0), &times_ns, &[], 9);
    }

    #[test]
    fn merged_stashes_equal_one_that_saw_everything() {
        let times_ns = [9, 3, 7, 1, 5, 8, 2, 6, 4];
        let (mut one, mut other, mut all) = (Stash::tail(3), Stash::tail(3), Stash::tail(3));
        for (index, &time_ns) in times_ns.iter().enumerate() {
            let part = if index % 2 == 0 { &mut one } else { &mut other };
            part.insert(at(time_ns));
            all.insert(at(time_ns));
        }
        one.merge(&other);
        all.settle();
        assert_eq!(one, all);
    }
}
