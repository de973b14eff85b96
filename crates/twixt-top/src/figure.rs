//! Numbers in few columns. A value that is not known is a dash, never 0.

/// What stands for a value that is not known.
pub(crate) const UNKNOWN: &str = "–";

/// The unit in which a delay of this size is shown.
fn unit_of(nanos: f64) -> (f64, &'static str) {
    const UNITS: [(f64, &str); 3] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    let fitting = UNITS.into_iter().find(|(scale, _)| nanos.abs() >= *scale);
    fitting.unwrap_or((1.0, "ns"))
}

/// Three digits of a delay: `4.21 ms`.
pub(crate) fn short(nanos: f64) -> String {
    let (scale, unit) = unit_of(nanos);
    let value = nanos / scale;
    let decimals = match value.abs() {
        _ if scale == 1.0 => 0,
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// A delay with half the width of its interval, to the digits that this allows, three at most:
/// `4.213 ± 0.012 ms`. A smaller interval is rounded up: it is never shown as none.
pub(crate) fn with_interval(nanos: f64, half_width: Option<f64>) -> String {
    let Some(half_width) = half_width else { return format!("{} ±?", short(nanos)) };
    let (scale, unit) = unit_of(nanos.abs().max(half_width));
    let half = half_width / scale;
    // Two digits of the interval, but nothing below a nanosecond.
    let finest = (scale.log10() as usize).min(3);
    let decimals = match half > 0.0 {
        true => ((1.0 - half.log10().floor()).max(0.0) as usize).min(finest),
        false => finest,
    };
    let step = 0.1_f64.powi(decimals as i32);
    let half = if half > 0.0 { half.max(step) } else { half };
    format!("{:.decimals$} ± {half:.decimals$} {unit}", nanos / scale)
}

/// A share in per cent.
pub(crate) fn share(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        percent if percent < 0.01 => "<0.01 %".to_owned(),
        percent if percent < 9.995 => format!("{percent:.2} %"),
        percent => format!("{percent:.1} %"),
    }
}

/// A share that is known within bounds: `12–85 %`; in the middle of them if they are close.
pub(crate) fn share_within(middle: f64, half_width: f64) -> String {
    const CLOSE: f64 = 0.005;
    // What sums of such numbers may be wrong by.
    const ROUNDING: f64 = 1e-9;
    if half_width <= CLOSE {
        return share(middle);
    }
    let [low, high] = [middle - half_width, middle + half_width].map(|share| share * 100.0);
    format!("{:.0}–{:.0} %", (low.max(0.0) + ROUNDING).floor(), (high - ROUNDING).ceil())
}

/// A number of packets or bytes in at most six columns: `812`, `45.1k`, `3.20M`.
pub(crate) fn amount(number: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k")];
    let Some((least, unit)) = UNITS.into_iter().find(|(least, _)| number >= *least) else {
        return number.to_string();
    };
    let scale = if unit == "k" { 1_000 } else { least };
    format!("{:.1}{unit}", number as f64 / scale as f64)
}

/// The time of day, UTC, of a moment in nanoseconds since 1970.
pub(crate) fn time_of_day(nanos: i64) -> String {
    let seconds = nanos.div_euclid(1_000_000_000).rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// How long something took or is ago.
pub(crate) fn age(nanos: i64) -> String {
    match nanos.max(0) / 1_000_000_000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_have_three_digits() {
        let shown = [0.0, 250.0, 4_214.0, 18_211_000.0, -1.5e9, 2.5e11].map(short);
        assert_eq!(shown, ["0 ns", "250 ns", "4.21 µs", "18.2 ms", "-1.50 s", "250 s"]);
    }

    #[test]
    fn means_have_the_digits_that_their_interval_allows() {
        assert_eq!(with_interval(4_213_456.0, Some(12_345.0)), "4.213 ± 0.012 ms");
        assert_eq!(with_interval(4_213_456.0, Some(3e6)), "4.2 ± 3.0 ms");
        assert_eq!(with_interval(120.0, Some(0.4)), "120 ± 1 ns");
        assert_eq!(with_interval(4_213_456.0, Some(12.0)), "4.213 ± 0.001 ms");
        assert_eq!(with_interval(-5e6, Some(0.0)), "-5.000 ± 0.000 ms");
        assert_eq!(with_interval(4_213_456.0, None), "4.21 ms ±?");
    }

    #[test]
    fn shares_and_amounts_are_short() {
        let shares = [0.0, 0.000_01, 0.0012, 0.5].map(share);
        assert_eq!(shares, ["0 %", "<0.01 %", "0.12 %", "50.0 %"]);
        assert_eq!(share_within(0.45, 0.4), "5–85 %");
        assert_eq!(share_within(0.5, 0.5), "0–100 %");
        assert_eq!(share_within(0.02, 0.001), "2.00 %");
        let amounts = [0, 9_999, 10_000, 45_100, 3_200_000, 7_000_000_000].map(amount);
        assert_eq!(amounts, ["0", "9999", "10.0k", "45.1k", "3.2M", "7.0G"]);
    }

    #[test]
    fn times_are_of_a_day() {
        assert_eq!(time_of_day(1_704_067_200_000_000_000 + 3_723_500_000_000), "01:02:03");
        assert_eq!(time_of_day(-1_000_000_000), "23:59:59");
        assert_eq!(
            [5, 300, 10_000, 200_000].map(|s| age(s * 1_000_000_000)),
            ["5 s", "5 min", "2 h", "2 d"]
        );
    }
}
