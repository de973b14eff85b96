//! The delays at the ends of all associated records, in the order of their upstream times.

use std::collections::BTreeMap;

use twixt_model::{ClassId, Delay, Timestamp};

use super::association::Associated;

/// Delays at the ends of records, by class: packets of one class wait in one queue.
#[derive(Clone, Debug, Default)]
pub struct Endpoints {
    classes: BTreeMap<ClassId, Series>,
}

/// Delays by their upstream times.
#[derive(Clone, Debug, Default)]
struct Series {
    delays: Vec<(Timestamp, Delay)>,
    /// `sums[i]` are those of the first `i` delays.
    sums: Vec<Sums>,
}

/// Some delays, added up relative to a reference, so that a clock offset costs no precision.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// How many.
    pub count: u64,
    sum_ns: i128,
    square_sum: f64,
    reference_ns: i64,
}

impl Endpoints {
    /// Those of all pairs, but for the share of the largest delays that are taken for outliers.
    #[must_use]
    pub fn new(pairs: &[Associated], outliers: f64) -> Self {
        let mut classes: BTreeMap<ClassId, Vec<(Timestamp, Delay)>> = BTreeMap::new();
        for pair in pairs {
            classes.entry(pair.upstream.class).or_default().extend(pair.delays());
        }
        let classes = classes
            .into_iter()
            .map(|(class, delays)| (class, Series::new(without_largest(delays, outliers))));
        Self { classes: classes.collect() }
    }

    /// The delays of one class between two upstream times, both included.
    #[must_use]
    pub fn between(&self, class: ClassId, from: Timestamp, to: Timestamp) -> Sums {
        self.classes.get(&class).map(|series| series.between(from, to)).unwrap_or_default()
    }

    /// The longest time between two upstream times in which no delay of a class is known, as a share of the
    /// time between them.
    pub(super) fn largest_gap(&self, class: ClassId, from: Timestamp, to: Timestamp) -> f64 {
        let delays = self.classes.get(&class).map_or(&[][..], |series| &series.delays);
        let start = delays.partition_point(|&(time, _)| time < from);
        let times = delays[start..].iter().map(|&(time, _)| time).take_while(|&time| time <= to);
        let (mut last, mut gap_ns) = (from, 0);
        for time in times.chain([to]) {
            gap_ns = gap_ns.max((time - last).as_nanos());
            last = time;
        }
        gap_ns as f64 / ((to - from).as_nanos() as f64).max(1.0)
    }

    /// All delays.
    #[must_use]
    pub fn all(&self) -> Sums {
        let whole = |series: &Series| series.between(Timestamp::MIN, Timestamp::MAX);
        self.classes.values().map(whole).reduce(|one, other| one.plus(&other)).unwrap_or_default()
    }

    /// The delay at a time of a class, on the line between the nearest delays before and after;
    /// `None` outside of all. A delay of just that time is taken as it is (where several are of
    /// one time, their first).
    #[must_use]
    pub fn interpolated_ns(&self, class: ClassId, at: Timestamp) -> Option<f64> {
        let delays = &self.classes.get(&class)?.delays;
        let after = delays.partition_point(|&(time, _)| time < at);
        let &(next_time, next) = delays.get(after)?;
        if next_time == at {
            return Some(next.as_nanos() as f64);
        }
        let &(last_time, last) = delays.get(after.checked_sub(1)?)?;
        let share = (at - last_time).as_nanos() as f64 / (next_time - last_time).as_nanos() as f64;
        Some(last.as_nanos() as f64 + share * (next - last).as_nanos() as f64)
    }
}

impl Series {
    fn new(mut delays: Vec<(Timestamp, Delay)>) -> Self {
        delays.sort_unstable();
        let reference_ns = delays.first().map_or(0, |(_, delay)| delay.as_nanos());
        let mut total = Sums::relative_to(Delay::from_nanos(reference_ns));
        let mut sums = vec![total];
        for (_, delay) in &delays {
            total.add(*delay);
            sums.push(total);
        }
        Self { delays, sums }
    }

    fn between(&self, from: Timestamp, to: Timestamp) -> Sums {
        let start = self.delays.partition_point(|&(time, _)| time < from);
        let end = self.delays.partition_point(|&(time, _)| time <= to).max(start);
        self.sums[end].minus(&self.sums[start])
    }
}

