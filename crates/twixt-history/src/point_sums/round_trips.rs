//! Round trips of one kind. Times are added up by their histograms, in which a time stands for as many
//! round trips as were missed beside it: what a bounded table misses stays corrected in sums.

use twixt_model::{Histogram, Percentile, RoundTripEstimate, RoundTripTimes, ShareAbove};

use crate::histogram;
use crate::row::BUCKETS_MAX;

/// Round trips of one kind and scope.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundTripSums {
    /// Packets that could begin one, where they are counted.
    pub requests: Option<u64>,
    /// Packets that could end one, where they are counted.
    pub responses: Option<u64>,
    /// Packets that could begin or end one, if it were known which.
    pub ambiguous: Option<u64>,
    /// Round trips that were measured.
    pub matched: u64,
    /// Round trips that there were, as estimated from those that were measured.
    pub weighted: f64,
    /// How long they took, without the distribution function; `None` if none was measured.
    pub times: Option<RoundTripTimes>,
    /// The longest round trip of which enough could have been measured, if there is such a limit.
    pub horizon_ns: Option<i64>,
    /// Flows whose state gave way to that of others, where that happens.
    pub forgotten_flows: Option<u64>,
    /// All times, by buckets that can be added up, as [`histogram`](crate::histogram) writes it.
    pub histogram: Option<Vec<u8>>,
}

impl RoundTripSums {
    /// Of what an algorithm concluded.
    #[must_use]
    pub fn of(estimate: &RoundTripEstimate) -> Self {
        Self {
            requests: estimate.requests,
            responses: estimate.responses,
            ambiguous: estimate.ambiguous,
            matched: estimate.matched,
            weighted: estimate.weighted,
            times: estimate.times.as_ref().map(stored),
            horizon_ns: estimate.horizon_ns,
            forgotten_flows: estimate.forgotten_flows,
            histogram: estimate.distribution.as_deref().map(|distribution| {
                let mut bounded = Histogram::new(BUCKETS_MAX);
                bounded.merge(distribution);
                histogram::encode(&bounded)
            }),
        }
    }

    /// The sum of several.
    #[must_use]
    pub fn total<'a>(all: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut all = all.into_iter();
        let mut total = RoundTripTotal::of(all.next()?);
        all.for_each(|sums| total.add(sums));
        Some(total.sums())
    }

    /// Whether the error of the times is unknown: a plain table loses long round trips, and does not
    /// know how many.
    #[must_use]
    pub fn is_biased(&self) -> bool {
        self.times.as_ref().is_some_and(|times| times.half_width_ns.is_none())
    }

    /// The histogram, if there is one that can be read.
    #[must_use]
    pub fn histogram(&self) -> Option<Histogram> {
        histogram::decode(self.histogram.as_deref()?).ok()
    }

    /// The share that took longer; `None` where it is not known, or would be wrong by an unknown
    /// amount.
    #[must_use]
    pub fn share_above(&self, time_ns: i64) -> Option<ShareAbove> {
        let histogram = self.histogram().filter(|_| !self.is_biased())?;
        histogram.share_above(time_ns)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let percentiles = self.times.as_ref().map_or(0, |times| times.percentiles.capacity());
        self.histogram.as_ref().map_or(0, Vec::capacity) + percentiles * size_of::<Percentile>()
    }

    /// The times, to be filled in.
    pub(crate) fn times_mut(&mut self) -> &mut RoundTripTimes {
        let none = |share: f64| Percentile { share, time_ns: 0, low_ns: 0, high_ns: 0 };
        self.times.get_or_insert_with(|| RoundTripTimes {
            mean_ns: 0.0,
            half_width_ns: None,
            deviation_ns: 0.0,
            min_ns: 0,
            max_ns: 0,
            percentiles: Percentile::SHARES.map(none).to_vec(),
            cdf: Vec::new(),
        })
    }
}

/// Times as files have them: the mean in whole nanoseconds, and no distribution function.
fn stored(times: &RoundTripTimes) -> RoundTripTimes {
    let known = times.half_width_ns.is_some();
    let percentile = |found: &Percentile| match known {
        true => *found,
        false => Percentile { low_ns: found.time_ns, high_ns: found.time_ns, ..*found },
    };
    RoundTripTimes {
        mean_ns: times.mean_ns.round(),
        percentiles: times.percentiles.iter().map(percentile).collect(),
        cdf: Vec::new(),
        ..times.clone()
    }
}

/// The sum of several, as they come.
#[derive(Clone, Debug)]
pub(crate) struct RoundTripTotal {
    /// Counts alone.
    counts: RoundTripSums,
    /// Parts in which some were measured, and the times of the only one of them.
    measured: u64,
    alone: Option<RoundTripTimes>,
    histogram: Option<Histogram>,
    /// Some part has times and no histogram.
    has_hole: bool,
    is_biased: bool,
}

impl RoundTripTotal {
    pub(crate) fn of(sums: &RoundTripSums) -> Self {
        let counts = RoundTripSums {
            matched: 0,
            weighted: 0.0,
            times: None,
            histogram: None,
            ..sums.clone()
        };
        let nothing = Self {
            counts,
            measured: 0,
            alone: None,
            histogram: None,
            has_hole: false,
            is_biased: false,
        };
        let mut total = nothing;
        total.add_times(sums);
        total
    }

