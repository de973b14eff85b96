//! What can be compared with a threshold.

use std::fmt;
use std::str::FromStr;

/// What can be compared with a threshold: times in nanoseconds, and shares from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Measure {
    /// Mean delay.
    Mean,
    /// Standard deviation of the delay of single packets.
    Deviation,
    /// Median delay.
    P50,
    /// 95th percentile of delay.
    P95,
    /// 99th percentile of delay.
    P99,
    /// 99.9th percentile of delay.
    P999,
    /// Mean difference of the delays of packets that follow each other.
    Jitter,
    /// Share of packets that the network lost.
    Loss,
    /// Share of epochs of which nothing is known.
    Gaps,
    /// Share of round trips at a point that took longer than a limit.
    Share,
}

/// There is no such measure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a measure; use mean, deviation, p50, p95, p99, p999, jitter, loss, gaps or share"
)]
pub struct ParseMeasureError {
    text: String,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Mean,
        Self::Deviation,
        Self::P50,
        Self::P95,
        Self::P99,
        Self::P999,
        Self::Jitter,
        Self::Loss,
        Self::Gaps,
        Self::Share,
    ];

    /// The name in configurations and machine formats.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Deviation => "deviation",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p999",
            Self::Jitter => "jitter",
            Self::Loss => "loss",
            Self::Gaps => "gaps",
            Self::Share => "share",
        }
    }

    /// Whether it is a time; else it is a share.
    #[must_use]
    pub const fn is_time(self) -> bool {
        !matches!(self, Self::Loss | Self::Gaps | Self::Share)
    }

    /// The share of packets that a percentile is of.
    #[must_use]
    pub const fn percentile_share(self) -> Option<f64> {
        match self {
            Self::P50 => Some(0.5),
            Self::P95 => Some(0.95),
            Self::P99 => Some(0.99),
            Self::P999 => Some(0.999),
            _ => None,
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Measure {
    type Err = ParseMeasureError;

    fn from_str(text: &str) -> Result<Self, ParseMeasureError> {
        let found = Self::ALL.into_iter().find(|measure| measure.name() == text);
        found.ok_or_else(|| ParseMeasureError { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for measure in Measure::ALL {
            assert_eq!(measure.to_string().parse(), Ok(measure));
        }
        assert!("latency".parse::<Measure>().is_err());
    }
}
