//! Identical packets: which of those sent are those received, in order and within a range of delays.
//!
//! As many as possible are matched. Matching each as early as possible, and each as late as
//! possible, gives all that any other way of matching as many can lie between: packets that overtook
//! each other change single delays, but not their sum.

use twixt_model::{Delay, Observation};

/// Runs of packets that can be matched in several ways are matched so as to be nearest to the median,
/// if there are no more combinations than this: it takes a byte and some nanoseconds for each.
const COMBINATIONS_MAX: usize = 1 << 24;

/// Delays that are possible.
#[derive(Clone, Copy, Debug)]
pub(super) struct Band {
    pub(super) low: Delay,
    pub(super) median: Delay,
    pub(super) high: Delay,
}

impl Band {
    pub(super) fn contains(&self, delay: Delay) -> bool {
        (self.low..=self.high).contains(&delay)
    }

    /// As much again to either side, within another.
    pub(super) fn widened(&self, within: Self) -> Self {
        let width = self.high - self.low;
        let (low, high) =
            ((self.low - width).max(within.low), (self.high + width).min(within.high));
        Self { low, high, ..*self }
    }
}

/// The delay of a packet, and between what it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Matched {
    pub(crate) delay: Delay,
    /// Delays of all packets add up to no less and no more than these do.
    pub(crate) least: Delay,
    pub(crate) most: Delay,
    /// Its own delay, if packets may have overtaken each other.
    pub(crate) low: Delay,
    pub(crate) high: Delay,
}

impl Matched {
    /// Nothing else is possible.
    pub(super) const fn certain(delay: Delay) -> Self {
        Self { delay, least: delay, most: delay, low: delay, high: delay }
    }

    /// Its delay may as well be another.
    pub(super) fn or(self, other: Delay) -> Self {
        Self {
            least: self.least.min(other),
            most: self.most.max(other),
            low: self.low.min(other),
            high: self.high.max(other),
            ..self
        }
    }

    /// Whether nothing else is possible.
    pub(super) fn is_plain(&self) -> bool {
        *self == Self::certain(self.delay)
    }

    /// Whether its share of the sum is beyond doubt.
    pub(crate) fn is_certain(&self) -> bool {
        self.least == self.most
    }
}

/// Packets that were sent and received.
pub(super) struct Alignment {
    /// Indexes of those sent and those received.
    pub(super) matches: Vec<(Indexes, Matched)>,
}

impl Alignment {
    /// How many can be matched.
    pub(super) fn count(sent: &[Observation], received: &[Observation], band: Band) -> usize {
        Run { sent, received, band }.earliest().len()
    }

    /// Of identical packets by time.
    pub(super) fn new(sent: &[Observation], received: &[Observation], band: Band) -> Self {
        let run = Run { sent, received, band };
        let (earliest, latest) = (run.earliest(), run.latest());
        let mut pairs = Vec::with_capacity(earliest.len());
        let mut start = 0;
        while start < earliest.len() {
            let is_open = |place: &usize| earliest[*place] != latest[*place];
            let end = (start..earliest.len()).take_while(is_open).count() + start;
            run.choose(&earliest[start..end], &latest[start..end], &mut pairs);
            pairs.extend(earliest.get(end));
            start = end + 1;
        }
        let places = pairs.into_iter().zip(earliest.into_iter().zip(latest));
        Self {
            matches: places.map(|(pair, (first, last))| run.matched(pair, first, last)).collect(),
        }
    }
}

/// What is done with the last of some packets sent and of some received.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Step {
    SkipSent,
    SkipReceived,
    Pair,
}

/// Pairs, and how far their delays are from the median altogether.
#[derive(Clone, Copy, Default)]
struct Best {
    count: u32,
    distance: u64,
}

impl Best {
    const fn is_better(self, other: Self) -> bool {
        self.count > other.count || (self.count == other.count && self.distance < other.distance)
    }

    fn with(self, delay: Delay, band: Band) -> Option<Self> {
        let more = (delay - band.median).as_nanos().unsigned_abs();
        let distance = self.distance.saturating_add(more);
        band.contains(delay).then_some(Self { count: self.count + 1, distance })
    }
}

/// Indexes of a packet upstream and downstream.
pub(super) type Indexes = (usize, usize);

struct Run<'a> {
    sent: &'a [Observation],
    received: &'a [Observation],
    band: Band,
}

