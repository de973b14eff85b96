//! Weighted histograms with buckets of equal ratio, which can be added up.
//!
//! Buckets are those of exponential histograms in Prometheus and OpenTelemetry: the bounds are
//! powers of `2^(2^-scale)`, so two of a scale have equal buckets, and halving the scale merges
//! neighbours. A histogram knows nothing of where its values come from; a value may stand for
//! many, and what that adds to the doubt is kept beside its weight.

mod share;
mod state;
mod summary;

pub use share::ShareAbove;
pub use state::HistogramState;

/// Values with weights, in a bounded number of buckets.
///
/// Mean and deviation come from exact sums. Percentiles are within half a bucket: at
/// [`SCALE_MAX`](Self::SCALE_MAX) that is 0.55 %.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    scale: u8, // in [0, SCALE_MAX]
    buckets_max: usize,
    /// Number of the first bucket in `buckets`.
    first: i32,
    /// Never more than `buckets_max`.
    buckets: Vec<Bucket>,
    /// Values that are not positive.
    nothing: Bucket,
    count: u64,
    min: i64,
    max: i64,
    sums: Sums,
}

/// What fell into one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bucket {
    /// Sum of the weights.
    pub weight: f64,
    /// Sum of w (w - 1): the estimated variance of `weight`, if each value was kept with
    /// probability 1/w (Horvitz and Thompson).
    pub variance: f64,
}

/// Sums of powers of the values by weight, and by what the weight adds to the variance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    all: Bucket,
    first: Bucket,
    second: Bucket,
}

impl Histogram {
    /// Finest resolution: buckets are 2^(1/64) = 1.09 % wide.
    pub const SCALE_MAX: u8 = 6;
    /// Default number of buckets: 25 doublings at the finest resolution, such as from 1 µs
    /// to 33 s.
    pub const BUCKETS_DEFAULT: usize = 1600;
    /// With fewer, one scale could not hold all of 64 bits.
    pub const BUCKETS_MIN: usize = 64;

    /// An empty histogram of at most so many buckets; what they cannot hold at one resolution is
    /// held at the next coarser one.
    #[must_use]
    pub const fn new(buckets_max: usize) -> Self {
        let buckets_max =
            if buckets_max < Self::BUCKETS_MIN { Self::BUCKETS_MIN } else { buckets_max };
        let none = Bucket { weight: 0.0, variance: 0.0 };
        Self {
            scale: Self::SCALE_MAX,
            buckets_max,
            first: 0,
            buckets: Vec::new(),
            nothing: none,
            count: 0,
            min: i64::MAX,
            max: i64::MIN,
            sums: Sums { all: none, first: none, second: none },
        }
    }

    /// Adds a value that stands for `weight` of them. Weights below 1 count as 1.
    #[inline]
    pub fn add(&mut self, value: i64, weight: f64) {
        let weight = weight.max(1.0);
        let bucket = Bucket { weight, variance: weight * (weight - 1.0) };
        self.count = self.count.saturating_add(1);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let (first, second) = (value as f64, (value as f64) * (value as f64));
        self.sums.all.add(bucket, 1.0);
        self.sums.first.add(bucket, first);
        self.sums.second.add(bucket, second);
        match value {
            ..=0 => self.nothing.add(bucket, 1.0),
            _ => {
                self.bucket_mut(number_of(value as u64)).add(bucket, 1.0);
            }
        }
    }

    /// Adds all values of another.
    pub fn merge(&mut self, other: &Self) {
        let coarser = self.scale.saturating_sub(other.scale);
        self.coarsen(coarser);
        self.count = self.count.saturating_add(other.count);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.nothing.add(other.nothing, 1.0);
        self.sums.all.add(other.sums.all, 1.0);
        self.sums.first.add(other.sums.first, 1.0);
        self.sums.second.add(other.sums.second, 1.0);
        for (number, bucket) in other.buckets() {
            let finest = number << (Self::SCALE_MAX - other.scale);
            self.bucket_mut(finest).add(bucket, 1.0);
        }
    }

