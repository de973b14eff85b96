//! Which record upstream and which downstream tell of the same packets.
//!
//! Records come one by one, from both points, about in the order in which they were closed. Only
//! records of one flow are ever compared, and only as long as a partner may still come: memory is
//! bounded by the window, not by the stream. Nothing here knows estimators.

mod label;
#[cfg(test)]
mod tests;
mod times;
mod timing;

use std::collections::VecDeque;

use twixt_model::{Delay, FlowRecord, Side, Timestamp};

use self::label::Labels;
use self::times::Times;
use super::merge::in_order;

pub use timing::{TimingBounds, TimingVerdict, judge_by_timing};

/// How records are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// By the labels of their first and last packets.
    Label,
    /// By their times, packets and bytes alone: all that ordinary exporters give.
    Timing(TimingBounds),
}

/// A record of each point, of which at least one end is the same packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Associated {
    /// Closed by the upstream point.
    pub upstream: FlowRecord,
    /// Closed by the downstream point.
    pub downstream: FlowRecord,
    /// Both begin with the same packet.
    pub same_first: bool,
    /// Both end with the same packet.
    pub same_last: bool,
}

impl Associated {
    /// When the packets at both ends passed upstream, and their delays. A record of one packet
    /// is one delay, not two.
    pub fn delays(&self) -> impl Iterator<Item = (Timestamp, Delay)> + use<> {
        let Self { upstream, downstream, same_first, same_last } = *self;
        let first = same_first.then(|| (upstream.first, downstream.first - upstream.first));
        let single = upstream.packets == 1 && downstream.packets == 1 && same_first;
        let last = (same_last && !single).then(|| (upstream.last, downstream.last - upstream.last));
        first.into_iter().chain(last)
    }
}

/// What became of the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AssociationCounts {
    /// Records of the upstream point.
    pub upstream: u64,
    /// Records of the downstream point.
    pub downstream: u64,
    /// Pairs.
    pub associated: u64,
    /// Upstream records whose partner did not come, or was ambiguous.
    pub unmatched: u64,
    /// Upstream records with a partner that was not trusted: packets or bytes differ, a timeout
    /// was near, or the flow was out of step after such a pair.
    pub doubtful: u64,
    /// Records that made place for others before their time: raise `records_max`.
    pub displaced: u64,
    /// Records that came later than the window allows: their partners may be given up already.
    pub overdue: u64,
    /// How often so many came in a row that a clock must have been set back.
    pub clock_steps: u64,
}

/// Brings together the records of two points.
#[derive(Debug)]
pub struct Association {
    waiting: Waiting,
    /// A record waits so long for its partner.
    window_ns: i64,
    records_max: usize,
    latest: Timestamp,
    overdue_in_a_row: u32,
    ready: VecDeque<Associated>,
    counts: AssociationCounts,
}

/// Overdue records in a row that are taken for a step of the clock.
const CLOCK_STEP_RECORDS: u32 = 16;

#[derive(Debug)]
enum Waiting {
    Labels(Labels),
    Times(Times),
}

impl Association {
    /// Records that wait at once, at most, if the user does not say otherwise.
    pub const RECORDS_MAX: usize = 1 << 22;

    /// Nothing associated yet. A record waits `window_ns` for its partner: as long as exporters
    /// may take to close a record, so the active and the inactive timeout.
    #[must_use]
    pub fn new(rule: Rule, window_ns: u64, records_max: usize) -> Self {
        let window_ns = i64::try_from(window_ns).unwrap_or(i64::MAX);
        let waiting = match rule {
            Rule::Label => Waiting::Labels(Labels::default()),
            Rule::Timing(bounds) => Waiting::Times(Times::new(bounds, window_ns)),
        };
        Self {
            waiting,
            window_ns,
            records_max: records_max.max(1),
            latest: Timestamp::MIN,
            overdue_in_a_row: 0,
            ready: VecDeque::new(),
            counts: AssociationCounts::default(),
        }
    }

