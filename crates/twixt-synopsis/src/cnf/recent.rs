//! The delays at the ends of records of a stream, for as long as a record may ask for them.
//!
//! Pairs do not come in the order of their times. A delay therefore waits until all that passed
//! before it must have come, and lies in order from then on, until no record reaches back so far.

use std::collections::{BTreeMap, VecDeque};

use twixt_model::{ClassId, Delay, Timestamp};

use super::endpoints::{Sums, without_largest};

/// Delays of the last while, by class.
#[derive(Debug)]
pub(super) struct RecentDelays {
    classes: BTreeMap<ClassId, Settled>,
    /// Not in order yet.
    waiting: Vec<(ClassId, Timestamp, Delay)>,
    /// All before this time are in order.
    settled: Timestamp,
    /// A record reaches back so far.
    reach_ns: i64,
    delays_max: usize,
    /// The share of the largest delays that is left out.
    outliers: f64,
    /// Delays that came after those of their time were put in order: not used.
    pub(super) late: u64,
    /// Delays that had to go for want of room while records may still ask for them.
    pub(super) forgotten: u64,
}

/// Delays of one class in the order of their upstream times.
#[derive(Debug, Default)]
struct Settled {
    /// Apart from the sums: these are searched.
    times: VecDeque<Timestamp>,
    /// Of each delay and all that were before it.
    sums: VecDeque<Sums>,
    /// The sums of all that are gone.
    gone: Sums,
}

impl RecentDelays {
    pub(super) const fn new(reach_ns: i64, delays_max: usize, outliers: f64) -> Self {
        Self {
            classes: BTreeMap::new(),
            waiting: Vec::new(),
            settled: Timestamp::MIN,
            reach_ns,
            delays_max,
            outliers,
            late: 0,
            forgotten: 0,
        }
    }

    /// Delays that are held.
    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.classes.values().map(|class| class.times.len()).sum::<usize>()
    }

    /// Delays that are not in order yet.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The time that half of those have passed before; `None` if there are none.
    pub(super) fn middle(&mut self) -> Option<Timestamp> {
        let middle = self.waiting.len() / 2;
        let nanoseconds = |&(_, time, _): &(ClassId, Timestamp, Delay)| time.as_nanos();
        (!self.waiting.is_empty()).then(|| {
            let (_, delay, _) = self.waiting.select_nth_unstable_by_key(middle, nanoseconds);
            Timestamp::from_nanos(nanoseconds(delay).saturating_add(1))
        })
    }

    pub(super) fn add(&mut self, class: ClassId, time: Timestamp, delay: Delay) {
        self.waiting.push((class, time, delay));
    }

    /// Puts in order what passed before that time: nothing older comes any more. Of what is put in
    /// order at once the largest delays are left out.
    pub(super) fn settle(&mut self, before: Timestamp) {
        let mut batches: BTreeMap<ClassId, Vec<(Timestamp, Delay)>> = BTreeMap::new();
        self.waiting.retain(|&(class, time, delay)| {
            let is_settled = time < before;
            if is_settled {
                batches.entry(class).or_default().push((time, delay));
            }
            !is_settled
        });
        for (class, delays) in batches {
            let mut delays = without_largest(delays, self.outliers);
            delays.sort_unstable();
            let settled = self.classes.entry(class).or_default();
            for (time, delay) in delays {
                match time < self.settled {
                    true => self.late += 1,
                    false => settled.push(time, delay),
                }
            }
        }
        self.settled = self.settled.max(before);
    }

    /// Time restarts: a clock was set.
    pub(super) fn restart(&mut self) {
        self.classes.clear();
        self.waiting.clear();
        self.settled = Timestamp::MIN;
    }

    /// The delays of one class between two upstream times, both included.
    pub(super) fn between(&self, class: ClassId, from: Timestamp, to: Timestamp) -> Sums {
        self.classes.get(&class).map(|class| class.between(from, to)).unwrap_or_default()
    }

    /// Lets go of what no record reaches any more.
    pub(super) fn forget(&mut self) {
        let reach = Timestamp::from_nanos(self.settled.as_nanos().saturating_sub(self.reach_ns));
        for class in self.classes.values_mut() {
            while class.times.front().is_some_and(|&time| time < reach) {
                class.pop();
            }
            while class.times.len() > self.delays_max {
                class.pop();
                self.forgotten += 1;
            }
        }
        self.classes.retain(|_, class| !class.times.is_empty());
    }
}

