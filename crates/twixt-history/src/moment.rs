//! Moments as text: RFC 3339 in, with any zone, and UTC out.
//!
//! An offset is arithmetic. Zones with names and daylight saving are not: a caller with a local
//! time writes its offset, and an hour that exists twice is two different texts.

use twixt_model::Timestamp;

const SECOND_NS: i64 = 1_000_000_000;

/// The text is not a valid time. Write `2024-01-31T10:00:00Z`, `2024-01-31T11:00:00+01:00`, or
/// seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a valid time: write 2024-01-31T10:00:00Z, an offset instead of Z, or seconds \
     since 1970"
)]
pub struct ParseMomentError(String);

/// Reads RFC 3339 (the offset must be there), or seconds since 1970 with or without a fraction.
///
/// # Errors
/// When the text is neither, or lies beyond the years 1677 to 2262.
pub fn parse_moment(text: &str) -> Result<Timestamp, ParseMomentError> {
    let calendar = || i64::try_from(text.parse::<jiff::Timestamp>().ok()?.as_nanosecond()).ok();
    let found = seconds(text).or_else(calendar);
    found.map(Timestamp::from_nanos).ok_or_else(|| ParseMomentError(text.to_owned()))
}

/// RFC 3339 in UTC, with as many digits as it takes: `2024-01-31T10:00:00Z`.
#[must_use]
pub fn moment_text(time: Timestamp) -> String {
    let time = jiff::Timestamp::from_nanosecond(i128::from(time.as_nanos()));
    time.expect("years 1677 to 2262 are in its calendar").to_string()
}

fn seconds(text: &str) -> Option<i64> {
    let (is_negative, digits) =
        text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let whole_ns = whole.parse::<i64>().ok()?.checked_mul(SECOND_NS)?;
    let nanos = whole_ns.checked_add(fraction_ns(fraction)?)?;
    Some(if is_negative { -nanos } else { nanos })
}

/// Digits behind the point; those beyond nanoseconds do not count.
fn fraction_ns(digits: &str) -> Option<i64> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    format!("{digits:0<9}").get(..9)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, utc: &str) {
        let moment = parse_moment(text).unwrap();
        assert_eq!(moment_text(moment), utc);
        assert_eq!(parse_moment(utc), Ok(moment), "what is written is read");
    }

    #[test]
    fn offsets_and_fractions_are_read() {
        check("2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z");
        check("2024-01-31T11:30:00+01:30", "2024-01-31T10:00:00Z");
        check("2024-01-31T02:00:00.25-08:00", "2024-01-31T10:00:00.25Z");
        check("2024-01-31T10:00:00.123456789Z", "2024-01-31T10:00:00.123456789Z");
        check("1706695200", "2024-01-31T10:00:00Z");
        check("1706695200.5", "2024-01-31T10:00:00.5Z");
        check("-1", "1969-12-31T23:59:59Z");
        check("2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z");
    }

    /// In Berlin, 2024-10-27T02:30 was there twice, and 2024-03-31T02:30 never; in Kathmandu
    /// quarters of an hour count; in Samoa a whole day was left out.
    #[test]
    fn daylight_saving_is_in_the_offset() {
        check("2024-10-27T02:30:00+02:00", "2024-10-27T00:30:00Z");
        check("2024-10-27T02:30:00+01:00", "2024-10-27T01:30:00Z");
        check("2024-03-31T01:59:59+01:00", "2024-03-31T00:59:59Z");
        check("2024-03-31T03:00:00+02:00", "2024-03-31T01:00:00Z");
        check("2024-06-01T05:45:00+05:45", "2024-06-01T00:00:00Z");
        check("2011-12-29T23:59:59-10:00", "2011-12-30T09:59:59Z");
        check("2011-12-31T00:00:00+14:00", "2011-12-30T10:00:00Z");
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in ["", "now", "2024-01-31", "2024-01-31T10:00:00", "2024-02-30T00:00:00Z"] {
            assert!(parse_moment(text).is_err(), "{text}");
        }
        for text in ["2024-01-31T24:00:00Z", "2024-01-31T10:60:00Z", "2024-01-31T1:00Z", "1e9"] {
            assert!(parse_moment(text).is_err(), "{text}");
        }
        for text in
            ["9999-12-31T00:00:00Z", "99999999999999", "2024-01-31T10:00:00+ab:cd", "-", "."]
        {
            assert!(parse_moment(text).is_err(), "{text}");
        }
        for text in ["2024-01-31T10:00:00+1:00", "2024-01-31T10:00:00.Z", "２024-01-31T10:00:00Z"]
        {
            assert!(parse_moment(text).is_err(), "{text}");
        }
    }
}
