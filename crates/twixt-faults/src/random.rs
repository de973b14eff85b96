//! Numbers that depend on a seed alone.

use std::ops::Range;

use twixt_model::mix;

/// A sequence of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Within a range that is not empty.
    pub(crate) fn within(&mut self, range: Range<i64>) -> i64 {
        let width = range.end.abs_diff(range.start).max(1);
        range.start + (self.next() % width).cast_signed()
    }

    /// Once in so many times.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.next().is_multiple_of(times.max(1))
    }

    /// One of several.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.next() % of.len() as u64) as usize]
    }

    /// Another sequence.
    pub(crate) fn fork(&mut self) -> Self {
        Self::new(self.next())
    }
}
