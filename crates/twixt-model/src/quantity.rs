//! Amounts with units, as people write them: `20us`, `500kpps`, `1gbit`, `9KiB`.
//!
//! Read exactly, in integers: `0.1us` is 100 ns, and what is finer than the smallest unit is
//! refused rather than rounded. Shown in the largest unit that divides the amount, so that what
//! is shown reads back.

use std::fmt;
use std::str::FromStr;

/// A length of time in nanoseconds: `500ns`, `20us`, `1.5ms`, `1s`, `2m`, `1h`. May be negative;
/// who cannot use that says so. `0` needs no unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanoseconds(pub i64);

/// Packets per second: `800pps`, `500kpps`, `5Mpps`, `1Gpps`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketRate(pub u64);

/// Bits per second: `800bit`, `20kbit`, `50mbit`, `1gbit`, as `tc` writes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(pub u64);

/// Bytes: `64B`, `9KiB`, `1MiB`, `2GiB`, `10kB`, `10MB`, `1GB`. Without a unit: bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteCount(pub u64);

/// Why a text is no such amount.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuantityError {
    /// No number stands at the start. Write digits, then a unit.
    NoNumber {
        /// What was written.
        text: String,
        /// What could be written instead.
        example: &'static str,
    },
    /// The unit is missing or not one of these.
    UnknownUnit {
        /// What was written.
        text: String,
        /// The units there are.
        known: String,
    },
    /// The amount is finer than the smallest unit. Round it.
    TooFine {
        /// What was written.
        text: String,
        /// The smallest unit.
        smallest: &'static str,
    },
    /// The amount does not fit 64 bits, or is negative where that means nothing.
    OutOfRange {
        /// What was written.
        text: String,
    },
}

impl fmt::Display for QuantityError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumber { text, example } => {
                write!(formatter, "{text:?} does not start with a number; try {example}")
            }
            Self::UnknownUnit { text, known } => {
                write!(formatter, "{text:?} has no known unit; known are: {known}")
            }
            Self::TooFine { text, smallest } => {
                write!(formatter, "{text:?} is finer than 1 {smallest}")
            }
            Self::OutOfRange { text } => write!(formatter, "{text:?} is out of range"),
        }
    }
}

impl std::error::Error for QuantityError {}

/// Spelling and size of a unit. In a table of units the first is the smallest, and of equal
/// sizes the first is the one shown.
type Unit = (&'static str, i128);

macro_rules! quantity {
    ($type:ident, $integer:ty, $example:literal, $matches:expr, bare: $bare:expr, $units:expr) => {
        impl $type {
            const UNITS: &'static [Unit] = &$units;
        }

        impl FromStr for $type {
            type Err = QuantityError;

            fn from_str(text: &str) -> Result<Self, QuantityError> {
                let amount = parse(text, Self::UNITS, $matches, $bare, $example)?;
                let out_of_range = |_| QuantityError::OutOfRange { text: text.to_owned() };
                <$integer>::try_from(amount).map(Self).map_err(out_of_range)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                show(i128::from(self.0), Self::UNITS, formatter)
            }
        }
    };
}

quantity!(
    Nanoseconds, i64, "20us", str::eq, bare: Bare::ZeroOnly,
    [
        ("ns", 1), ("us", 1_000), ("µs", 1_000), ("μs", 1_000), ("ms", 1_000_000),
        ("s", 1_000_000_000), ("m", 60_000_000_000), ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ]
);
quantity!(
    PacketRate, u64, "500kpps", str::eq_ignore_ascii_case, bare: Bare::Refused,
    [("pps", 1), ("kpps", 1_000), ("Mpps", 1_000_000), ("Gpps", 1_000_000_000)]
);
quantity!(
    BitRate, u64, "1gbit", str::eq_ignore_ascii_case, bare: Bare::Refused,
    [("bit", 1), ("kbit", 1_000), ("mbit", 1_000_000), ("gbit", 1_000_000_000), ("tbit", 1_000_000_000_000)]
);
quantity!(
    ByteCount, u64, "9KiB", str::eq_ignore_ascii_case, bare: Bare::Smallest,
    [
        ("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30),
        ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000),
    ]
);

impl Nanoseconds {
    /// As a number to calculate with.
    #[must_use]
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }
}

/// What a number without a unit means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bare {
    Refused,
    ZeroOnly,
    Smallest,
}

fn parse(
    text: &str,
    units: &[Unit],
    matches: impl Fn(&str, &str) -> bool,
    bare: Bare,
    example: &'static str,
) -> Result<i128, QuantityError> {
    let written = || text.to_owned();
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && !"+-.".contains(letter))
        .unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let decimal = Decimal::parse(number)
        .ok_or_else(|| QuantityError::NoNumber { text: written(), example })?;
    let size = match units.iter().find(|(name, _)| matches(name, unit)) {
        Some(&(_, size)) => size,
        None if unit.is_empty() && bare == Bare::Smallest => 1,
        None if unit.is_empty() && bare == Bare::ZeroOnly && decimal.digits == 0 => 1,
        None => {
            let known = units.iter().map(|unit| unit.0).collect::<Vec<_>>().join(", ");
            return Err(QuantityError::UnknownUnit { text: written(), known });
        }
    };
    let scaled = decimal
        .digits
        .checked_mul(size)
        .ok_or_else(|| QuantityError::OutOfRange { text: written() })?;
    if scaled % decimal.denominator != 0 {
        return Err(QuantityError::TooFine { text: written(), smallest: units[0].0 });
    }
    Ok(scaled / decimal.denominator)
}

