//! Moments and delays, in integer nanoseconds.

use std::ops::{Add, Neg, Sub};

/// A moment on one observation point's clock, nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The earliest representable time.
    pub const MIN: Self = Self(i64::MIN);
    /// The latest representable time.
    pub const MAX: Self = Self(i64::MAX);

    /// The moment `nanos` nanoseconds after 1970 began.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since 1970.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
}

/// How long a packet took from one point to another.
///
/// Signed, because with imperfect clocks a packet can seem to arrive before it left.
/// That is a fact to show, not one to clamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Delay(i64);

impl Delay {
    /// No delay at all.
    pub const ZERO: Self = Self(0);

    /// A delay of `nanos` nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// The delay in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
}

impl Sub for Timestamp {
    type Output = Delay;

    /// Saturates: hostile captures carry times at both ends of what 64 bits hold.
    fn sub(self, earlier: Self) -> Delay {
        Delay(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Delay> for Timestamp {
    type Output = Self;

    fn add(self, delay: Delay) -> Self {
        Self(self.0.saturating_add(delay.0))
    }
}

impl Sub<Delay> for Timestamp {
    type Output = Self;

    fn sub(self, delay: Delay) -> Self {
        Self(self.0.saturating_sub(delay.0))
    }
}

impl Add for Delay {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Delay {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for Delay {
    type Output = Self;

    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

/// An interval of time, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First moment.
    pub start: Timestamp,
    /// Last moment.
    pub end: Timestamp,
}

impl Span {
    /// The interval of a single point in time.
    #[must_use]
    pub const fn at(time: Timestamp) -> Self {
        Self { start: time, end: time }
    }

    /// Whether `time` lies in the interval.
    #[must_use]
    pub fn contains(&self, time: Timestamp) -> bool {
        self.start <= time && time <= self.end
    }

    /// The smallest interval that contains both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The smallest interval that contains this one and `time`.
    #[must_use]
    pub fn including(self, time: Timestamp) -> Self {
        self.union(Self::at(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_keep_their_sign_and_saturate() {
        let early = Timestamp::from_nanos(5);
        let late = Timestamp::from_nanos(7);
        assert_eq!((late - early).as_nanos(), 2);
        assert_eq!((early - late).as_nanos(), -2);
        assert_eq!((Timestamp::MAX - Timestamp::MIN).as_nanos(), i64::MAX);
    }

    #[test]
    fn a_span_grows_to_hold_what_is_added() {
        let span = Span::at(Timestamp::from_nanos(5)).including(Timestamp::from_nanos(2));
        assert!(span.contains(Timestamp::from_nanos(3)));
        assert!(!span.contains(Timestamp::from_nanos(6)));
    }
}
