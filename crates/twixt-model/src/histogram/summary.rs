//! What a histogram says of the values behind it.

use super::{Bucket, Histogram};
use crate::{Percentile, RoundTripTimes};

/// Half the width of a 95 % interval in standard deviations.
const Z95: f64 = 1.96;
/// Points of a distribution function that are reported at most.
const CDF_POINTS_MAX: usize = 100;

impl Histogram {
    /// The values as times; `None` if there are none.
    #[must_use]
    pub fn times(&self) -> Option<RoundTripTimes> {
        if self.count == 0 || self.weight() <= 0.0 {
            return None;
        }
        let (mean_ns, half_width_ns) = self.mean();
        let ranks = self.ranks();
        // A hostile histogram may claim weight that no bucket has.
        if ranks.is_empty() {
            return None;
        }
        let percentile = |share: f64| {
            let doubt = Z95 * self.rank_deviation(&ranks, share);
            Percentile {
                share,
                time_ns: self.quantile(&ranks, share),
                low_ns: self.quantile(&ranks, (share - doubt).max(0.0)),
                high_ns: self.quantile(&ranks, (share + doubt).min(1.0)),
            }
        };
        Some(RoundTripTimes {
            mean_ns,
            half_width_ns: Some(half_width_ns),
            deviation_ns: self.deviation(),
            min_ns: self.min,
            max_ns: self.max,
            percentiles: Percentile::SHARES.map(percentile).to_vec(),
            cdf: self.cdf(&ranks),
        })
    }

    /// The value that a share of the weight does not exceed: the smallest t with F(t) > share, as
    /// for sorted values the element floor(share n).
    #[must_use]
    pub fn percentile(&self, share: f64) -> Option<i64> {
        let ranks = self.ranks();
        (self.count > 0 && !ranks.is_empty()).then(|| self.quantile(&ranks, share))
    }

    /// The share of the weight on values up to `value`, within half a bucket.
    #[must_use]
    pub fn share_up_to(&self, value: i64) -> f64 {
        let below = |step: &&Step| step.upper_ns <= value as f64;
        let ranks = self.ranks();
        ranks.iter().take_while(below).last().map_or(0.0, |step| step.up_to / self.weight())
    }

    /// Mean and half the width of its interval. The estimator is a ratio of two weighted sums;
    /// its variance is, to first order, that of the sum of w (t - mean), divided by W^2.
    fn mean(&self) -> (f64, f64) {
        let sums = &self.sums;
        let (weight, mean) = (sums.all.weight, sums.first.weight / sums.all.weight);
        let spread = sums.second.variance - 2.0 * mean * sums.first.variance
            + mean * mean * sums.all.variance;
        (mean, Z95 * spread.max(0.0).sqrt() / weight)
    }

    fn deviation(&self) -> f64 {
        let sums = &self.sums;
        let mean = sums.first.weight / sums.all.weight;
        (sums.second.weight / sums.all.weight - mean * mean).max(0.0).sqrt()
    }

    /// Buckets with what lies in or below them, in ascending order.
    pub(super) fn ranks(&self) -> Vec<Step> {
        let base = 2_f64.powf(2_f64.powi(-i32::from(self.scale)));
        let lowest = Step {
            lower_ns: self.min.min(0) as f64,
            upper_ns: 0.0,
            bucket: self.nothing,
            up_to: 0.0,
        };
        let others = self.buckets().map(|(number, bucket)| {
            let lower_ns = base.powi(number);
            Step { lower_ns, upper_ns: lower_ns * base, bucket, up_to: 0.0 }
        });
        let all = [lowest].into_iter().chain(others).filter(|step| step.bucket.weight > 0.0);
        let mut sum = 0.0;
        all.map(|step| {
            sum += step.bucket.weight;
            Step { up_to: sum, ..step }
        })
        .collect()
    }

    fn quantile(&self, ranks: &[Step], share: f64) -> i64 {
        let wanted = share * self.weight();
        let at = ranks.partition_point(|step| step.up_to <= wanted).min(ranks.len() - 1);
        let step = &ranks[at];
        let inside = 1.0 - (step.up_to - wanted) / step.bucket.weight;
        let value = match step.lower_ns > 0.0 {
            true => step.lower_ns * (step.upper_ns / step.lower_ns).powf(inside.clamp(0.0, 1.0)),
            false => step.lower_ns * (1.0 - inside.clamp(0.0, 1.0)),
        };
        self.within(value)
    }

    /// A value of a bucket, but none beyond the smallest and the largest. (Not by `clamp`: a
    /// hostile histogram may hold weights and no values, and so no smallest.)
    fn within(&self, value_ns: f64) -> i64 {
        (value_ns.round() as i64).max(self.min).min(self.max)
    }

    /// Standard deviation of the estimated share of values up to the one at `share`: that of the
    /// sum of w (1{t <= t_p} - share), divided by W.
    fn rank_deviation(&self, ranks: &[Step], share: f64) -> f64 {
        let wanted = share * self.weight();
        let mut variance = 0.0;
        for step in ranks {
            let away = if step.up_to <= wanted { 1.0 - share } else { share };
            variance += away * away * step.bucket.variance;
        }
        variance.max(0.0).sqrt() / self.weight()
    }

    fn cdf(&self, ranks: &[Step]) -> Vec<(i64, f64)> {
        let mut points: Vec<(i64, f64)> = Vec::new();
        let mut due = 0.0;
        for (index, step) in ranks.iter().enumerate() {
            let last = index + 1 == ranks.len();
            // Sums in another order differ in their last digits.
            let share = if last { 1.0 } else { (step.up_to / self.weight()).min(1.0) };
            if share >= due || last {
                points.push((self.within(step.upper_ns), share));
                due = share + 1.0 / CDF_POINTS_MAX as f64;
            }
        }
        points.dedup_by_key(|point| point.0);
        points
    }
}

/// A bucket and the weight in it and below.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) lower_ns: f64,
    pub(super) upper_ns: f64,
    pub(super) bucket: Bucket,
    up_to: f64,
}
