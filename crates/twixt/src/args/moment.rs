//! Moments as users write them.

use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use twixt_model::quantity::Nanoseconds;
use twixt_model::{Span, Timestamp};

use crate::exit::{note, usage};
use crate::output::units;

const DAY_NS: i64 = 86_400_000_000_000;

/// A moment: absolute, or so long before now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    At(Timestamp),
    /// Of the calendar, without an offset: UTC.
    Unzoned(Timestamp),
    Ago(i64),
}

impl Moment {
    /// As a moment of the clock.
    pub(crate) fn resolve(self) -> Timestamp {
        match self {
            Self::At(time) | Self::Unzoned(time) => time,
            Self::Ago(length_ns) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let now_ns = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
                Timestamp::from_nanos(now_ns.saturating_sub(length_ns))
            }
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "not a valid time (try 2024-01-31T12:00:00Z, 2024-01-31T12:00:00+01:00, 2024-01-31, \
             @1706702400, now or -15m)"
                .to_owned()
        };
        if text == "now" {
            return Ok(Self::Ago(0));
        }
        if let Ok(nanos) = text.parse() {
            return Ok(Self::At(Timestamp::from_nanos(nanos)));
        }
        if let Some(seconds) = text.strip_prefix('@') {
            return twixt_history::parse_moment(seconds).map(Self::At).map_err(|_| wrong());
        }
        let found = match text.strip_prefix('-') {
            Some(ago) => length(ago).map(Self::Ago),
            None => calendar(text).map(|(time, has_offset)| match has_offset {
                true => Self::At(time),
                false => Self::Unzoned(time),
            }),
        };
        found.ok_or_else(wrong)
    }
}

/// The time from one moment to another, both included; without limits where they are left out.
pub(crate) fn span_of(start: Option<Moment>, end: Option<Moment>) -> anyhow::Result<Span> {
    for (name, moment) in [("start", start), ("end", end)] {
        if let Some(Moment::Unzoned(time)) = moment
            && let Some(zone) = foreign_zone()
        {
            let text = twixt_history::moment_text(time);
            note(format_args!(
                "--{name} has no offset: it is taken as {text}, not as local time in {zone}"
            ));
        }
    }
    let start = start.map_or(Timestamp::MIN, Moment::resolve);
    let end = end.map_or(Timestamp::MAX, Moment::resolve);
    if start > end {
        let (start, end) = (units::moment(start), units::moment(end));
        return Err(usage(format!("--start {start} is after --end {end}")));
    }
    Ok(Span { start, end })
}

/// A length of time; days too.
fn length(text: &str) -> Option<i64> {
    if let Some(days) = text.strip_suffix('d') {
        let days: f64 = days.parse().ok().filter(|days| (0.0..100_000.0).contains(days))?;
        return Some((days * DAY_NS as f64) as i64);
    }
    text.parse::<Nanoseconds>().ok().map(|length| length.0).filter(|&length| length >= 0)
}

/// The local time zone, if it is known not to be UTC.
fn foreign_zone() -> Option<String> {
    let link = || std::fs::read_link("/etc/localtime").ok();
    let of_system = || link()?.to_str()?.split_once("zoneinfo/").map(|(_, zone)| zone.to_owned());
    let zone = std::env::var("TZ").ok().or_else(of_system)?;
    let zone = zone.trim_start_matches(':');
    const UTC: [&str; 8] = ["", "UTC", "UTC0", "Etc/UTC", "GMT", "Etc/GMT", "Etc/Zulu", "Zulu"];
    (!UTC.contains(&zone)).then(|| zone.to_owned())
}

/// RFC 3339; without a time: the start of the day; without an offset: UTC, with a note.
fn calendar(text: &str) -> Option<(Timestamp, bool)> {
    let (time, has_offset) = match text.parse::<jiff::Timestamp>() {
        Ok(time) => (time, true),
        Err(_) => {
            let unzoned = text.parse::<jiff::civil::DateTime>().ok()?;
            (unzoned.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp(), false)
        }
    };
    let nanos = i64::try_from(time.as_nanosecond()).ok()?;
    Some((Timestamp::from_nanos(nanos), has_offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, nanos: i64) {
        assert_eq!(text.parse(), Ok(Moment::At(Timestamp::from_nanos(nanos))), "{text}");
    }

    #[track_caller]
    fn check_unzoned(text: &str, nanos: i64) {
        assert_eq!(text.parse(), Ok(Moment::Unzoned(Timestamp::from_nanos(nanos))), "{text}");
    }

    #[test]
    fn moments_are_read_as_people_write_them() {
        const START: i64 = 1_704_067_200_000_000_000;
        check("1704067200000000000", START);
        check("-5", -5);
        check("@1704067200", START);
        check("@1704067200.5", START + 500_000_000);
        check_unzoned("2024-01-01", START);
        check("2024-01-01T00:00:00Z", START);
        check_unzoned("2024-01-01 01:02", START + 3_720_000_000_000);
        check("2024-01-01T00:00:01.5Z", START + 1_500_000_000);
        check("2024-01-01T02:00:00.000000001+02:00", START + 1);
        check("2023-12-31T23:00:00-01:00", START);
        assert_eq!("-1d".parse(), Ok(Moment::Ago(DAY_NS)));
        assert_eq!("-90m".parse(), Ok(Moment::Ago(5_400_000_000_000)));
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in ["", "tuesday", "2024-02-30", "2024-01-01T25:00", "2024-01-01T10:0", "-1y"] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
        for text in ["2024-01-01Tß", "2024-01-01T1:00", "2024-01-01T10:00:00.x", "２024-01-01"] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }
}
