//! Numbers as people read them.

use twixt_model::Timestamp;

/// A delay in the unit that suits it: `250 ns`, `18.2 µs`, `19.98 ms`, `1.50 s`, `3.2 years`.
pub(crate) fn duration(nanos: f64) -> String {
    let (scale, unit) = unit_of(nanos);
    match scale == 1.0 && nanos.fract() == 0.0 {
        true => format!("{nanos:.0} ns"),
        false => format!("{:.*} {unit}", decimals(nanos / scale), nanos / scale),
    }
}

/// A delay with as many digits as it takes to distinguish what differs by `step_ns`: a delay that
/// includes a clock offset of hours still shows its microseconds.
pub(crate) fn duration_to(nanos: f64, step_ns: f64) -> String {
    let (scale, unit) = unit_of(nanos);
    let needed = (scale / step_ns.max(1.0)).log10().ceil().max(0.0) as usize;
    match needed > decimals(nanos / scale) {
        // More than 15 digits are noise in the number itself.
        true => format!("{:.*} {unit}", needed.min(12), nanos / scale),
        false => duration(nanos),
    }
}

/// The largest unit that is not larger than the value; one that it would round up to counts too.
fn unit_of(nanos: f64) -> (f64, &'static str) {
    const UNITS: [(f64, &str); 6] = [
        (31_557_600e9, "years"),
        (86_400e9, "days"),
        (3_600e9, "h"),
        (1e9, "s"),
        (1e6, "ms"),
        (1e3, "µs"),
    ];
    let fitting = UNITS.into_iter().find(|(scale, _)| nanos.abs() >= scale * 0.99995);
    fitting.unwrap_or((1.0, "ns"))
}

/// For four digits in all.
fn decimals(value: f64) -> usize {
    match value.abs() {
        size if size >= 99.995 => 1,
        size if size >= 9.9995 => 2,
        _ => 3,
    }
}

/// A round length of time without digits that say nothing: `20 ms`.
pub(crate) fn round_duration(nanos: f64) -> String {
    let (scale, unit) = unit_of(nanos);
    let number = format!("{:.3}", nanos / scale);
    format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
}

/// A number and what it counts: `1 packet`, `1 234 packets`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A whole number in groups of three digits.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number between two others; the number itself if they are the same.
pub(crate) fn range(min: u64, max: u64) -> String {
    match min == max {
        true => count(min),
        false => format!("{} to {}", count(min), count(max)),
    }
}

/// A share in per cent.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        percent if percent < 0.1 => format!("{percent:.3} %"),
        percent => format!("{percent:.2} %"),
    }
}

/// A size in binary units.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(scale, _)| bytes >= *scale) {
        Some((scale, unit)) => format!("{:.1} {unit}", bytes as f64 / *scale as f64),
        None => format!("{bytes} B"),
    }
}

/// A moment in UTC, to the millisecond: `2024-01-01 00:00:00.000`.
pub(crate) fn moment(time: Timestamp) -> String {
    let time = jiff::Timestamp::from_nanosecond(i128::from(time.as_nanos()));
    let time = time.expect("years 1677 to 2262 are in its calendar");
    time.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(nanos: f64, expected: &str) {
        assert_eq!(duration(nanos), expected);
    }

    #[test]
    fn durations_have_the_unit_that_suits_them() {
        check(0.0, "0 ns");
        check(250.0, "250 ns");
        check(12.34, "12.34 ns");
        check(18_211.0, "18.21 µs");
        check(19_980_000.0, "19.98 ms");
        check(-1_500_000_000.0, "-1.500 s");
        check(999_960.0, "1.000 ms");
        check(1.262e17, "3.999 years");
    }

    #[test]
    fn small_differences_stay_visible_beside_large_delays() {
        assert_eq!(duration_to(3_033_012_345.0, 7_180.0), "3.033012 s");
        assert_eq!(duration_to(19_980_000.0, 92_000.0), "19.98 ms");
        assert_eq!(duration_to(250.0, 10.0), "250 ns");
        assert_eq!(duration_to(3_600e9 + 5_000.0, 1_000.0), "1.0000000014 h");
    }

    #[test]
    fn round_lengths_have_no_digits_that_say_nothing() {
        assert_eq!(round_duration(50e6), "50 ms");
        assert_eq!(round_duration(1.5e9), "1.5 s");
        assert_eq!(counted(1, "flow", "flows"), "1 flow");
        assert_eq!(counted(0, "flow", "flows"), "0 flows");
    }

    #[test]
    fn counts_and_sizes_are_grouped() {
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(count(12), "12");
        assert_eq!(bytes(98_304), "96.0 KiB");
        assert_eq!(percent(0.0368), "3.68 %");
        assert_eq!(percent(0.0), "0 %");
    }

    #[test]
    fn moments_are_shown_in_utc() {
        let shown = |nanos| moment(Timestamp::from_nanos(nanos));
        assert_eq!(shown(1_704_067_200_123_456_789), "2024-01-01 00:00:00.123");
        assert_eq!(shown(951_782_400_000_000_000), "2000-02-29 00:00:00.000");
        assert_eq!(shown(-1), "1969-12-31 23:59:59.999");
    }
}