impl Run<'_> {
    fn delay(&self, (sent, received): Indexes) -> Delay {
        self.received[received].time - self.sent[sent].time
    }

    /// As many pairs as possible, each as early as possible.
    fn earliest(&self) -> Vec<Indexes> {
        let (mut pairs, mut sent) = (Vec::new(), 0);
        for received in 0..self.received.len() {
            while sent < self.sent.len() && self.delay((sent, received)) > self.band.high {
                sent += 1;
            }
            if sent < self.sent.len() && self.delay((sent, received)) >= self.band.low {
                pairs.push((sent, received));
                sent += 1;
            }
        }
        pairs
    }

    /// As many pairs as possible, each as late as possible.
    fn latest(&self) -> Vec<Indexes> {
        let (mut pairs, mut beyond) = (Vec::new(), self.sent.len());
        for received in (0..self.received.len()).rev() {
            while beyond > 0 && self.delay((beyond - 1, received)) < self.band.low {
                beyond -= 1;
            }
            if beyond > 0 && self.delay((beyond - 1, received)) <= self.band.high {
                pairs.push((beyond - 1, received));
                beyond -= 1;
            }
        }
        pairs.reverse();
        pairs
    }

    /// As many pairs between the earliest and the latest as there are of them, such that delays are
    /// nearest to the median.
    fn choose(&self, earliest: &[Indexes], latest: &[Indexes], pairs: &mut Vec<Indexes>) {
        let (Some(first), Some(last)) = (earliest.first(), latest.last()) else { return };
        let (rows, columns) = (last.0 - first.0 + 1, last.1 - first.1 + 1);
        if rows.saturating_mul(columns) > COMBINATIONS_MAX {
            // In the middle: what it may be is known all the same.
            let middle = earliest.iter().zip(latest);
            pairs.extend(
                middle.map(|(early, late)| ((early.0 + late.0) / 2, (early.1 + late.1) / 2)),
            );
            return;
        }
        let mut steps = vec![Step::SkipSent; rows * columns];
        // Most pairs, then least distance, of the first packets sent with the first received.
        let mut above = vec![Best::default(); columns + 1];
        for row in 0..rows {
            let mut here = vec![Best::default(); columns + 1];
            for column in 0..columns {
                let (skip_sent, skip_received) = (above[column + 1], here[column]);
                let (mut best, mut step) = (skip_sent, Step::SkipSent);
                if skip_received.is_better(best) {
                    (best, step) = (skip_received, Step::SkipReceived);
                }
                let delay = self.delay((first.0 + row, first.1 + column));
                let paired = above[column].with(delay, self.band);
                if let Some(paired) = paired.filter(|paired| paired.is_better(best)) {
                    (best, step) = (paired, Step::Pair);
                }
                here[column + 1] = best;
                steps[row * columns + column] = step;
            }
            above = here;
        }
        let (start, mut row, mut column) = (pairs.len(), rows, columns);
        while row > 0 && column > 0 {
            match steps[(row - 1) * columns + column - 1] {
                Step::SkipSent => row -= 1,
                Step::SkipReceived => column -= 1,
                Step::Pair => {
                    (row, column) = (row - 1, column - 1);
                    pairs.push((first.0 + row, first.1 + column));
                }
            }
        }
        pairs[start..].reverse();
    }

    /// A pair, which is between the earliest and the latest of its place.
    fn matched(&self, pair: Indexes, first: Indexes, last: Indexes) -> (Indexes, Matched) {
        let Band { low, high, .. } = self.band;
        let delay = self.delay(pair);
        let least = self.delay((last.0, first.1)).max(low).min(delay);
        let most = self.delay((first.0, last.1)).min(high).max(delay);
        let received = self.received[pair.1].time;
        let (oldest, newest) = self.possible(pair);
        let own = |sent: usize| received - self.sent[sent].time;
        (
            pair,
            Matched {
                delay,
                least,
                most,
                low: own(newest).min(least),
                high: own(oldest).max(most),
            },
        )
    }

    /// The first and the last packet sent that may be the one received.
    fn possible(&self, (sent, received): Indexes) -> (usize, usize) {
        let time = self.received[received].time;
        let is_early = |packet: &Observation| time - packet.time > self.band.high;
        let is_possible = |packet: &Observation| time - packet.time >= self.band.low;
        let oldest = self.sent.partition_point(is_early).min(sent);
        let newest = self.sent.partition_point(is_possible).max(sent + 1) - 1;
        (oldest, newest)
    }
}

#[cfg(test)]
mod tests;
