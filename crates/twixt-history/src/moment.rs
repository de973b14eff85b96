//! Moments as text: RFC 3339 in, with any zone, and UTC out.
//!
//! An offset is arithmetic. Zones with names and daylight saving are not: whoever has a local time
//! writes its offset, and an hour that exists twice is two different texts.

use twixt_model::Timestamp;
use twixt_store::Day;

const SECOND_NS: i64 = 1_000_000_000;

/// The text is no moment. Write `2024-01-31T10:00:00Z`, `2024-01-31T11:00:00+01:00`, or seconds
/// since 1970.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no moment: write 2024-01-31T10:00:00Z, an offset in place of Z, or seconds since 1970"
)]
pub struct ParseMomentError(String);

/// Reads RFC 3339 (the offset must be there), or seconds since 1970 with or without a fraction.
///
/// # Errors
/// When the text is neither, or lies beyond the years 1677 to 2262.
pub fn parse_moment(text: &str) -> Result<Timestamp, ParseMomentError> {
    let found = seconds(text).or_else(|| calendar(text));
    found.map(Timestamp::from_nanos).ok_or_else(|| ParseMomentError(text.to_owned()))
}

/// RFC 3339 in UTC, with as many digits as it takes: `2024-01-31T10:00:00Z`.
#[must_use]
pub fn moment_text(time: Timestamp) -> String {
    let day = Day::of(time);
    let within_ns = time.as_nanos().rem_euclid(24 * 3_600 * SECOND_NS);
    let (seconds, nanos) = (within_ns / SECOND_NS, within_ns % SECOND_NS);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let fraction = match nanos {
        0 => String::new(),
        nanos => format!(".{nanos:09}").trim_end_matches('0').to_owned(),
    };
    format!("{day}T{hours:02}:{minutes:02}:{seconds:02}{fraction}Z")
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

fn calendar(text: &str) -> Option<i64> {
    let (day, rest) = text.split_at_checked(10)?;
    let day = day.parse::<Day>().ok()?;
    let start = day.span().start;
    // Beyond the ends of time, days have no moments.
    let start_ns = (Day::of(start) == day).then_some(start.as_nanos())?;
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let zone_at = rest.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = rest.split_at(zone_at);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [hours, minutes, seconds] = numbers(clock)?;
    // A leap second counts as the first of the next minute.
    if hours > 23 || minutes > 59 || seconds > 60 || fraction.is_empty() {
        return None;
    }
    let clock_ns = ((hours * 60 + minutes) * 60 + seconds) * SECOND_NS + fraction_ns(fraction)?;
    start_ns.checked_add(clock_ns)?.checked_sub(offset_ns(zone)?)
}

fn offset_ns(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let [hours, minutes] = numbers(&zone[1..])?;
    let ahead_ns = (hours * 60 + minutes) * 60 * SECOND_NS;
    (hours <= 23 && minutes <= 59).then_some(if zone.starts_with('-') {
        -ahead_ns
    } else {
        ahead_ns
    })
}

/// So many numbers of two digits between colons.
fn numbers<const N: usize>(text: &str) -> Option<[i64; N]> {
    let mut numbers = [0; N];
    let mut parts = text.split(':');
    for number in &mut numbers {
        let part = parts.next().filter(|part| part.len() == 2)?;
        *number = part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(numbers)
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
        check("2024-01-31T10:00:00.123456789123Z", "2024-01-31T10:00:00.123456789Z");
        check("1706695200", "2024-01-31T10:00:00Z");
        check("1706695200.5", "2024-01-31T10:00:00.5Z");
        check("-1", "1969-12-31T23:59:59Z");
        check("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z");
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
        for text in ["2024-01-31T24:00:00Z", "2024-01-31T10:60:00Z", "2024-01-31T10:00Z", "1e9"] {
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
