//! Delays by the buckets of Prometheus: classic ones, whose bounds are fixed, and native ones,
//! whose bounds are powers of 2^(1/8).
//!
//! Each packet of a sample counts for as many packets as it stands for, so that counts and
//! quantiles are those of all packets, whatever share of them was sampled.

use std::collections::BTreeMap;

use prometheus_client::encoding::{
    MetricEncoder, NativeHistogram, NativeHistogramBuckets, NoLabelSet,
};
use twixt_model::{DelaySample, Histogram};

/// Upper bounds of classic buckets, in nanoseconds: three for each power of ten. Delays that are
/// not positive, which happen where clocks differ, have one of their own.
const BOUNDS_NS: [i64; 24] = [
    0,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];
/// Native buckets have bounds of powers of 2^(2^-SCHEMA): 9.05 % wide.
const SCHEMA: i32 = 3;
const SECOND_NS: f64 = 1e9;

/// Delays, by buckets. Of native ones there are at most 504 for either sign: 63 bits of
/// nanoseconds, 8 buckets each.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DelayBuckets {
    /// Those up to each bound, and the rest.
    classic: [u64; BOUNDS_NS.len() + 1],
    positive: BTreeMap<i32, u64>,
    negative: BTreeMap<i32, u64>,
    zero: u64,
    count: u64,
    sum_ns: i128,
    /// The part of a packet that is not in buckets yet.
    carry: f64, // in [0, 1)
}

impl DelayBuckets {
    /// Adds the packets of a sample.
    pub(super) fn add(&mut self, sample: &DelaySample) {
        for packet in sample.packets() {
            // Buckets count whole packets: what is left over is for the next.
            self.carry += packet.level.weight();
            let packets = self.carry.floor();
            self.carry -= packets;
            self.add_delay(packet.delay.as_nanos(), packets as u64);
        }
    }

    /// Adds a distribution: each bucket by its middle, which is within 0.6 % of what it holds.
    pub(crate) fn add_histogram(&mut self, histogram: &Histogram) {
        let base = 2_f64.powf(2_f64.powi(-i32::from(histogram.scale())));
        let known = histogram.buckets().map(|(number, bucket)| {
            ((base.powi(number) * base.sqrt()).round() as i64, bucket.weight)
        });
        // Values that are not positive are in no bucket.
        let in_buckets: f64 = histogram.buckets().map(|(_, bucket)| bucket.weight).sum();
        let nothing = [(0, histogram.weight() - in_buckets)];
        for (value_ns, weight) in nothing.into_iter().chain(known) {
            self.carry += weight.max(0.0);
            let whole = self.carry.floor();
            self.carry -= whole;
            if whole >= 1.0 {
                self.add_delay(value_ns, whole as u64);
            }
        }
    }

    fn add_delay(&mut self, delay_ns: i64, packets: u64) {
        let place = BOUNDS_NS.partition_point(|bound_ns| *bound_ns < delay_ns);
        let native = match delay_ns {
            0 => &mut self.zero,
            1.. => self.positive.entry(native_bucket(delay_ns)).or_default(),
            _ => self.negative.entry(native_bucket(delay_ns)).or_default(),
        };
        for count in [&mut self.classic[place], native, &mut self.count] {
            *count = count.saturating_add(packets);
        }
        let sum_ns = i128::from(delay_ns).saturating_mul(i128::from(packets));
        self.sum_ns = self.sum_ns.saturating_add(sum_ns);
    }

    pub(crate) fn encode(&self, mut encoder: MetricEncoder<'_>) -> std::fmt::Result {
        let bounds = BOUNDS_NS.iter().map(|bound_ns| *bound_ns as f64 / SECOND_NS);
        let bounds = bounds.chain([f64::INFINITY]);
        let classic: Vec<(f64, u64)> = bounds.zip(self.classic).collect();
        let (positive, negative) = (Sparse::of(&self.positive), Sparse::of(&self.negative));
        let native = NativeHistogram {
            schema: SCHEMA,
            zero_threshold: 0.0,
            zero_count: self.zero,
            negative: negative.buckets(),
            positive: positive.buckets(),
            created: None,
        };
        let sum_seconds = self.sum_ns as f64 / SECOND_NS;
        encoder.encode_histogram_with_native::<NoLabelSet>(
            sum_seconds,
            self.count,
            &classic,
            None,
            native,
        )
    }
}

