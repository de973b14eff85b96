//! The share of values above a limit, with an interval that holds for few values too.
//!
//! The values are taken for a draw from what is measured: one handshake of 60 ms does not show that
//! more than 5 % take longer than 50 ms. The interval is that of Clopper and Pearson (1934), which
//! covers with 95 % at least whatever the share is. Where values have weights, it is that of so many
//! values of equal weight as would tell as much.

use super::summary::Step;
use super::{Bucket, Histogram};

/// What may lie beyond each end of a 95 % interval.
const TAIL: f64 = 0.025;

/// The share of values above a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareAbove {
    /// Itself.
    pub share: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Histogram {
    /// The share of the weight on values above `value`; `None` if there are no values. The interval
    /// also covers that values within one bucket are not told apart.
    #[must_use]
    pub fn share_above(&self, value: i64) -> Option<ShareAbove> {
        let ranks = self.ranks();
        if self.count == 0 || self.weight() <= 0.0 || ranks.is_empty() {
            return None;
        }
        let limit = value as f64;
        let mut split = Split::default();
        for step in &ranks {
            split.largest = split.largest.max(squares(step.bucket) / step.bucket.weight);
            match () {
                () if step.lower_ns >= limit || self.min > value => {
                    split.above.add(step.bucket, 1.0);
                }
                () if step.upper_ns <= limit || self.max <= value => {
                    split.below.add(step.bucket, 1.0);
                }
                () => {
                    split.between = step.bucket;
                    split.between_above = above_within(step, limit);
                }
            }
        }
        Some(split.share(self.count as f64))
    }
}

/// What lies above a limit, below it, and in the bucket that it cuts.
#[derive(Clone, Copy, Debug, Default)]
struct Split {
    above: Bucket,
    below: Bucket,
    between: Bucket,
    /// Which part of that lies above, if values are spread evenly over its logarithm.
    between_above: f64,
    /// The largest mean weight of a value in a bucket.
    largest: f64,
}

impl Split {
    fn share(&self, count: f64) -> ShareAbove {
        let of = |part: f64| {
            let (mut above, mut below) = (self.above, self.below);
            above.add(self.between, part);
            below.add(self.between, 1.0 - part);
            let weight = above.weight + below.weight;
            let share = above.weight / weight;
            let spread = (1.0 - share).powi(2) * squares(above) + share.powi(2) * squares(below);
            // Where all values are on one side, those that were missed would weigh as much as any.
            let values = match share * (1.0 - share) {
                both if both > 0.0 && spread > 0.0 => both * weight.powi(2) / spread,
                _ => weight / self.largest.max(1.0),
            };
            (share, values.min(count))
        };
        let (share, _) = of(self.between_above);
        let (low, high) = (of(0.0), of(1.0));
        ShareAbove {
            share,
            low: lower_end(low.0 * low.1, low.1).min(share),
            high: upper_end(high.0 * high.1, high.1).max(share),
        }
    }
}

/// Sum of the squared weights of a bucket: it keeps that of w (w - 1).
fn squares(bucket: Bucket) -> f64 {
    bucket.variance + bucket.weight
}

fn above_within(step: &Step, limit: f64) -> f64 {
    if step.lower_ns <= 0.0 {
        return 0.0;
    }
    (1.0 - (limit / step.lower_ns).ln() / (step.upper_ns / step.lower_ns).ln()).clamp(0.0, 1.0)
}

/// The share of which as many hits as these, or more, have a chance of 2.5 %.
fn lower_end(hits: f64, values: f64) -> f64 {
    match hits > 0.0 {
        true => solve(|share| at_most(share, hits, values - hits + 1.0) - TAIL),
        false => 0.0,
    }
}

/// The share of which as few hits as these, or fewer, have a chance of 2.5 %.
fn upper_end(hits: f64, values: f64) -> f64 {
    match hits < values {
        true => solve(|share| at_most(share, hits + 1.0, values - hits) - (1.0 - TAIL)),
        false => 1.0,
    }
}

