//! What an algorithm concludes, and why one should believe it.

use crate::{Crossings, Delay, DelaySample, LossRange, Percentile, Scope, Span, Variation};

/// What an algorithm concludes about one scope.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// What it is about.
    pub scope: Scope,
    /// The interval of (upstream) time it covers.
    pub span: Span,
    /// Why one should believe it.
    pub evidence: Evidence,
    /// One-way delay; `None` when there is nothing to conclude it from.
    pub delay: Option<DelayEstimate>,
    /// Why something is not known.
    pub reason: Option<String>,
    /// Delays of packets that were chosen by their digests, where a point kept such: they tell
    /// percentiles.
    pub sample: Option<Box<DelaySample>>,
    /// What is known packet by packet, from algorithms that keep every packet.
    pub crossings: Option<Box<Crossings>>,
}

impl Estimate {
    /// What a share of the packets did not exceed: exactly, from algorithms that keep every packet,
    /// else from the sample. `None` if neither can tell.
    #[must_use]
    pub fn percentile(&self, share: f64) -> Option<Percentile> {
        let exact = self.delay.and_then(|delay| delay.percentile(share));
        let sampled = || self.sample.as_ref().and_then(|sample| sample.percentile(share).ok());
        exact.or_else(sampled)
    }

    /// How delays vary from packet to packet, from algorithms that keep every packet.
    #[must_use]
    pub fn variation(&self) -> Option<Variation> {
        self.crossings.as_ref().and_then(|crossings| crossings.variation)
    }

    /// Jitter: that of RFC 3550 from algorithms that keep every packet, else the mean difference of
    /// packets that follow each other in the sample.
    #[must_use]
    pub fn jitter_ns(&self) -> Option<f64> {
        let sampled = || self.sample.as_ref().and_then(|sample| sample.jitter_ns());
        self.variation().map(|variation| variation.jitter_ns).or_else(sampled)
    }

    /// Why something is not known: the reason, and which percentiles the sample cannot tell.
    #[must_use]
    pub fn reasons(&self) -> Option<String> {
        let unknown = |share: &f64| self.percentile(*share).is_none();
        let sample = self.sample.as_deref().filter(|sample| !sample.packets().is_empty());
        let few = sample.into_iter().flat_map(|sample| {
            let shares = DelaySample::SHARES.iter().filter(|share| unknown(share));
            shares.filter_map(|&share| sample.percentile(share).err())
        });
        let few = few.map(|few| few.to_string());
        let reasons: Vec<String> = self.reason.iter().cloned().chain(few).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Adds to why something is not known.
    pub fn add_reason(&mut self, reason: &str) {
        self.reason = Some(match self.reason.take() {
            Some(before) => format!("{before}; {reason}"),
            None => reason.to_owned(),
        });
    }

    /// Makes loss and strays unknown, if they were known: packets that could not be placed look like
    /// lost ones at one place, and like strays at another.
    pub fn forget_loss(&mut self, reason: &str) {
        let was_known = self.evidence.loss_range().is_some();
        self.evidence.forget_loss();
        if was_known {
            self.add_reason(reason);
        }
    }

    /// Says no more of loss than a range, which is unknown if `None`; `cause` is why.
    pub fn limit_loss(&mut self, range: Option<LossRange>, cause: &str) {
        self.evidence.set_loss(range);
        match range {
            None => self.add_reason(&format!("{cause}: loss is unknown")),
            Some(LossRange { min, max }) if min < max => {
                self.add_reason(&format!("{cause}: loss is between {min} and {max}"));
            }
            Some(_) => {}
        }
    }
}

/// Why one should believe an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Packets that the upstream point counted.
    pub packets: u64,
    /// Packets that the estimate rests on.
    pub used: u64,
    /// Packets that the network lost, where that is known.
    pub lost: Option<u64>,
    /// Bounds on that number, where only these are known.
    pub lost_between: Option<LossRange>,
    /// Packets that downstream observed and upstream did not, where that is known.
    pub strays: Option<u64>,
    /// Bounds on that number, where only these are known.
    pub strays_between: Option<LossRange>,
    /// Bound on the difference of the two clocks, where that is known.
    pub clock_error: Option<Delay>,
    /// Bytes of the packets that the upstream point counted, by their IP headers, where they are
    /// known or estimated.
    pub bytes: Option<u64>,
}