    /// What it takes in memory.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.buckets.capacity() * size_of::<Bucket>()
    }

    /// How many values were added.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// How many values those stand for.
    #[must_use]
    pub const fn weight(&self) -> f64 {
        self.sums.all.weight
    }

    /// Resolution: bounds are powers of 2^(2^-scale).
    #[must_use]
    pub const fn scale(&self) -> u8 {
        self.scale
    }

    /// Number and content of buckets that are not empty, in ascending order. Bucket n holds
    /// values from 2^(n 2^-scale) up to the next bound; values up to 0 are in none.
    pub fn buckets(&self) -> impl Iterator<Item = (i32, Bucket)> {
        let numbered = (self.first..).zip(self.buckets.iter().copied());
        numbered.filter(|(_, bucket)| bucket.weight > 0.0)
    }

    /// Bytes of state that it keeps.
    #[must_use]
    pub const fn state_bytes(&self) -> u64 {
        (size_of::<Self>() + self.buckets.len() * size_of::<Bucket>()) as u64
    }

    /// The bucket that a number of the finest scale falls into; makes room for it.
    #[inline]
    fn bucket_mut(&mut self, finest: i32) -> &mut Bucket {
        loop {
            let number = finest >> (Self::SCALE_MAX - self.scale);
            let place = i64::from(number) - i64::from(self.first);
            if (0..self.buckets.len() as i64).contains(&place) {
                return &mut self.buckets[place as usize];
            }
            self.make_room(number);
        }
    }

    /// Extends the range of buckets to `number`, or halves the resolution.
    fn make_room(&mut self, number: i32) {
        if self.buckets.is_empty() {
            self.first = number;
            self.buckets.push(Bucket::default());
            return;
        }
        let last = self.first + self.buckets.len() as i32 - 1;
        let (low, high) = (self.first.min(number), last.max(number));
        let wanted = (high - low) as usize + 1;
        if wanted > self.buckets_max {
            return self.coarsen(1);
        }
        let before = (self.first - low) as usize;
        self.buckets.splice(0..0, std::iter::repeat_n(Bucket::default(), before));
        self.buckets.resize(wanted, Bucket::default());
        self.first = low;
    }

    /// Halves the resolution so many times.
    fn coarsen(&mut self, times: u8) {
        for _ in 0..times.min(self.scale) {
            let mut coarse: Vec<Bucket> = Vec::with_capacity(self.buckets.len() / 2 + 1);
            let first = self.first >> 1;
            for (number, bucket) in (self.first..).zip(&self.buckets) {
                let place = ((number >> 1) - first) as usize;
                coarse.resize(coarse.len().max(place + 1), Bucket::default());
                coarse[place].add(*bucket, 1.0);
            }
            (self.first, self.buckets) = (first, coarse);
            self.scale -= 1;
        }
    }
}

impl Bucket {
    #[inline]
    fn add(&mut self, other: Self, times: f64) {
        self.weight += other.weight * times;
        self.variance += other.variance * times;
    }
}

/// Number, at the finest scale, of the bucket of a positive value: floor(64 log2(value)). Only the
/// first 13 bits of the value count, so a bound is off by up to 0.02 %.
#[inline]
fn number_of(value: u64) -> i32 {
    let octave = 63 - value.leading_zeros() as i32;
    let behind_leading_one = ((value << (63 - octave)) >> 51) as usize & 0xfff;
    (octave << Histogram::SCALE_MAX) + i32::from(POSITIONS[behind_leading_one])
}

/// floor(64 log2(1 + i/4096)): position within a doubling of what begins with these bits.
static POSITIONS: [u8; 4096] = positions();

const fn positions() -> [u8; 4096] {
    let mut table = [0; 4096];
    let mut place = 0;
    while place < 4096 {
        table[place] = position(place as u128);
        place += 1;
    }
    table
}

/// floor(64 log2(1 + place/4096)), by squaring: each squaring yields one bit of the logarithm.
const fn position(place: u128) -> u8 {
    let mut mantissa = (4096 + place) << 48; // 1.x with 60 bits behind the point
    let (mut bits, mut step) = (0, 0);
    while step < Histogram::SCALE_MAX {
        mantissa = (mantissa * mantissa) >> 60;
        bits <<= 1;
        if mantissa >> 61 != 0 {
            mantissa >>= 1;
            bits |= 1;
        }
        step += 1;
    }
    bits
}

#[cfg(test)]
mod tests;
