//! What delays of one scope and epoch say together.

use std::iter::Peekable;
use std::sync::Arc;

use twixt_model::{Delay, DelayEstimate, OrderStatistics};

use super::alignment::Matched;
use super::records::{PlacedDelay, PlacedMatched};
use crate::pile::{Part, Pile};
use crate::spill::SpillPlace;

/// Delays of packets that were measured.
pub(super) struct Delays<'a> {
    /// Of packets that cannot be others.
    pub(super) plain: Part<'a, PlacedDelay>,
    /// Of the others.
    pub(super) doubtful: Part<'a, PlacedMatched>,
    pub(super) place: Option<&'a Arc<dyn SpillPlace>>,
}

impl Delays<'_> {
    /// Every packet that crossed was measured, so the interval of the mean is as wide as the ways differ
    /// in which identical packets can be matched.
    pub(super) fn summary(&self) -> Option<DelayEstimate> {
        let order = OrderStatistics::of_ascending(self.count(), self.ascending())?;
        let count = self.count() as u64;
        let plain: i128 = self.plain.iter().map(|record| i128::from(record.delay.as_nanos())).sum();
        let sum_ns = |pick: fn(&Matched) -> Delay| {
            plain
                + self.doubted().map(|matched| i128::from(pick(&matched).as_nanos())).sum::<i128>()
        };
        let sum = sum_ns(|matched| matched.delay);
        let (least, most) = (sum_ns(|matched| matched.least), sum_ns(|matched| matched.most));
        let half_width_ns = (sum - least).max(most - sum) as f64 / count as f64;
        // Relative to the smallest delay, so that a clock offset of years costs no precision.
        let relative = |delay: Delay| (delay - order.min).as_nanos() as f64;
        let mean = self.ascending().map(relative).sum::<f64>() / count as f64;
        let variance = self.ascending().map(|delay| (relative(delay) - mean).powi(2)).sum::<f64>()
            / count as f64;
        Some(DelayEstimate {
            count,
            sum_ns: sum,
            deviation_ns: Some(variance.sqrt()),
            half_width_ns: Some(half_width_ns),
            order: Some(order),
            order_range: None,
        })
    }

    /// What order statistics would be at least and at most, if so many more packets were among them; `None`
    /// if nothing else is possible.
    pub(super) fn order_range(&self, unmeasured: usize) -> Option<[OrderStatistics; 2]> {
        if unmeasured == 0 && self.doubted().all(|matched| matched.low == matched.high) {
            return None;
        }
        let count = self.count() + unmeasured;
        let lows = self.ends(|matched| matched.low);
        let least = self.merged(lows.iter()).next()?;
        let lows = std::iter::repeat_n(least, unmeasured).chain(self.merged(lows.iter()));
        let highs = self.ends(|matched| matched.high);
        let most = self.merged(highs.iter()).last()?;
        let highs = self.merged(highs.iter()).chain(std::iter::repeat_n(most, unmeasured));
        Some([
            OrderStatistics::of_ascending(count, lows)?,
            OrderStatistics::of_ascending(count, highs)?,
        ])
    }

    /// How many have a share of the sum that is in doubt.
    pub(super) fn uncertain(&self) -> u64 {
        self.doubted().filter(|matched| !matched.is_certain()).count() as u64
    }

    fn count(&self) -> usize {
        self.plain.len() + self.doubtful.len()
    }

    fn doubted(&self) -> impl Iterator<Item = Matched> {
        self.doubtful.iter().map(|record| record.matched)
    }

    fn ascending(&self) -> impl Iterator<Item = Delay> {
        self.merged(self.doubted().map(|matched| matched.delay))
    }

    fn ends(&self, pick: fn(&Matched) -> Delay) -> crate::pile::Sorted<Delay> {
        let mut ends = Pile::new(self.place);
        self.doubted().for_each(|matched| ends.push(pick(&matched)));
        ends.sorted()
    }

    /// Delays of packets that cannot be others, with some of the others in their places.
    fn merged(&self, others: impl Iterator<Item = Delay>) -> impl Iterator<Item = Delay> {
        let plain = self.plain.iter().map(|record| record.delay);
        Ascending { one: plain.peekable(), other: others.peekable() }
    }
}

/// Two ascending sequences as one.
struct Ascending<I: Iterator<Item = Delay>, J: Iterator<Item = Delay>> {
    one: Peekable<I>,
    other: Peekable<J>,
}

impl<I: Iterator<Item = Delay>, J: Iterator<Item = Delay>> Iterator for Ascending<I, J> {
    type Item = Delay;

    fn next(&mut self) -> Option<Delay> {
        let Some(other) = self.other.peek() else { return self.one.next() };
        match self.one.next_if(|delay| delay <= other) {
            Some(delay) => Some(delay),
            None => self.other.next(),
        }
    }
}