/// Where an increasing function of a share is 0, to 15 digits.
fn solve(function: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if function(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The distribution function of a beta variable, with parameters that are not negative: its continued
/// fraction (Abramowitz and Stegun, 26.5.8), evaluated as by Lentz.
fn at_most(share: f64, one: f64, other: f64) -> f64 {
    if share <= 0.0 || share >= 1.0 {
        return share.clamp(0.0, 1.0);
    }
    let front = ln_gamma(one + other) - ln_gamma(one) - ln_gamma(other)
        + one * share.ln()
        + other * (1.0 - share).ln();
    // The fraction converges fast on this side of the mean only.
    match share < (one + 1.0) / (one + other + 2.0) {
        true => front.exp() * fraction(share, one, other) / one,
        false => 1.0 - front.exp() * fraction(1.0 - share, other, one) / other,
    }
}

/// Most terms of the fraction: it takes about the square root of the larger parameter.
const TERMS_MAX: u32 = 20_000;

fn fraction(share: f64, one: f64, other: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_0 = |value: f64| if value.abs() < TINY { TINY } else { value };
    let sum = one + other;
    let mut denominator = 1.0 / away_from_0(1.0 - sum * share / (one + 1.0));
    let (mut numerator, mut result) = (1.0, denominator);
    for term in 1..=TERMS_MAX {
        let term = f64::from(term);
        let twice = one + 2.0 * term;
        let even = term * (other - term) * share / ((twice - 1.0) * twice);
        let odd = -(one + term) * (sum + term) * share / (twice * (twice + 1.0));
        for coefficient in [even, odd] {
            denominator = 1.0 / away_from_0(1.0 + coefficient * denominator);
            numerator = away_from_0(1.0 + coefficient / numerator);
            result *= denominator * numerator;
        }
        if (denominator * numerator - 1.0).abs() < 1e-14 {
            break;
        }
    }
    result
}

/// The logarithm of the gamma function of a positive number, by Stirling's series (Abramowitz and
/// Stegun, 6.1.41) above 10, to which smaller numbers are raised.
fn ln_gamma(number: f64) -> f64 {
    let (mut number, mut lowered) = (number, 0.0);
    while number < 10.0 {
        lowered += number.ln();
        number += 1.0;
    }
    let square = number * number;
    let series = (1.0 / 12.0
        - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square)
        / number;
    (number - 0.5) * number.ln() - number + 0.5 * std::f64::consts::TAU.ln() + series - lowered
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values at 1 ms and at 100 ms, each with a weight.
    fn of(short: (u32, f64), long: (u32, f64)) -> Histogram {
        let mut histogram = Histogram::new(640);
        (0..short.0).for_each(|_| histogram.add(1_000_000, short.1));
        (0..long.0).for_each(|_| histogram.add(100_000_000, long.1));
        histogram
    }

    #[track_caller]
    fn check(histogram: &Histogram, share: f64, low: f64, high: f64) {
        let found = histogram.share_above(50_000_000).unwrap();
        for (found, expected) in [(found.share, share), (found.low, low), (found.high, high)] {
            assert!((found - expected).abs() < 5e-5, "{found} is not {expected}");
        }
    }

    /// Ends as in tables of exact binomial intervals.
    #[test]
    fn intervals_are_those_of_clopper_and_pearson() {
        check(&of((0, 1.0), (1, 1.0)), 1.0, 0.025, 1.0);
        check(&of((10, 1.0), (0, 1.0)), 0.0, 0.0, 0.30850);
        check(&of((9, 1.0), (1, 1.0)), 0.1, 0.00253, 0.44502);
        check(&of((50, 1.0), (50, 1.0)), 0.5, 0.39832, 0.60168);
        check(&of((9_500, 1.0), (500, 1.0)), 0.05, 0.04581, 0.05446);
        assert_eq!(Histogram::new(640).share_above(1), None);
    }

    #[test]
    fn values_that_stand_for_many_tell_less() {
        let equal = of((90, 1.0), (10, 1.0)).share_above(50_000_000).unwrap();
        let weighted = of((90, 10.0), (10, 10.0)).share_above(50_000_000).unwrap();
        assert_eq!(weighted.share, equal.share);
        assert!((weighted.low - equal.low).abs() < 1e-9, "as many values as before");
        let few = of((90, 1.0), (1, 10.0)).share_above(50_000_000).unwrap();
        assert!((few.share - 0.1).abs() < 1e-12);
        assert!(few.low < equal.low && few.high > equal.high, "{few:?} rests on one value");
        let none = of((90, 10.0), (0, 1.0)).share_above(50_000_000).unwrap();
        assert!((none.high - 0.04016).abs() < 1e-4, "{none:?}");
    }

    #[test]
    fn a_limit_within_a_bucket_is_in_doubt() {
        let mut histogram = Histogram::new(640);
        for value in 1..=100_000 {
            histogram.add(value * 1_000, 1.0);
        }
        let found = histogram.share_above(50_000_000).unwrap();
        assert!(found.low <= 0.5 && 0.5 <= found.high, "{found:?}");
        assert!((found.share - 0.5).abs() < 0.001, "{found:?}");
        assert!(found.high - found.low < 0.02, "{found:?}");
        for outside in [0, 999, 100_000_000] {
            let found = histogram.share_above(outside).unwrap();
            let expected = f64::from(u8::from(outside < 1_000));
            assert!((found.share - expected).abs() < 1e-12, "{outside}: {found:?}");
        }
    }
}