impl Settled {
    fn push(&mut self, time: Timestamp, delay: Delay) {
        let mut sums = match self.sums.back() {
            Some(sums) => *sums,
            None => {
                self.gone = Sums::relative_to(delay);
                self.gone
            }
        };
        sums.add(delay);
        self.times.push_back(time);
        self.sums.push_back(sums);
    }

    fn pop(&mut self) {
        self.times.pop_front();
        if let Some(sums) = self.sums.pop_front() {
            self.gone = sums;
        }
    }

    fn between(&self, from: Timestamp, to: Timestamp) -> Sums {
        let start = self.times.partition_point(|&time| time < from);
        let end = self.times.partition_point(|&time| time <= to).max(start);
        self.sums(end).minus(&self.sums(start))
    }

    /// Of all up to that many of those that are here.
    fn sums(&self, count: usize) -> Sums {
        count.checked_sub(1).map_or(self.gone, |last| self.sums[last])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASS: ClassId = ClassId(0);

    fn at(ns: i64) -> Timestamp {
        Timestamp::from_nanos(ns)
    }

    /// Delays (time, delay), settled at these times as they come.
    fn recent(reach_ns: i64, delays_max: usize, batches: &[(&[(i64, i64)], i64)]) -> RecentDelays {
        let mut recent = RecentDelays::new(reach_ns, delays_max, 0.0);
        for (delays, settled) in batches {
            for &(time, delay) in *delays {
                recent.add(CLASS, at(time), Delay::from_nanos(delay));
            }
            recent.settle(at(*settled));
            recent.forget();
        }
        recent
    }

    #[track_caller]
    fn check(recent: &RecentDelays, from: i64, to: i64, expected: (u64, i128)) {
        let sums = recent.between(CLASS, at(from), at(to));
        assert_eq!((sums.count, sums.sum_ns()), expected);
    }

    #[test]
    fn delays_are_found_once_they_are_in_order() {
        let found = recent(100, 99, &[(&[(20, 2), (10, 1), (40, 4)], 30), (&[(30, 3)], 45)]);
        check(&found, 10, 40, (4, 10));
        check(&found, 11, 39, (2, 5));
        check(&found, 41, 99, (0, 0));
        let early = recent(100, 99, &[(&[(20, 2), (10, 1), (40, 4)], 30)]);
        check(&early, 0, 99, (2, 3));
    }

    #[test]
    fn what_no_record_reaches_is_forgotten_and_what_is_late_is_counted() {
        let found = recent(15, 99, &[(&[(10, 1), (20, 2), (30, 3)], 40), (&[(35, 5)], 41)]);
        check(&found, 0, 99, (1, 3));
        assert_eq!((found.late, found.forgotten, found.len()), (1, 0, 1));
        let found = recent(99, 2, &[(&[(10, 1), (20, 2), (30, 3)], 40)]);
        check(&found, 0, 99, (2, 5));
        assert_eq!((found.late, found.forgotten), (0, 1));
    }

    #[test]
    fn the_largest_of_a_batch_are_left_out() {
        let mut found = RecentDelays::new(1000, 1000, 0.25);
        for (time, delay) in [(1, 50), (2, 10), (3, 20), (4, 30)] {
            found.add(CLASS, at(time), Delay::from_nanos(delay));
        }
        found.settle(at(9));
        check(&found, 0, 9, (3, 60));
    }
}