/// A decimal number as a fraction: 1.25 is 125 / 100.
struct Decimal {
    digits: i128,
    denominator: i128,
}

impl Decimal {
    /// More digits than this say nothing that 64 bits could hold.
    const DIGITS_MAX: usize = 24;

    fn parse(text: &str) -> Option<Self> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let joined = format!("{whole}{fraction}");
        let all_digits = joined.bytes().all(|letter| letter.is_ascii_digit());
        if joined.is_empty() || joined.len() > Self::DIGITS_MAX || !all_digits {
            return None;
        }
        let magnitude: i128 = joined.parse().ok()?;
        let digits = if negative { -magnitude } else { magnitude };
        Some(Self { digits, denominator: 10_i128.pow(fraction.len() as u32) })
    }
}

fn show(amount: i128, units: &[Unit], formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    if amount == 0 {
        return write!(formatter, "0{}", units[0].0);
    }
    let mut best = units[0];
    for &unit in units {
        if amount % unit.1 == 0 && unit.1 > best.1 {
            best = unit;
        }
    }
    write!(formatter, "{}{}", amount / best.1, best.0)
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use proptest::prelude::*;

    use super::*;

    /// `text` is read, and shown as `shown`, which reads back as the same.
    #[track_caller]
    fn check<Q: FromStr<Err: Debug> + fmt::Display + PartialEq + Debug>(
        text: &str,
        amount: &Q,
        shown: &str,
    ) {
        assert_eq!(text.parse::<Q>().as_ref().unwrap(), amount, "{text}");
        assert_eq!(amount.to_string(), shown);
        assert_eq!(shown.parse::<Q>().as_ref().unwrap(), amount);
    }

    #[test]
    fn durations() {
        check("1ms", &Nanoseconds(1_000_000), "1ms");
        check("133us", &Nanoseconds(133_000), "133us");
        check("133µs", &Nanoseconds(133_000), "133us");
        check("1.5s", &Nanoseconds(1_500_000_000), "1500ms");
        check("500ns", &Nanoseconds(500), "500ns");
        check("2m", &Nanoseconds(120_000_000_000), "2m");
        check("60m", &Nanoseconds(3_600_000_000_000), "1h");
        check("-3.5us", &Nanoseconds(-3_500), "-3500ns");
        check("0", &Nanoseconds(0), "0ns");
        check("0.001us", &Nanoseconds(1), "1ns");
    }

    #[test]
    fn rates_and_sizes() {
        check("500kpps", &PacketRate(500_000), "500kpps");
        check("5Mpps", &PacketRate(5_000_000), "5Mpps");
        check("1.25mpps", &PacketRate(1_250_000), "1250kpps");
        check("1gbit", &BitRate(1_000_000_000), "1gbit");
        check("50Mbit", &BitRate(50_000_000), "50mbit");
        check("20kbit", &BitRate(20_000), "20kbit");
        check("9KiB", &ByteCount(9216), "9KiB");
        check("1000", &ByteCount(1000), "1kB");
        check("1MiB", &ByteCount(1 << 20), "1MiB");
    }

    #[track_caller]
    fn refused<Q: FromStr<Err: fmt::Display> + Debug>(text: &str, says: &str) {
        let error = text.parse::<Q>().map(|_| ()).map_err(|error| error.to_string());
        let message = error.expect_err("should be refused");
        assert!(message.contains(says), "{message}");
    }

    #[test]
    fn what_is_no_amount_is_refused_with_a_reason() {
        refused::<Nanoseconds>("", "does not start with a number");
        refused::<Nanoseconds>("ms", "20us");
        refused::<Nanoseconds>("1", "known are: ns, us");
        refused::<Nanoseconds>("1fortnight", "known are: ns, us");
        refused::<Nanoseconds>("1.5ns", "finer than 1 ns");
        refused::<Nanoseconds>("9999999999h", "out of range");
        refused::<PacketRate>("-1kpps", "out of range");
        refused::<PacketRate>("1-2kpps", "does not start with a number");
        refused::<BitRate>("1", "known are: bit");
    }

    proptest! {
        #[test]
        fn every_amount_reads_back(amount in any::<i64>(), rate in any::<u64>()) {
            prop_assert_eq!(Nanoseconds(amount).to_string().parse(), Ok(Nanoseconds(amount)));
            prop_assert_eq!(PacketRate(rate).to_string().parse(), Ok(PacketRate(rate)));
            prop_assert_eq!(BitRate(rate).to_string().parse(), Ok(BitRate(rate)));
            prop_assert_eq!(ByteCount(rate).to_string().parse(), Ok(ByteCount(rate)));
        }

        #[test]
        fn no_text_panics(text in "[-+0-9.a-zA-Zµ ]{0,30}|.{0,20}") {
            let _ = text.parse::<Nanoseconds>();
            let _ = text.parse::<PacketRate>();
            let _ = text.parse::<ByteCount>();
        }
    }
}