    pub(crate) fn add(&mut self, sums: &RoundTripSums) {
        let both = |one: Option<u64>, other: Option<u64>| {
            one.zip(other).map(|(one, other)| one.saturating_add(other))
        };
        let counts = &mut self.counts;
        counts.requests = both(counts.requests, sums.requests);
        counts.responses = both(counts.responses, sums.responses);
        counts.ambiguous = both(counts.ambiguous, sums.ambiguous);
        counts.forgotten_flows = both(counts.forgotten_flows, sums.forgotten_flows);
        counts.horizon_ns = counts.horizon_ns.into_iter().chain(sums.horizon_ns).min();
        self.add_times(sums);
    }

    fn add_times(&mut self, sums: &RoundTripSums) {
        self.counts.matched = self.counts.matched.saturating_add(sums.matched);
        self.counts.weighted += sums.weighted;
        let Some(times) = &sums.times else { return };
        self.is_biased |= sums.is_biased();
        self.measured += 1;
        self.alone = Some(times.clone()).filter(|_| self.measured == 1);
        match sums.histogram() {
            Some(histogram) => {
                let total = self.histogram.get_or_insert_with(|| Histogram::new(BUCKETS_MAX));
                total.merge(&histogram);
            }
            None => self.has_hole = true,
        }
    }

    pub(crate) const fn weighted(&self) -> f64 {
        self.counts.weighted
    }

    pub(crate) fn sums(&self) -> RoundTripSums {
        let histogram = self.histogram.as_ref().filter(|_| !self.has_hole);
        let merged = || {
            let mut times = histogram?.times()?;
            if self.is_biased {
                times.half_width_ns = None;
            }
            Some(stored(&times))
        };
        RoundTripSums {
            times: self.alone.clone().or_else(merged),
            histogram: histogram.map(histogram::encode),
            ..self.counts.clone()
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let histogram = self.histogram.as_ref().map_or(0, Histogram::memory_bytes);
        size_of::<Self>() + histogram + Percentile::SHARES.len() * size_of::<Percentile>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of some milliseconds, each with a weight.
    fn sums(times_ms: &[i64], weight: f64) -> RoundTripSums {
        let mut histogram = Histogram::new(1600);
        times_ms.iter().for_each(|ms| histogram.add(ms * 1_000_000, weight));
        RoundTripSums {
            requests: Some(times_ms.len() as u64),
            matched: times_ms.len() as u64,
            weighted: histogram.weight(),
            times: histogram.times().as_ref().map(stored),
            histogram: Some(histogram::encode(&histogram)),
            ..RoundTripSums::default()
        }
    }

    #[test]
    fn distributions_are_added_up_and_not_means() {
        let (many, few) = (sums(&[10; 90], 1.0), sums(&[1_000; 10], 1.0));
        let total = RoundTripSums::total([&many, &few]).unwrap();
        assert_eq!((total.matched, total.requests), (100, Some(100)));
        let times = total.times.as_ref().unwrap();
        assert!((times.mean_ns - 109e6).abs() < 1.0, "{times:?}");
        assert!((times.percentiles[0].time_ns - 10_000_000).abs() < 100_000, "{times:?}");
        let share = total.share_above(500_000_000).unwrap();
        assert_eq!(share.share, 0.1);
    }

    #[test]
    fn what_was_missed_stays_corrected() {
        // Of long round trips a table found one in ten.
        let total = RoundTripSums::total([&sums(&[10; 90], 1.0), &sums(&[1_000; 9], 10.0)]);
        let total = total.unwrap();
        assert_eq!((total.matched, total.weighted), (99, 180.0));
        let share = total.share_above(500_000_000).unwrap();
        assert_eq!(share.share, 0.5);
        let times = total.times.unwrap();
        assert!((times.mean_ns - 505e6).abs() < 1.0 && times.half_width_ns > Some(0.0));
    }

    #[test]
    fn an_unknown_error_stays_unknown() {
        let mut plain = sums(&[10; 9], 1.0);
        plain.times.as_mut().unwrap().half_width_ns = None;
        let total = RoundTripSums::total([&sums(&[20; 9], 1.0), &plain]).unwrap();
        assert!(total.is_biased() && total.share_above(1).is_none());
        let without = RoundTripSums { histogram: None, ..sums(&[10; 9], 1.0) };
        let total = RoundTripSums::total([&sums(&[20; 9], 1.0), &without]).unwrap();
        assert_eq!((total.matched, total.times, total.histogram), (18, None, None));
    }

    #[test]
    fn nothing_measured_adds_nothing() {
        let none = RoundTripSums { requests: Some(3), ..RoundTripSums::default() };
        let one = sums(&[10], 1.0);
        let total = RoundTripSums::total([&none, &one, &none]).unwrap();
        assert_eq!((total.requests, total.matched), (Some(7), 1));
        assert_eq!(total.times, one.times, "those of the only part that has some");
    }
}
