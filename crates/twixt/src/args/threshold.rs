//! Thresholds as people write them: `mean=5ms`, `loss=0.1%`.

use std::str::FromStr;

use twixt_collector::alerts::Measure;
use twixt_model::quantity::Nanoseconds;

/// A measure and what it must not exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Threshold {
    pub(crate) measure: Measure,
    /// Nanoseconds, or a share.
    pub(crate) above: f64,
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) =
            text.split_once('=').ok_or("write MEASURE=VALUE, such as mean=5ms or loss=0.1%")?;
        let measure: Measure = name.parse().map_err(|error| format!("{error}"))?;
        Ok(Self { measure, above: threshold(measure, value)? })
    }
}

/// What a value means for a measure: nanoseconds of times, and shares, which may be percentages.
pub(crate) fn threshold(measure: Measure, text: &str) -> Result<f64, String> {
    if measure.is_time() {
        let length = Nanoseconds::from_str(text).map_err(|error| error.to_string())?;
        return Ok(length.0 as f64);
    }
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.trim().parse::<f64>().ok().map(|number| number / scale);
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("{text:?} is not a valid share: write 0.001 or 0.1%, from 0 to 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(Measure, f64)>) {
        let read = text.parse::<Threshold>().ok();
        assert_eq!(read.map(|Threshold { measure, above }| (measure, above)), expected, "{text}");
    }

    #[test]
    fn times_have_units_and_shares_may_be_percentages() {
        check("mean=5ms", Some((Measure::Mean, 5e6)));
        check("p99=-20us", Some((Measure::P99, -2e4)));
        check("loss=0.25", Some((Measure::Loss, 0.25)));
        check("gaps=25%", Some((Measure::Gaps, 0.25)));
        for text in ["mean", "mean=5", "mean=5%", "loss=5ms", "loss=101%", "loss=nan", "late=1ms"] {
            check(text, None);
        }
    }
}
