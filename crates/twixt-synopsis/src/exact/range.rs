//! Between what delays lie, by those that were seen.

use twixt_model::{Delay, Observation};

use super::alignment::{Alignment, Band};
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
    pub(super) fn of<'a>(flows: impl Iterator<Item = &'a [Delay]>) -> Self {
        let relative = flows.filter_map(|delays| {
            let median = median_of(&mut delays.to_vec())?;
            Some(delays.iter().map(move |delay| (*delay - median).as_nanos() as f64))
        });
        let mut all: Vec<f64> = relative.flatten().collect();
        Self { shape: tail::shape(&mut all).unwrap_or_default().max(0.0) }
    }

    /// The delays of so many identical packets, by those of the same flow that occur once.
    pub(super) fn range(&self, delays: Vec<Delay>, identical: usize, window: Band) -> Option<Band> {
        let mut values: Vec<f64> = delays.iter().map(|delay| delay.as_nanos() as f64).collect();
        let slowest = *delays.iter().max()?;
        let times = SLOWER_EVERY * identical as f64 / delays.len() as f64;
        let shape = tail::shape(&mut values).unwrap_or(self.shape).max(0.0);
        let band = range_of(delays, window)?;
        // By as much do the largest of so many times as many values exceed the largest of these.
        let factor = times.max(1.0).powf(shape) - 1.0;
        let margin = ((slowest - band.median).as_nanos() as f64 * factor) as i64;
        let high = (slowest + Delay::from_nanos(margin)).max(band.high).min(window.high);
        Some(Band { high, ..band })
    }
}

/// What delays usually are, within what is possible; `None` if there are too few of them to tell.
pub(super) fn range_of(mut delays: Vec<Delay>, window: Band) -> Option<Band> {
    let (&low, &high) = (delays.iter().min()?, delays.iter().max()?);
    let share = (TELLING_MIN as f64 / delays.len() as f64).max(MARGIN_MIN);
    let margin = Delay::from_nanos(((high - low).as_nanos() as f64 * share) as i64);
    let median = median_of(&mut delays).filter(|_| delays.len() >= TELLING_MIN)?;
    Some(Band {
        low: (low - margin).max(window.low),
        median,
        high: (high + margin).min(window.high),
    })
}

pub(super) fn median_of(delays: &mut [Delay]) -> Option<Delay> {
    let middle = delays.len() / 2;
    (!delays.is_empty()).then(|| *delays.select_nth_unstable(middle).1)
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