pub(super) fn without_largest(
    mut delays: Vec<(Timestamp, Delay)>,
    outliers: f64,
) -> Vec<(Timestamp, Delay)> {
    let kept = delays.len() - (delays.len() as f64 * outliers) as usize;
    if kept < delays.len() {
        delays.sort_unstable_by_key(|&(time, delay)| (delay, time));
        delays.truncate(kept);
    }
    delays
}

impl Sums {
    /// Of single delays.
    #[must_use]
    pub fn of(delays: impl IntoIterator<Item = Delay>) -> Self {
        let mut delays = delays.into_iter().peekable();
        let mut sums = Self::relative_to(delays.peek().copied().unwrap_or(Delay::ZERO));
        delays.for_each(|delay| sums.add(delay));
        sums
    }

    /// Of none yet; what is added should not be far from this.
    pub(super) const fn relative_to(reference: Delay) -> Self {
        Self { count: 0, sum_ns: 0, square_sum: 0.0, reference_ns: reference.as_nanos() }
    }

    /// Sum of the delays.
    #[must_use]
    pub fn sum_ns(&self) -> i128 {
        self.sum_ns + i128::from(self.reference_ns) * i128::from(self.count)
    }

    /// Mean delay; `None` if there is none.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.count as f64;
        (self.count > 0).then(|| self.reference_ns as f64 + self.sum_ns as f64 / count)
    }

    /// Deviation of single delays, with n - 1; `None` for fewer than two.
    ///
    /// Delays of neighbouring packets are correlated, and with a correlation of r on average this
    /// shows only the share 1 - r of the variance: it is too small, not too large.
    #[must_use]
    pub fn deviation_ns(&self) -> Option<f64> {
        let count = self.count as f64;
        let centred = self.square_sum - (self.sum_ns as f64).powi(2) / count;
        (self.count > 1).then(|| (centred.max(0.0) / (count - 1.0)).sqrt())
    }

    pub(super) fn add(&mut self, delay: Delay) {
        let relative = i128::from(delay.as_nanos()) - i128::from(self.reference_ns);
        self.count += 1;
        self.sum_ns += relative;
        self.square_sum += (relative as f64).powi(2);
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        Self {
            count: self.count - other.count,
            sum_ns: self.sum_ns - other.sum_ns,
            square_sum: self.square_sum - other.square_sum,
            ..*self
        }
    }

    /// Of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        if self.count == 0 {
            return *other;
        }
        // Σ(x - a)² = Σ(x - b)² + 2 (b - a) Σ(x - b) + n (b - a)².
        let shift = i128::from(other.reference_ns) - i128::from(self.reference_ns);
        let count = i128::from(other.count);
        let square_sum = other.square_sum
            + 2.0 * shift as f64 * other.sum_ns as f64
            + count as f64 * (shift as f64).powi(2);
        Self {
            count: self.count + other.count,
            sum_ns: self.sum_ns + other.sum_ns + shift * count,
            square_sum: self.square_sum + square_sum,
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;
    use rand_distr::{Distribution, StandardNormal};
    use twixt_model::{FlowEnd, FlowKey, FlowRecord};

    use super::*;

    const CLASS: ClassId = ClassId(0);

    /// One record of one packet for each (upstream time, delay).
    fn endpoints(delays: &[(i64, i64)], outliers: f64) -> Endpoints {
        let record = |time_ns: i64| FlowRecord {
            key: FlowKey::default(),
            class: CLASS,
            first: Timestamp::from_nanos(time_ns),
            last: Timestamp::from_nanos(time_ns),
            packets: 1,
            bytes: 100,
            tcp_flags: 0,
            first_label: None,
            last_label: None,
            end: FlowEnd::Idle,
            resolution_ns: 1,
        };
        let pair = |&(time_ns, delay_ns): &(i64, i64)| Associated {
            upstream: record(time_ns),
            downstream: record(time_ns + delay_ns),
            same_first: true,
            same_last: true,
        };
        Endpoints::new(&delays.iter().map(pair).collect::<Vec<_>>(), outliers)
    }

    #[track_caller]
    fn check_interpolation(at_ns: i64, expected: Option<f64>) {
        let endpoints = endpoints(&[(0, 100), (1000, 500), (2000, 300)], 0.0);
        assert_eq!(endpoints.interpolated_ns(CLASS, Timestamp::from_nanos(at_ns)), expected);
    }

    #[test]
    fn interpolation_takes_a_delay_of_just_that_time_as_it_is() {
        check_interpolation(1000, Some(500.0));
        check_interpolation(250, Some(200.0));
        check_interpolation(1500, Some(400.0));
        check_interpolation(0, Some(100.0));
        check_interpolation(-1, None);
        check_interpolation(2001, None);
    }

    #[test]
    fn a_stretch_includes_both_of_its_ends() {
        let endpoints = endpoints(&[(0, 1), (10, 5), (20, 3), (30, 9)], 0.0);
        let between = |from, to| {
            let sums =
                endpoints.between(CLASS, Timestamp::from_nanos(from), Timestamp::from_nanos(to));
            (sums.count, sums.sum_ns())
        };
        assert_eq!(between(10, 20), (2, 8));
        assert_eq!(between(11, 19), (0, 0));
        assert_eq!(between(0, 30), (4, 18));
        assert_eq!(endpoints.between(ClassId(1), Timestamp::MIN, Timestamp::MAX).mean_ns(), None);
    }

    #[test]
    fn a_time_without_delays_is_found() {
        let endpoints = endpoints(&[(0, 1), (10, 5), (20, 3), (90, 9), (100, 9)], 0.0);
        let gap = |from, to| {
            endpoints.largest_gap(CLASS, Timestamp::from_nanos(from), Timestamp::from_nanos(to))
        };
        assert_eq!((gap(0, 100), gap(0, 20), gap(15, 35)), (0.7, 0.5, 0.75));
        assert_eq!((gap(30, 80), gap(10, 10)), (1.0, 0.0));
    }

    #[test]
    fn the_largest_delays_can_be_left_out() {
        let delays: Vec<(i64, i64)> = (0..200).map(|number| (number, 1000 - number)).collect();
        assert_eq!(endpoints(&delays, 0.01).all().count, 198);
        assert_eq!(endpoints(&delays, 0.01).all().sum_ns(), (801..=998).sum::<i128>());
    }

    #[test]
    fn sums_of_two_parts_are_those_of_the_whole() {
        let delays = [3, -7, 1_000_000, 12].map(Delay::from_nanos);
        let whole = Sums::of(delays);
        let parts = Sums::of(delays[..1].to_vec()).plus(&Sums::of(delays[1..].to_vec()));
        assert_eq!(whole.sum_ns(), parts.sum_ns());
        let difference = whole.deviation_ns().unwrap() - parts.deviation_ns().unwrap();
        assert!(difference.abs() < 1e-6, "{difference}");
        assert_eq!(Sums::of([Delay::ZERO]).deviation_ns(), None);
        assert_eq!(Sums::of([]).mean_ns(), None);
    }

    /// The paper has it that correlated delays make the variance too large; they make it too
    /// small, by the factor 1 - correlation. The mean of 4000 variances of 10 delays is known to
    /// sqrt(2/9/4000) = 0.75 % of the variance; four times that is allowed.
    #[test]
    fn correlated_delays_hide_their_variance() {
        const SEED: u64 = 40;
        println!("seed {SEED}");
        for correlation in [0.3_f64, 0.6, 0.9] {
            let mut random = ChaCha8Rng::seed_from_u64(SEED);
            let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
            let variances: f64 = (0..4000)
                .map(|_| {
                    let shared = normal() * correlation.sqrt();
                    let delays: Vec<Delay> = (0..10)
                        .map(|_| shared + normal() * (1.0 - correlation).sqrt())
                        .map(|value| Delay::from_nanos((value * 1e6) as i64))
                        .collect();
                    (Sums::of(delays).deviation_ns().unwrap() / 1e6).powi(2)
                })
                .sum();
            let mean = variances / 4000.0;
            assert!((mean - (1.0 - correlation)).abs() < 0.03 * (1.0 - correlation), "{mean}");
        }
    }
}
