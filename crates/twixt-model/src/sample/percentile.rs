//! Percentiles by order statistics, with intervals that assume nothing of the distribution.
//!
//! Of n packets chosen at random, the number that lie below the p-quantile of all is binomial,
//! whatever the delays are. So the quantile lies between two order statistics of the sample whose
//! ranks follow from n and p alone. Where no order statistic is far enough up, the sample cannot
//! carry an interval, and then the percentile is not known.

use std::fmt;

use super::{SampleLevel, SampledDelay};
use crate::Percentile;

/// What may lie beyond each end of a 95 % interval.
const TAIL: f64 = 0.025;

/// Too few packets for an interval of a percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TooFew {
    /// The share that was asked for.
    pub share: f64,
    /// Packets that the sample is worth.
    pub packets: u64,
    /// Packets that it takes.
    pub needed: u64,
}

impl fmt::Display for TooFew {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { share, packets, needed } = self;
        // 0.999 as 99.9, without the noise of the last bits.
        let percent = (share * 1e6).round() / 1e4;
        write!(formatter, "p{percent} needs {needed} sampled packets, there are {packets}")
    }
}

impl std::error::Error for TooFew {}

/// Packets without which no interval of this percentile has an upper or a lower end: the largest
/// of n lies above the p-quantile with probability 1 - p^n, which must reach 97.5 %; and the
/// smallest below it alike.
#[must_use]
pub fn needed_for(share: f64) -> u64 {
    let outer = share.max(1.0 - share);
    (TAIL.ln() / outer.ln()).ceil() as u64
}

/// Of packets in ascending order.
pub(super) fn percentile(sorted: &[SampledDelay], share: f64) -> Result<Percentile, TooFew> {
    let weights = Weights::of(sorted);
    if weights.is_everything && !sorted.is_empty() {
        let time_ns = weights.at(sorted, share);
        return Ok(Percentile { share, time_ns, low_ns: time_ns, high_ns: time_ns });
    }
    let packets = weights.effective as u64;
    let (low, high) =
        bounds(packets, share).ok_or(TooFew { share, packets, needed: needed_for(share) })?;
    let ranked = |rank: u64| weights.at(sorted, (rank - 1) as f64 / packets as f64);
    Ok(Percentile {
        share,
        time_ns: weights.at(sorted, share),
        low_ns: ranked(low),
        high_ns: ranked(high),
    })
}

/// How packets of different levels count.
struct Weights {
    sum: f64,
    /// Packets of equal weight that would tell as much (Kish): the squared sum of weights over
    /// the sum of their squares.
    effective: f64,
    /// Whether they are all the packets there were.
    is_everything: bool,
}

impl Weights {
    fn of(packets: &[SampledDelay]) -> Self {
        let (mut sum, mut squares, mut is_everything) = (0.0, 0.0, true);
        for packet in packets {
            let weight = packet.level.weight();
            sum += weight;
            squares += weight * weight;
            is_everything &= packet.level == SampleLevel::ALL;
        }
        // Equal weights give a whole number but for the last digits.
        let effective = if squares > 0.0 { sum * sum / squares + 1e-6 } else { 0.0 };
        Self { sum, effective, is_everything }
    }

    /// The smallest delay with more than this share of the weight up to it: with equal weights the
    /// element `floor(share n)`, as for exact order statistics.
    fn at(&self, sorted: &[SampledDelay], share: f64) -> i64 {
        let wanted = share * self.sum * (1.0 + 1e-12);
        let mut up_to = 0.0;
        let found = sorted.iter().find(|packet| {
            up_to += packet.level.weight();
            up_to > wanted
        });
        found.or(sorted.last()).map_or(0, |packet| packet.delay.as_nanos())
    }
}

/// Ranks (from 1) of the order statistics of `count` packets between which the quantile lies with
/// at least 95 %; `None` if there are none.
fn bounds(count: u64, share: f64) -> Option<(u64, u64)> {
    if share < 0.5 {
        let (low, high) = bounds(count, 1.0 - share)?;
        return Some((count + 1 - high, count + 1 - low));
    }
    if count < needed_for(share) {
        return None;
    }
    // Of the number C of packets above the quantile, which is seldom large: the most that C
    // stays at or below with no more than the tail's probability, and the least that it reaches
    // with no more than that.
    let above = 1.0 - share;
    let odds = (above / share).ln();
    let (mut log_mass, mut up_to) = (count as f64 * share.ln(), 0.0);
    let (mut fewest, mut most) = (None, None);
    for above in 0..=count {
        up_to += f64::exp(log_mass);
        if up_to <= TAIL {
            fewest = Some(above);
        }
        if up_to >= 1.0 - TAIL {
            most = Some(above + 1);
            break;
        }
        log_mass += ((count - above) as f64 / (above + 1) as f64).ln() + odds;
    }
    let (low, high) = (count + 1 - most.unwrap_or(count), count - fewest?);
    (low >= 1).then_some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(count: u64, share: f64, expected: Option<(u64, u64)>) {
        assert_eq!(bounds(count, share), expected);
    }

    #[test]
    fn ranks_are_those_of_the_binomial_distribution() {
        // By adding up binomial coefficients one by one: the largest l with F(l - 1) <= 0.025, the
        // smallest u with F(u - 1) >= 0.975.
        check(5, 0.5, None);
        check(6, 0.5, Some((1, 6)));
        check(20, 0.5, Some((6, 15)));
        check(100, 0.5, Some((40, 61)));
        check(71, 0.95, None);
        check(72, 0.95, Some((64, 72)));
        check(200, 0.95, Some((184, 197)));
        check(1000, 0.99, Some((983, 997)));
        check(3687, 0.999, None);
        check(3688, 0.999, Some((3680, 3688)));
        check(100, 0.05, Some((1, 11)));
    }

    #[test]
    fn what_it_takes_follows_from_the_largest_of_all() {
        let needed: Vec<u64> = [0.5, 0.95, 0.99, 0.999].map(needed_for).to_vec();
        assert_eq!(needed, [6, 72, 368, 3688]);
        assert_eq!(needed_for(0.05), 72);
    }

    #[test]
    fn large_samples_cost_no_precision() {
        // Normal approximation: 0.99 n -+ 1.96 sqrt(n 0.99 0.01), within one rank.
        let (low, high) = bounds(1_000_000, 0.99).unwrap();
        assert!(low.abs_diff(989_805) <= 2 && high.abs_diff(990_196) <= 2, "{low} {high}");
    }

    #[test]
    fn the_message_says_what_is_missing() {
        let few = TooFew { share: 0.999, packets: 240, needed: 3688 };
        assert_eq!(few.to_string(), "p99.9 needs 3688 sampled packets, there are 240");
    }
}
