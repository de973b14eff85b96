//! Where and when: points, segments, epochs.

use std::fmt;
use std::str::FromStr;

use crate::digest::named;
use crate::{Span, Timestamp};

/// The name of a place where packets are seen and stamped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PointId(pub String);

impl fmt::Display for PointId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Two points that packets pass one after the other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment {
    /// Passed first.
    pub upstream: PointId,
    /// Passed second.
    pub downstream: PointId,
}

/// One of the two points of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The point that packets pass first.
    Upstream,
    /// The point that packets pass second.
    Downstream,
}

impl fmt::Display for Segment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} > {}", self.upstream, self.downstream)
    }
}

/// The number of an interval of time; the same numbers everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub i64);

/// How time is cut into epochs: all of it in one, or into equal lengths counted from 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EpochRule {
    length_ns: i64, // 0: one epoch for all time; else positive
}

impl EpochRule {
    /// One epoch, number 0, for all time.
    pub const WHOLE: Self = Self { length_ns: 0 };

    /// Epochs of `length_ns` nanoseconds; `None` unless that is positive.
    #[must_use]
    pub const fn every(length_ns: i64) -> Option<Self> {
        if length_ns > 0 { Some(Self { length_ns }) } else { None }
    }

    /// The length of an epoch; `None` when one epoch holds all time.
    #[must_use]
    pub const fn length_ns(self) -> Option<i64> {
        if self.length_ns > 0 { Some(self.length_ns) } else { None }
    }

    /// The epoch that `time` falls into.
    #[must_use]
    pub const fn epoch_of(self, time: Timestamp) -> Epoch {
        if self.length_ns == 0 {
            Epoch(0)
        } else {
            Epoch(time.as_nanos().div_euclid(self.length_ns))
        }
    }

    /// The moments of an epoch: its end is the last nanosecond before the next one starts.
    #[must_use]
    pub const fn span_of(self, epoch: Epoch) -> Span {
        if self.length_ns == 0 {
            return Span { start: Timestamp::MIN, end: Timestamp::MAX };
        }
        let start = epoch.0.saturating_mul(self.length_ns);
        Span {
            start: Timestamp::from_nanos(start),
            end: Timestamp::from_nanos(start.saturating_add(self.length_ns - 1)),
        }
    }
}

/// Who took the time of a frame; part of the evidence of every estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeSource {
    /// A capture file; who wrote it is not known.
    #[default]
    File,
    /// The kernel, when the frame reached it.
    Kernel,
    /// The network adapter.
    Hardware,
}

named!(TimeSource { File = "file" / 0, Kernel = "kernel" / 1, Hardware = "hardware" / 2 });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_are_counted_from_1970_in_both_directions() {
        let rule = EpochRule::every(100).unwrap();
        assert_eq!(rule.epoch_of(Timestamp::from_nanos(199)), Epoch(1));
        assert_eq!(rule.epoch_of(Timestamp::from_nanos(-1)), Epoch(-1));
        let span = rule.span_of(Epoch(1));
        assert_eq!((span.start.as_nanos(), span.end.as_nanos()), (100, 199));
    }

    #[test]
    fn the_whole_is_one_epoch() {
        assert_eq!(EpochRule::WHOLE.epoch_of(Timestamp::MAX), Epoch(0));
        assert!(EpochRule::WHOLE.span_of(Epoch(0)).contains(Timestamp::MIN));
        assert!(EpochRule::every(0).is_none());
    }
}
