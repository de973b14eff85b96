//! How long a row is, and the hours that files are made of.

use std::fmt;
use std::str::FromStr;

use twixt_model::{Span, Timestamp};
use twixt_store::Day;

/// Length of a minute.
pub const MINUTE_NS: i64 = 60_000_000_000;
/// Length of an hour.
pub const HOUR_NS: i64 = 60 * MINUTE_NS;
/// Hours of a day.
const DAY_HOURS: i64 = 24;

/// How long a row is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// As long as the epochs of its series.
    #[default]
    Epoch,
    /// A minute, summed up from its epochs.
    Minute,
    /// An hour, summed up from its epochs.
    Hour,
}

impl Step {
    /// All of them, the shortest first.
    pub const ALL: [Self; 3] = [Self::Epoch, Self::Minute, Self::Hour];

    /// The name in files, queries and answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Epoch => "epoch",
            Self::Minute => "minute",
            Self::Hour => "hour",
        }
    }

    /// Its length; `None` for epochs, whose length is that of their series.
    #[must_use]
    pub const fn length_ns(self) -> Option<i64> {
        match self {
            Self::Epoch => None,
            Self::Minute => Some(MINUTE_NS),
            Self::Hour => Some(HOUR_NS),
        }
    }

    /// The minute or hour that contains a time.
    pub(crate) fn span_of(self, time_ns: i64) -> Option<Span> {
        let length_ns = self.length_ns()?;
        let start_ns = time_ns.div_euclid(length_ns).saturating_mul(length_ns);
        Some(Span {
            start: Timestamp::from_nanos(start_ns),
            end: Timestamp::from_nanos(start_ns.saturating_add(length_ns - 1)),
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// There is no such step. Write `epoch`, `minute` or `hour`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a valid step: use epoch, minute or hour")]
pub struct ParseStepError(String);

impl FromStr for Step {
    type Err = ParseStepError;

    fn from_str(text: &str) -> Result<Self, ParseStepError> {
        let found = Self::ALL.into_iter().find(|step| step.name() == text);
        found.ok_or_else(|| ParseStepError(text.to_owned()))
    }
}

/// An hour, UTC, counted from 1970. Zones and daylight saving are left to the display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hour(i64);

impl Hour {
    /// The hour of a moment.
    #[must_use]
    pub const fn of(time: Timestamp) -> Self {
        Self(time.as_nanos().div_euclid(HOUR_NS))
    }

    /// From its first moment to its last, as far as moments go.
    #[must_use]
    pub const fn span(self) -> Span {
        let start_ns = self.0.saturating_mul(HOUR_NS);
        let end_ns = start_ns.saturating_add(HOUR_NS - 1);
        Span { start: Timestamp::from_nanos(start_ns), end: Timestamp::from_nanos(end_ns) }
    }

    /// This hour, and those up to another.
    pub(crate) fn through(self, last: Self) -> impl Iterator<Item = Self> {
        (self.0..=last.0).map(Self)
    }

    pub(crate) fn day(self) -> Day {
        Day::of(self.span().start)
    }

    /// Within its day, from 0 to 23.
    pub(crate) const fn of_day(self) -> i64 {
        self.0.rem_euclid(DAY_HOURS)
    }

    /// An hour of a day; `None` beyond 23.
    pub(crate) fn within(day: Day, hour: i64) -> Option<Self> {
        let first = Self::of(day.span().start).0;
        (0..DAY_HOURS).contains(&hour).then(|| Self(first + hour))
    }
}

impl fmt::Display for Hour {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}T{:02}", self.day(), self.of_day())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_have_names_and_are_found_again() {
        for (nanos, name) in [(0, "1970-01-01T00"), (1_700_000_000_123_456_789, "2023-11-14T22")] {
            let hour = Hour::of(Timestamp::from_nanos(nanos));
            assert_eq!(hour.to_string(), name);
            assert!(hour.span().contains(Timestamp::from_nanos(nanos)));
            assert_eq!(Hour::within(hour.day(), hour.of_day()), Some(hour));
        }
        assert_eq!(Hour::within(Day::of(Timestamp::from_nanos(0)), 24), None);
    }

    #[test]
    fn the_ends_of_time_have_hours() {
        for nanos in [i64::MIN, -1, i64::MAX] {
            let hour = Hour::of(Timestamp::from_nanos(nanos));
            assert!(!hour.to_string().is_empty() && hour.span().start <= hour.span().end);
        }
    }

    #[test]
    fn steps_are_read_by_their_names() {
        for step in Step::ALL {
            assert_eq!(step.name().parse(), Ok(step));
        }
        assert!("day".parse::<Step>().is_err());
    }
}