impl Evidence {
    /// Of two parts of the traffic together. What is unknown of one is unknown of both.
    #[must_use]
    pub fn added(self, other: Self) -> Self {
        let sum = |one: Option<LossRange>, other: Option<LossRange>| {
            one.zip(other).map(|(one, other)| one.added(other))
        };
        let mut evidence = Self {
            packets: self.packets.saturating_add(other.packets),
            used: self.used.saturating_add(other.used),
            clock_error: self.clock_error.zip(other.clock_error).map(|(one, other)| one.max(other)),
            bytes: self.bytes.zip(other.bytes).map(|(one, other)| one.saturating_add(other)),
            ..Self::default()
        };
        evidence.set_loss(sum(self.loss_range(), other.loss_range()));
        evidence.set_strays(sum(self.stray_range(), other.stray_range()));
        evidence
    }

    /// Bounds on how many packets the network lost; `None` if nothing is known.
    #[must_use]
    pub const fn loss_range(&self) -> Option<LossRange> {
        match self.lost {
            Some(lost) => Some(LossRange::exactly(lost)),
            None => self.lost_between,
        }
    }

    /// Bounds on how many packets only downstream observed; `None` if nothing is known.
    #[must_use]
    pub const fn stray_range(&self) -> Option<LossRange> {
        match self.strays {
            Some(strays) => Some(LossRange::exactly(strays)),
            None => self.strays_between,
        }
    }

    /// Says no more of loss than a range.
    pub fn set_loss(&mut self, range: Option<LossRange>) {
        self.lost = range.and_then(LossRange::exact);
        self.lost_between = range.filter(|range| range.exact().is_none());
    }

    /// Says no more of strays than a range.
    pub fn set_strays(&mut self, range: Option<LossRange>) {
        self.strays = range.and_then(LossRange::exact);
        self.strays_between = range.filter(|range| range.exact().is_none());
    }

    /// Makes loss and strays unknown.
    pub const fn forget_loss(&mut self) {
        (self.lost, self.lost_between) = (None, None);
        (self.strays, self.strays_between) = (None, None);
    }
}

/// One-way delay in a form that can still be added up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayEstimate {
    /// Packets that `sum_ns` adds up. Never 0.
    pub count: u64,
    /// Sum of their delays. Integer, so that a clock offset of years costs no precision.
    pub sum_ns: i128,
    /// Standard deviation of the delay of single packets, where it is known.
    pub deviation_ns: Option<f64>,
    /// Half the width of the 95 % confidence interval of the mean over all packets that crossed
    /// the segment. 0 where every one of them was measured.
    pub half_width_ns: Option<f64>,
    /// Exact order statistics, from algorithms that keep every packet.
    pub order: Option<OrderStatistics>,
    /// What these are at least and at most, where identical packets can be matched in several ways.
    pub order_range: Option<[OrderStatistics; 2]>,
}

/// Percentile p is the element `min(n - 1, floor(p n))` of the sorted delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderStatistics {
    /// Smallest.
    pub min: Delay,
    /// Median.
    pub p50: Delay,
    /// 95th percentile.
    pub p95: Delay,
    /// 99th percentile.
    pub p99: Delay,
    /// 99.9th percentile.
    pub p999: Delay,
    /// Largest.
    pub max: Delay,
}

impl DelayEstimate {
    /// Mean delay, rounded to the nearest nanosecond.
    #[must_use]
    pub fn mean(&self) -> Delay {
        let count = i128::from(self.count);
        // Not by doubling the sum: a hostile synopsis may have filled all of its bits.
        let (whole, rest) = (self.sum_ns.div_euclid(count), self.sum_ns.rem_euclid(count));
        let rounded = whole + i128::from(2 * rest >= count);
        Delay::from_nanos(rounded.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    }

    /// Mean delay, unrounded. Precise to 1 part in 2^53.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.count as f64
    }

    /// What this estimate and one of other packets say of all of them. Order statistics of two
    /// parts say nothing of the whole.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        let (ours, theirs) = (self.count as f64, other.count as f64);
        let (count, total) = (self.count.saturating_add(other.count), ours + theirs);
        let between = (self.mean() - other.mean()).as_nanos() as f64;
        let deviation = |one: f64, another: f64| {
            let within = (ours * one * one + theirs * another * another) / total;
            (within + ours * theirs / (total * total) * between * between).sqrt()
        };
        // Errors of the two means are independent.
        let width = |one: f64, another: f64| (ours * one / total).hypot(theirs * another / total);
        let both = |one: Option<f64>, another: Option<f64>, how: &dyn Fn(f64, f64) -> f64| {
            one.zip(another).map(|(one, another)| how(one, another))
        };
        Self {
            count,
            sum_ns: self.sum_ns.saturating_add(other.sum_ns),
            deviation_ns: both(self.deviation_ns, other.deviation_ns, &deviation),
            half_width_ns: both(self.half_width_ns, other.half_width_ns, &width),
            order: None,
            order_range: None,
        }
    }

    /// What a share of the packets did not exceed, from algorithms that keep every packet.
    fn percentile(&self, share: f64) -> Option<Percentile> {
        let order = self.order?;
        let [low, high] = self.order_range.unwrap_or([order; 2]);
        let at_ns = |order: OrderStatistics| order.at(share).map(Delay::as_nanos);
        let (time_ns, low_ns, high_ns) = (at_ns(order)?, at_ns(low)?, at_ns(high)?);
        Some(Percentile { share, time_ns, low_ns, high_ns })
    }

    /// The 95 % confidence interval of the mean.
    #[must_use]
    pub fn interval(&self) -> Option<(Delay, Delay)> {
        let half = Delay::from_nanos(self.half_width_ns?.round() as i64);
        Some((self.mean() - half, self.mean() + half))
    }
}

