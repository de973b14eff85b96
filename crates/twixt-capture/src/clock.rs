//! From a file's units of time to nanoseconds.
//!
//! pcapng lets each interface count time in its own unit, from its own start
//! (draft-ietf-opsawg-pcapng, `if_tsresol` and `if_tsoffset`). Nothing here knows where the
//! counts come from.

use std::fmt;

use twixt_model::Timestamp;

const NANOS_PER_SECOND: u32 = 1_000_000_000;
const NANOSECOND_DIGITS: u8 = 9;

/// The unit in which an interface counts time: 10^-n or 2^-n seconds, n below 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Resolution(u8); // as `if_tsresol` has it: the top bit chooses 2, the rest is n

impl Resolution {
    /// Microseconds, the default of both formats.
    pub const MICROSECOND: Self = Self(6);
    /// Nanoseconds.
    pub const NANOSECOND: Self = Self(NANOSECOND_DIGITS);

    const BINARY: u8 = 0x80;

    /// The resolution that the option `if_tsresol` says.
    #[must_use]
    pub const fn from_option(value: u8) -> Self {
        Self(value)
    }

    const fn exponent(self) -> u8 {
        self.0 & !Self::BINARY
    }

    const fn is_binary(self) -> bool {
        self.0 & Self::BINARY != 0
    }
}

/// `100 ns`, `1 µs`, `2^-20 s`.
impl fmt::Display for Resolution {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["s", "ms", "µs", "ns", "ps", "fs"];
        let exponent = usize::from(self.exponent());
        if self.is_binary() {
            return write!(formatter, "2^-{exponent} s");
        }
        match (UNITS.get(exponent.div_ceil(3)), exponent % 3) {
            (Some(unit), 0) => write!(formatter, "1 {unit}"),
            (Some(unit), 1) => write!(formatter, "100 {unit}"),
            (Some(unit), _) => write!(formatter, "10 {unit}"),
            (None, _) => write!(formatter, "10^-{exponent} s"),
        }
    }
}

/// Turns counts of an interface's unit into moments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameClock {
    scale: Scale,
    offset_nanos: i128,
}

/// How many nanoseconds a unit is; what is finer than a nanosecond is cut off.
#[derive(Clone, Copy, Debug)]
enum Scale {
    Multiply(u64),
    Divide(u64),
    /// So fine that 64 bits of it are less than a nanosecond.
    Vanishing,
    /// Multiply by 10^9, then halve this often.
    Halve(u8),
}

impl FrameClock {
    pub(crate) fn new(resolution: Resolution, offset_seconds: i64) -> Self {
        let offset_nanos = i128::from(offset_seconds) * i128::from(NANOS_PER_SECOND);
        Self { scale: Scale::of(resolution), offset_nanos }
    }

    /// The moment `units` after the interface's start, or `None` if no [`Timestamp`] can say it.
    #[inline]
    pub(crate) fn time(&self, units: u64) -> Option<Timestamp> {
        i64::try_from(self.nanos(units)).ok().map(Timestamp::from_nanos)
    }

    /// The moment nearest to the one `units` after the interface's start.
    #[cold]
    pub(crate) fn nearest_time(&self, units: u64) -> Timestamp {
        if self.nanos(units) < 0 { Timestamp::MIN } else { Timestamp::MAX }
    }

    /// Cannot overflow: 2^64 units of at most 10^9 ns, and 2^63 s of offset, are below 2^95.
    #[inline]
    fn nanos(&self, units: u64) -> i128 {
        self.offset_nanos
            + match self.scale {
                Scale::Multiply(factor) => i128::from(units) * i128::from(factor),
                Scale::Divide(divisor) => i128::from(units / divisor),
                Scale::Vanishing => 0,
                Scale::Halve(times) => (i128::from(units) * i128::from(NANOS_PER_SECOND)) >> times,
            }
    }
}

impl Scale {
    fn of(resolution: Resolution) -> Self {
        let exponent = resolution.exponent();
        if resolution.is_binary() {
            return Self::Halve(exponent);
        }
        let power = |digits: u8| 10_u64.checked_pow(u32::from(digits));
        if exponent <= NANOSECOND_DIGITS {
            let factor = power(NANOSECOND_DIGITS - exponent);
            return Self::Multiply(factor.expect("10^9 fits 64 bits"));
        }
        power(exponent - NANOSECOND_DIGITS).map_or(Self::Vanishing, Self::Divide)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(option: u8, offset_seconds: i64, units: u64, expected: Option<i64>) {
        let clock = FrameClock::new(Resolution::from_option(option), offset_seconds);
        assert_eq!(clock.time(units).map(Timestamp::as_nanos), expected);
    }

    #[test]
    fn powers_of_ten() {
        check(0, 0, 3, Some(3_000_000_000));
        check(3, 0, 1_700_000_000_123, Some(1_700_000_000_123_000_000));
        check(6, 0, 1_700_000_000_123_456, Some(1_700_000_000_123_456_000));
        check(9, 0, 1_700_000_000_123_456_789, Some(1_700_000_000_123_456_789));
        check(12, 0, 1_234_567_890_123, Some(1_234_567_890));
        check(28, 0, u64::MAX, Some(1));
        check(29, 0, u64::MAX, Some(0));
        check(127, 0, u64::MAX, Some(0));
    }

    #[test]
    fn powers_of_two() {
        check(0x80, 0, 3, Some(3_000_000_000));
        check(0x80 + 10, 0, 1024 + 512, Some(1_500_000_000));
        check(0x80 + 20, 0, 1, Some(953));
        check(0x80 + 32, 0, (1_700_000_000 << 32) + (1 << 31), Some(1_700_000_000_500_000_000));
        check(0x80 + 127, 0, u64::MAX, Some(0));
    }

    #[test]
    fn offsets_have_a_sign() {
        check(6, 10, 5, Some(10_000_005_000));
        check(6, -10, 5, Some(-9_999_995_000));
        check(0, -1_700_000_000, 1_700_000_001, Some(1_000_000_000));
    }

    #[test]
    fn what_cannot_be_said_is_not_said() {
        check(0, 0, u64::MAX, None);
        check(6, i64::MIN, 0, None);
        check(9, 0, i64::MAX as u64, Some(i64::MAX));
        check(9, 0, i64::MAX as u64 + 1, None);
        let early = FrameClock::new(Resolution::MICROSECOND, i64::MIN);
        assert_eq!(early.nearest_time(0), Timestamp::MIN);
        let late = FrameClock::new(Resolution::MICROSECOND, i64::MAX);
        assert_eq!(late.nearest_time(0), Timestamp::MAX);
    }

    #[test]
    fn resolutions_in_words() {
        let words = |option| Resolution::from_option(option).to_string();
        assert_eq!(words(0), "1 s");
        assert_eq!(words(3), "1 ms");
        assert_eq!(words(4), "100 µs");
        assert_eq!(words(5), "10 µs");
        assert_eq!(words(6), "1 µs");
        assert_eq!(words(9), "1 ns");
        assert_eq!(words(12), "1 ps");
        assert_eq!(words(20), "10^-20 s");
        assert_eq!(words(0x80 + 20), "2^-20 s");
    }
}
