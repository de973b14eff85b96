//! Days of the calendar, UTC: files are named by them.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, date};
use twixt_model::{Span, Timestamp};

const DAY_NS: i64 = 86_400_000_000_000;
/// The day with the number 0.
const EPOCH: Date = date(1970, 1, 1);

/// A day, UTC, without leap seconds: as long as every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i32);

impl Day {
    /// The day of a moment.
    #[must_use]
    pub fn of(time: Timestamp) -> Self {
        Self(time.as_nanos().div_euclid(DAY_NS) as i32)
    }

    /// From its first moment to its last, as far as moments go.
    #[must_use]
    pub fn span(self) -> Span {
        let start = i64::from(self.0).saturating_mul(DAY_NS);
        let end = start.saturating_add(DAY_NS - 1);
        Span { start: Timestamp::from_nanos(start), end: Timestamp::from_nanos(end) }
    }

    fn date(self) -> Date {
        EPOCH + jiff::Span::new().days(self.0)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.date())
    }
}

/// The text is no day of the calendar. Write it as `2024-01-31`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid day; write it as 2024-01-31")]
pub struct ParseDayError {
    text: String,
}

impl FromStr for Day {
    type Err = ParseDayError;

    fn from_str(text: &str) -> Result<Self, ParseDayError> {
        let parsed = text.parse::<Date>().ok().map(|date| Self((date - EPOCH).get_days()));
        // Other ways to write it name no file.
        let day = parsed.filter(|day| day.to_string() == text);
        day.ok_or_else(|| ParseDayError { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(nanos: i64, shown: &str) {
        let day = Day::of(Timestamp::from_nanos(nanos));
        assert_eq!(day.to_string(), shown);
        assert_eq!(shown.parse(), Ok(day));
        assert!(day.span().contains(Timestamp::from_nanos(nanos)));
    }

    #[test]
    fn days_are_named_by_the_calendar() {
        check(0, "1970-01-01");
        check(-1, "1969-12-31");
        check(1_700_000_000_123_456_789, "2023-11-14");
        check(951_782_400_000_000_000, "2000-02-29");
        check(951_868_799_999_999_999, "2000-02-29");
        check(951_868_800_000_000_000, "2000-03-01");
        check(i64::MAX, "2262-04-11");
        check(i64::MIN, "1677-09-21");
    }

    #[test]
    fn what_is_no_day_is_refused() {
        for text in ["", "2024-1-1", "2023-02-29", "2024-13-01", "2024-00-10", "2024-01-32"] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
        for text in [
            "+024-01-01",
            "2024-01-01x",
            "2024/01/01",
            "20240101",
            "２０24-01-01",
            "2024-01-01T10:00",
        ] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
    }
}
