//! How wrong the downstream clock is, compared with the upstream one, which is right.

use std::fmt;
use std::str::FromStr;

use crate::spec::{Form, RangeError, Spec, SpecError, require};
use twixt_model::quantity::Nanoseconds;

/// Error of the downstream clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clock {
    /// How far it is ahead when the trace starts.
    pub offset: Nanoseconds,
    /// How much it gains, in microseconds per second.
    pub skew_ppm: f64,
}

const FORM: Form = Form::new("", "offset=0,skew=0ppm");

/// Offsets of at most a century: times then stay far from the ends of 64 bits.
const OFFSET_MAX_NS: i64 = 100 * 365 * 86_400 * 1_000_000_000;
/// A clock that gains or loses more than a tenth is not a clock.
const SKEW_MAX_PPM: f64 = 100_000.0;

impl Clock {
    pub(crate) fn validate(&self) -> Result<(), RangeError> {
        let near = self.offset.0.unsigned_abs() <= OFFSET_MAX_NS as u64;
        require(near, "offset of the clock", self.offset, "at most a century")?;
        let steady = self.skew_ppm.abs() <= SKEW_MAX_PPM;
        require(steady, "skew of the clock", self.skew_ppm, "between -100000 and 100000 ppm")
    }

    /// What the clock shows `elapsed_ns` after the start, also counted from the start.
    /// Never runs backwards, because the skew is above -1.
    pub(crate) fn reading(&self, elapsed_ns: i64) -> i64 {
        let gained = (elapsed_ns as f64 * self.skew_ppm / 1e6).round() as i64;
        elapsed_ns.saturating_add(gained).saturating_add(self.offset.0)
    }
}

impl FromStr for Clock {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let spec = Spec::with_form("clock", &FORM, text)?;
        let skew: Option<PartsPerMillion> = spec.optional("skew")?;
        let clock = Self {
            offset: spec.optional("offset")?.unwrap_or_default(),
            skew_ppm: skew.map_or(0.0, |skew| skew.0),
        };
        clock.validate()?;
        Ok(clock)
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "offset={},skew={}ppm", self.offset, self.skew_ppm)
    }
}

/// `20ppm`, or `0`.
struct PartsPerMillion(f64);

impl FromStr for PartsPerMillion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix("ppm");
        let value: f64 = number
            .unwrap_or(text)
            .trim()
            .parse()
            .map_err(|_| "not a number such as 20ppm".to_owned())?;
        if number.is_none() && value != 0.0 {
            return Err("the unit ppm is missing".to_owned());
        }
        Ok(Self(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(clock: &str, elapsed_ns: i64, reading_ns: i64) {
        assert_eq!(clock.parse::<Clock>().unwrap().reading(elapsed_ns), reading_ns);
    }

    #[test]
    fn a_clock_is_off_by_its_offset_and_gains_by_its_skew() {
        check("offset=0,skew=0ppm", 123, 123);
        check("offset=-5us,skew=0ppm", 123, 123 - 5_000);
        check("offset=0,skew=10ppm", 1_000_000_000, 1_000_010_000);
        check("offset=1s,skew=-1.5ppm", 2_000_000_000, 2_999_997_000);
        check("skew=10ppm", -1_000_000, -1_000_010);
    }

    #[test]
    fn a_skew_needs_its_unit() {
        assert!("skew=5".parse::<Clock>().is_err());
        assert!("skew=fast".parse::<Clock>().is_err());
    }
}