/// The native bucket of a delay: the smallest i with |delay| ≤ 2^(i / 2^SCHEMA) seconds.
fn native_bucket(delay_ns: i64) -> i32 {
    let seconds = delay_ns.unsigned_abs() as f64 / SECOND_NS;
    (seconds.log2() * f64::from(1 << SCHEMA)).ceil() as i32
}

/// Buckets as they are written: runs of neighbours, and by how much each differs from the one
/// before.
struct Sparse {
    /// Buckets left out since the last run (the number of the first bucket for the first run), and
    /// buckets in it.
    spans: Vec<(i32, u32)>,
    deltas: Vec<i64>,
}

impl Sparse {
    fn of(buckets: &BTreeMap<i32, u64>) -> Self {
        let mut sparse = Self { spans: Vec::new(), deltas: Vec::with_capacity(buckets.len()) };
        let (mut next, mut before) = (0, 0);
        for (&number, &count) in buckets {
            match sparse.spans.last_mut().filter(|_| number == next) {
                Some((_, length)) => *length += 1,
                None => sparse.spans.push((number - next, 1)),
            }
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            sparse.deltas.push(count - before);
            (next, before) = (number + 1, count);
        }
        sparse
    }

    fn buckets(&self) -> NativeHistogramBuckets<'_> {
        NativeHistogramBuckets { spans: &self.spans, deltas: &self.deltas }
    }
}

#[cfg(test)]
mod tests {
    use twixt_model::{Delay, SampleLevel, SampledDelay, Timestamp};

    use super::*;

    #[track_caller]
    fn check(delay_ns: i64, classic: usize, native: i32) {
        let mut delays = DelayBuckets::default();
        delays.add_delay(delay_ns, 4);
        assert_eq!(delays.classic[classic], 4, "{delays:?}");
        let side = if delay_ns < 0 { &delays.negative } else { &delays.positive };
        assert_eq!(side, &BTreeMap::from([(native, 4)]));
        assert_eq!((delays.count, delays.sum_ns), (4, i128::from(delay_ns) * 4));
    }

    #[test]
    fn bounds_belong_to_the_bucket_below() {
        check(1, 1, -239);
        check(500, 1, -167);
        check(501, 2, -167);
        check(1_000_000, 11, -79);
        check(1_000_001, 12, -79);
        // Two to the power of 0 and of -1 are bounds of native buckets.
        check(1_000_000_000, 20, 0);
        check(1_000_000_001, 21, 1);
        check(500_000_000, 19, -8);
        check(i64::MAX, 24, 265);
        check(-1_000_000_000, 0, 0);
        check(i64::MIN, 0, 265);
    }

    #[test]
    fn packets_stand_for_others_and_parts_add_up() {
        // The first level that stands for more than one packet and not for a whole number.
        let level = (0..).map(|number| SampleLevel::from_number(number).unwrap());
        let mut level = level;
        let level = level.find(|level| level.weight().fract() > 0.0).unwrap();
        let packet = |number: i64| SampledDelay {
            delay: Delay::from_nanos(1_000 * number),
            time: Timestamp::from_nanos(number),
            flow: 0,
            reach: level,
            level,
        };
        let mut delays = DelayBuckets::default();
        delays.add(&DelaySample::new((1..=1_000).map(packet).collect()));
        let expected = 1_000.0 * level.weight();
        assert!((delays.count as f64 - expected).abs() <= 1.0, "{} of {expected}", delays.count);
        assert_eq!(delays.positive.values().sum::<u64>(), delays.count);
        assert_eq!(delays.classic.iter().sum::<u64>(), delays.count);
    }

    #[test]
    fn distributions_count_as_what_they_stand_for() {
        let mut histogram = Histogram::new(640);
        (0..100).for_each(|_| histogram.add(10_000_000, 2.5));
        histogram.add(0, 3.0);
        let mut times = DelayBuckets::default();
        times.add_histogram(&histogram);
        assert_eq!((times.count, times.zero), (253, 3));
        assert_eq!(times.classic[15] + times.classic[14], 250);
        let mean_ns = times.sum_ns as f64 / 250.0;
        assert!((mean_ns / 10e6 - 1.0).abs() < 0.006, "{mean_ns}");
    }

    #[test]
    fn runs_of_buckets_are_written_by_differences() {
        let sparse = Sparse::of(&BTreeMap::from([(-3, 5), (-2, 7), (1, 1)]));
        assert_eq!(sparse.spans, [(-3, 2), (2, 1)]);
        assert_eq!(sparse.deltas, [5, 2, -6]);
        let none = Sparse::of(&BTreeMap::new());
        assert!(none.spans.is_empty() && none.deltas.is_empty());
    }
}