impl OrderStatistics {
    /// Of delays in ascending order; `None` if there are none.
    #[must_use]
    pub fn of_sorted(sorted: &[Delay]) -> Option<Self> {
        Self::of_ascending(sorted.len(), sorted.iter().copied())
    }

    /// Of so many delays in ascending order; `None` if there are none.
    #[must_use]
    pub fn of_ascending(count: usize, ascending: impl Iterator<Item = Delay>) -> Option<Self> {
        let last = count.checked_sub(1)?;
        let place = |share: f64| ((share * count as f64) as usize).min(last);
        let places = [0, place(0.5), place(0.95), place(0.99), place(0.999), last];
        let (mut found, mut next) = ([None; 6], 0);
        for (index, delay) in ascending.enumerate() {
            while next < places.len() && places[next] == index {
                found[next] = Some(delay);
                next += 1;
            }
        }
        let [min, p50, p95, p99, p999, max] = found;
        Some(Self { min: min?, p50: p50?, p95: p95?, p99: p99?, p999: p999?, max: max? })
    }

    /// One of the percentiles that are kept.
    #[must_use]
    pub fn at(&self, share: f64) -> Option<Delay> {
        let kept = DelaySample::SHARES.into_iter().zip([self.p50, self.p95, self.p99, self.p999]);
        kept.into_iter().find(|&(kept, _)| kept == share).map(|(_, delay)| delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(count: u64, sum_ns: i128) -> DelayEstimate {
        DelayEstimate {
            count,
            sum_ns,
            deviation_ns: None,
            half_width_ns: Some(2.0),
            order: None,
            order_range: None,
        }
    }

    #[test]
    fn means_round_to_nearest_and_keep_their_sign() {
        assert_eq!(estimate(8, 90).mean().as_nanos(), 11);
        assert_eq!(estimate(2, -3).mean().as_nanos(), -1);
        assert_eq!(estimate(4, -7).mean().as_nanos(), -2);
        let (low, high) = estimate(8, 90).interval().unwrap();
        assert_eq!((low.as_nanos(), high.as_nanos()), (9, 13));
    }

    #[test]
    fn merged_estimates_are_those_of_all_packets() {
        // 1, 3 and 8, 10, 12: means 2 and 10, variances 1 and 8/3; of all five: 6.8 and 17.36.
        let one = DelayEstimate { deviation_ns: Some(1.0), ..estimate(2, 4) };
        let other = DelayEstimate { deviation_ns: Some((8.0_f64 / 3.0).sqrt()), ..estimate(3, 30) };
        let merged = one.merged(&other);
        assert_eq!((merged.count, merged.sum_ns), (5, 34));
        assert!((merged.deviation_ns.unwrap() - 17.36_f64.sqrt()).abs() < 1e-12);
        assert!(
            (merged.half_width_ns.unwrap() - (0.8_f64.powi(2) + 1.2_f64.powi(2)).sqrt()).abs()
                < 1e-12
        );
    }

    #[test]
    fn an_offset_of_years_costs_no_precision() {
        let years_ns = 100_000_000_000_000_000_i128;
        assert_eq!(estimate(3, 3 * years_ns + 3).mean().as_nanos(), 100_000_000_000_000_001);
    }

    #[test]
    fn percentiles_follow_the_stated_definition() {
        let sorted: Vec<Delay> = (1..=100).map(Delay::from_nanos).collect();
        let order = OrderStatistics::of_sorted(&sorted).unwrap();
        assert_eq!((order.min.as_nanos(), order.max.as_nanos()), (1, 100));
        assert_eq!(
            (order.p50.as_nanos(), order.p95.as_nanos(), order.p99.as_nanos()),
            (51, 96, 100)
        );
        assert_eq!(order.at(0.999), Some(Delay::from_nanos(100)));
        assert_eq!(order.at(0.9), None);
        assert!(OrderStatistics::of_sorted(&[]).is_none());
    }
}