    /// Takes a record.
    pub fn offer(&mut self, side: Side, record: FlowRecord) {
        match side {
            Side::Upstream => self.counts.upstream += 1,
            Side::Downstream => self.counts.downstream += 1,
        }
        let due = self.due_before(record.last);
        let Self { waiting, ready, counts, .. } = self;
        match waiting {
            Waiting::Labels(labels) => {
                if let Some(pair) = labels.offer(side, record) {
                    counts.associated += 1;
                    ready.push_back(pair);
                }
                while let Some((side, _)) = labels.take_older(due) {
                    counts.give_up(side);
                }
                if labels.len() > self.records_max
                    && let Some((side, _)) = labels.take_oldest()
                {
                    counts.displaced += 1;
                    counts.give_up(side);
                }
            }
            Waiting::Times(times) => {
                times.offer(side, record);
                times.conclude_older(due, ready, counts);
                if times.len() > self.records_max {
                    // No room left to wait in: what is there is judged as it is.
                    counts.displaced += times.len() as u64;
                    times.conclude_all(ready, counts);
                }
            }
        }
    }

    /// Moves time on to the end of a record that came; what ended before has waited long enough.
    ///
    /// A record that is overdue as it comes is late. Many in a row show that the clock was ahead:
    /// time goes on from theirs, or one false time would keep all later records apart.
    fn due_before(&mut self, last: Timestamp) -> Timestamp {
        let is_overdue = last < before(self.latest, self.window_ns);
        self.counts.overdue += u64::from(is_overdue);
        self.overdue_in_a_row = if is_overdue { self.overdue_in_a_row + 1 } else { 0 };
        if self.overdue_in_a_row >= CLOCK_STEP_RECORDS {
            self.counts.clock_steps += 1;
            self.overdue_in_a_row = 0;
            self.finish();
            self.latest = last;
        }
        self.latest = self.latest.max(last);
        before(self.latest, self.window_ns)
    }

    /// No pair that is still to come has a packet that passed upstream before this time, if records
    /// come in time.
    #[must_use]
    pub fn settled_before(&self) -> Timestamp {
        let due = before(self.latest, self.window_ns);
        match &self.waiting {
            // A record that is due began a timeout ago at most, and so did its partner; the window
            // is longer than that.
            Waiting::Labels(_) => due,
            // Pairs are handed over when they are due.
            Waiting::Times(times) => before(due, times.longest_wait_ns()),
        }
    }

    /// Concludes with what there is: no more records come.
    pub fn finish(&mut self) {
        let Self { waiting, ready, counts, .. } = self;
        match waiting {
            Waiting::Labels(labels) => {
                while let Some((side, _)) = labels.take_oldest() {
                    counts.give_up(side);
                }
            }
            Waiting::Times(times) => times.conclude_all(ready, counts),
        }
    }

    /// The next pair.
    pub fn poll(&mut self) -> Option<Associated> {
        self.ready.pop_front()
    }

    /// What became of the records so far.
    #[must_use]
    pub const fn counts(&self) -> AssociationCounts {
        self.counts
    }

    /// Records that wait for their partner.
    #[must_use]
    pub fn waiting(&self) -> usize {
        match &self.waiting {
            Waiting::Labels(labels) => labels.len(),
            Waiting::Times(times) => times.len(),
        }
    }
}

fn before(time: Timestamp, length_ns: i64) -> Timestamp {
    Timestamp::from_nanos(time.as_nanos().saturating_sub(length_ns))
}

impl AssociationCounts {
    fn give_up(&mut self, side: Side) {
        self.unmatched += u64::from(side == Side::Upstream);
    }
}

/// The pairs among all records of two points, each point's in the order in which they were closed.
#[must_use]
pub fn associate(
    rule: Rule,
    upstream: &[FlowRecord],
    downstream: &[FlowRecord],
) -> Vec<Associated> {
    // All are there already: nothing is gained by giving up early.
    let mut association = Association::new(rule, u64::MAX, usize::MAX);
    for (side, record) in in_order(upstream.iter().copied(), downstream.iter().copied(), u64::MAX) {
        association.offer(side, record);
    }
    association.finish();
    std::iter::from_fn(|| association.poll()).collect()
}
