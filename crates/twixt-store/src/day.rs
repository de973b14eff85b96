//! Days of the calendar, UTC: files are named by them.

use std::fmt;
use std::str::FromStr;

use twixt_model::{Span, Timestamp};

const DAY_NS: i64 = 86_400_000_000_000;
/// Days from March 1 of the year 0 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;
/// Days in 400 years.
const ERA_DAYS: i64 = 146_097;

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

    /// A day by year, month and day of the month; `None` if the calendar has no such day.
    #[must_use]
    pub fn from_civil(year: i64, month: i64, day: i64) -> Option<Self> {
        if !(0..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        // Years begin in March, so that the leap day comes last.
        let shifted_year = year - i64::from(month <= 2);
        let month_from_march = (month + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
        let year_of_era = shifted_year.rem_euclid(400);
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let days = shifted_year.div_euclid(400) * ERA_DAYS + day_of_era - EPOCH_DAYS;
        let found = Self(i32::try_from(days).ok()?);
        (found.civil() == (year, month, day)).then_some(found)
    }

    /// Year, month and day of the month.
    #[must_use]
    pub fn civil(self) -> (i64, i64, i64) {
        let shifted = i64::from(self.0) + EPOCH_DAYS;
        let (era, day_of_era) = (shifted.div_euclid(ERA_DAYS), shifted.rem_euclid(ERA_DAYS));
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = (month_from_march + 2) % 12 + 1;
        (400 * era + year_of_era + i64::from(month <= 2), month, day)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.civil();
        write!(formatter, "{year:04}-{month:02}-{day:02}")
    }
}

/// The text is no day of the calendar. Write it as `2024-01-31`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no day; write it as 2024-01-31")]
pub struct ParseDayError {
    text: String,
}

impl FromStr for Day {
    type Err = ParseDayError;

    fn from_str(text: &str) -> Result<Self, ParseDayError> {
        let number = |range: std::ops::Range<usize>| {
            let digits = text.get(range)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
        };
        let parsed = || {
            let dashes = text.len() == 10 && text.get(4..5) == Some("-");
            if !dashes || text.get(7..8) != Some("-") {
                return None;
            }
            Self::from_civil(number(0..4)?, number(5..7)?, number(8..10)?)
        };
        parsed().ok_or_else(|| ParseDayError { text: text.to_owned() })
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
    fn every_day_is_found_again() {
        for number in (-110_000..110_000).step_by(7) {
            let (year, month, day) = Day(number).civil();
            assert_eq!(Day::from_civil(year, month, day), Some(Day(number)));
        }
    }

    #[test]
    fn what_is_no_day_is_refused() {
        for text in ["", "2024-1-1", "2023-02-29", "2024-13-01", "2024-00-10", "2024-01-32"] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
        for text in ["+024-01-01", "2024-01-01x", "2024/01/01", "２０24-01-01"] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
    }
}
