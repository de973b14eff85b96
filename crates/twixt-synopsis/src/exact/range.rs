//! Between what delays lie, by those that were seen.

use twixt_model::{Delay, Observation};

use super::alignment::{Alignment, Band};
use super::records::FlowDelay;
use crate::pile::{Part, Sorted};
use crate::tail;

/// As few delays say nothing of how long delays may be.
const TELLING_MIN: usize = 8;
/// The range of many delays is wider than what was seen of it, by this share of it.
const MARGIN_MIN: f64 = 0.05;
/// In so many flows, an identical packet is once slower than expected.
const SLOWER_EVERY: f64 = 20.0;
/// Identical packets are slower than those that occur once by no more than so many times the range.
const REACH: i64 = 10;

/// How much slower than the slowest that were seen others of the same flow may be.
pub(super) struct Slower {
    /// Shape of the tail of the delays of all flows, each relative to its median.
    shape: f64,
}

impl Slower {
    /// By delays of many flows, each relative to the median of its flow.
    pub(super) fn of(relative: &Sorted<Delay>) -> Self {
        let ascending = relative.iter().map(|delay| delay.as_nanos() as f64);
        let shape = tail::shape_of_sorted(relative.len(), ascending).unwrap_or_default().max(0.0);
        Self { shape }
    }

    /// The delays of so many identical packets, by those of the same flow that occur once.
    pub(super) fn range(
        &self,
        flow: &Part<'_, FlowDelay>,
        identical: usize,
        window: Band,
    ) -> Option<Band> {
        let ascending = || flow.iter().map(|record| record.delay);
        let seen = SeenDelays::of(flow.len(), ascending())?;
        let values = ascending().map(|delay| delay.as_nanos() as f64);
        let times = SLOWER_EVERY * identical as f64 / flow.len() as f64;
        let shape = tail::shape_of_sorted(flow.len(), values).unwrap_or(self.shape).max(0.0);
        let slowest = seen.high;
        let band = seen.range(window)?;
        // By as much do the largest of so many times as many values exceed the largest of these.
        let factor = times.max(1.0).powf(shape) - 1.0;
        let margin = ((slowest - band.median).as_nanos() as f64 * factor) as i64;
        let high = (slowest + Delay::from_nanos(margin)).max(band.high).min(window.high);
        Some(Band { high, ..band })
    }
}

/// What some delays are like.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenDelays {
    pub(super) count: usize,
    pub(super) low: Delay,
    /// Of an even number the upper one of the two in the middle.
    pub(super) median: Delay,
    pub(super) high: Delay,
}

impl SeenDelays {
    /// Of so many delays in order; `None` if there are none.
    pub(super) fn of(count: usize, mut ascending: impl Iterator<Item = Delay>) -> Option<Self> {
        let low = ascending.next()?;
        let (mut median, mut high) = (low, low);
        for (index, delay) in (1..count).zip(ascending) {
            if index == count / 2 {
                median = delay;
            }
            high = delay;
        }
        Some(Self { count, low, median, high })
    }

    /// What delays usually are, within what is possible; `None` if there are too few of them to tell.
    pub(super) fn range(&self, window: Band) -> Option<Band> {
        let Self { count, low, median, high } = *self;
        let share = (TELLING_MIN as f64 / count as f64).max(MARGIN_MIN);
        let margin = Delay::from_nanos(((high - low).as_nanos() as f64 * share) as i64);
        (count >= TELLING_MIN).then(|| Band {
            low: (low - margin).max(window.low),
            median,
            high: (high + margin).min(window.high),
        })
    }
}

impl Band {
    /// No more to either side than it takes to match as many packets as in [`REACH`] times the range.
    pub(super) fn reaching(
        self,
        sent: &[Observation],
        received: &[Observation],
        within: Self,
    ) -> Self {
        let most = Delay::from_nanos((self.high - self.low).as_nanos().saturating_mul(REACH));
        let (low, high) = ((self.low - most).max(within.low), (self.high + most).min(within.high));
        let count = |band: Self| Alignment::count(sent, received, band);
        let full = count(Self { high, ..self });
        let more = least((high - self.high).as_nanos(), |more| {
            count(Self { high: self.high + Delay::from_nanos(more), ..self }) == full
        });
        let upward = Self { high: self.high + Delay::from_nanos(more), ..self };
        let full = count(Self { low, ..upward });
        let more = least((self.low - low).as_nanos(), |more| {
            count(Self { low: self.low - Delay::from_nanos(more), ..upward }) == full
        });
        Self { low: self.low - Delay::from_nanos(more), ..upward }
    }
}

/// The least number up to a largest one that is enough.
fn least(most: i64, is_enough: impl Fn(i64) -> bool) -> i64 {
    let (mut below, mut enough) = (-1, most.max(0));
    while enough - below > 1 {
        let middle = below + (enough - below) / 2;
        match is_enough(middle) {
            true => enough = middle,
            false => below = middle,
        }
    }
    enough
}
