//! A histogram taken apart, for encoding.

use super::{Bucket, Histogram, Sums};

/// All that a [`Histogram`] consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramState {
    /// Resolution.
    pub scale: u8,
    /// Most buckets it may have.
    pub buckets_max: u32,
    /// Number of the first bucket.
    pub first: i32,
    /// The buckets from there on.
    pub buckets: Vec<Bucket>,
    /// Values that are not positive.
    pub nothing: Bucket,
    /// How many values were added.
    pub count: u64,
    /// Smallest.
    pub min: i64,
    /// Largest.
    pub max: i64,
    /// Sums of weights, of values and of their squares.
    pub sums: [Bucket; 3],
}

impl Histogram {
    /// Takes it apart.
    #[must_use]
    pub fn state(&self) -> HistogramState {
        let Sums { all, first, second } = self.sums;
        HistogramState {
            scale: self.scale,
            buckets_max: self.buckets_max as u32,
            first: self.first,
            buckets: self.buckets.clone(),
            nothing: self.nothing,
            count: self.count,
            min: self.min,
            max: self.max,
            sums: [all, first, second],
        }
    }

    /// Puts one together again.
    ///
    /// # Errors
    /// When no histogram has such parts; the text says why.
    pub fn from_state(state: HistogramState) -> Result<Self, &'static str> {
        // Of positive values of 63 bits.
        let numbers = 0..=(63_i64 << state.scale.min(Self::SCALE_MAX));
        let last = i64::from(state.first) + state.buckets.len() as i64;
        if state.scale > Self::SCALE_MAX || (state.buckets_max as usize) < Self::BUCKETS_MIN {
            return Err("its resolution is out of range");
        }
        if state.buckets.len() > state.buckets_max as usize
            || !numbers.contains(&i64::from(state.first))
            || !numbers.contains(&last)
        {
            return Err("its buckets are out of range");
        }
        if state.count > 0 && state.min > state.max {
            return Err("its smallest value is above its largest");
        }
        let [all, first, second] = state.sums;
        let positive = |bucket: &Bucket| bucket.weight >= 0.0 && bucket.is_finite();
        let sound =
            state.buckets.iter().all(positive) && positive(&state.nothing) && positive(&all);
        if !(sound && first.is_finite() && second.is_finite()) {
            return Err("its weights are not numbers");
        }
        Ok(Self {
            scale: state.scale,
            buckets_max: state.buckets_max as usize,
            first: state.first,
            buckets: state.buckets,
            nothing: state.nothing,
            count: state.count,
            min: state.min,
            max: state.max,
            sums: Sums { all, first, second },
        })
    }
}

impl Bucket {
    fn is_finite(&self) -> bool {
        self.weight.is_finite() && self.variance.is_finite()
    }
}
