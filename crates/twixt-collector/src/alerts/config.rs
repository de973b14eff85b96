//! Configuration of alerts.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use twixt_engine::Series;
use twixt_model::{RoundTripKind, Segment};

use super::machine::Thresholds;
use super::measure::Measure;
use crate::access::{PatternError, PointPattern};

/// Alerts of a collector at most.
pub const ALERTS_MAX: usize = 256;

/// An alert: what is checked, and where it is reported.
#[derive(Clone, Debug, PartialEq)]
pub struct AlertConfig {
    /// What it is called in messages.
    pub name: String,
    /// On which segments; of a point, both ends are that point.
    pub segment: SegmentPattern,
    /// On round trips of points, in place of segments.
    pub round_trips: Option<SlowRoundTrips>,
    /// On which class of traffic; every class if `None`.
    pub class: Option<String>,
    /// By which algorithm; by each that knows if `None`.
    pub algorithm: Option<String>,
    /// What is compared.
    pub measure: Measure,
    /// With what: nanoseconds or shares.
    pub thresholds: Thresholds,
    /// The length of time that a value covers.
    pub window: Duration,
    /// Packets without which a value is not known.
    pub minimum_packets: u64,
    /// Where it is reported beside the log: a URL to post to.
    pub webhook: Option<String>,
}

/// Round trips at a point that take too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowRoundTrips {
    /// Of which kind.
    pub kind: RoundTripKind,
    /// What takes longer.
    pub longer_than: Duration,
}

/// Which segments are meant: `r-*:r-out`, or `*` for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentPattern {
    upstream: PointPattern,
    downstream: PointPattern,
}

impl AlertConfig {
    /// Whether a series is meant.
    pub(super) fn is_on(&self, series: &Series) -> bool {
        let is_point = series.segment.upstream == series.segment.downstream;
        is_point == self.round_trips.is_some()
            && self.segment.matches(&series.segment)
            && self.class.as_ref().is_none_or(|class| *class == series.class)
            && self.algorithm.as_ref().is_none_or(|algorithm| algorithm == series.algorithm)
    }

    /// What values and thresholds are: `ns` or `share`.
    pub(crate) const fn unit(&self) -> &'static str {
        if self.measure.is_time() { "ns" } else { "share" }
    }

    /// What takes longer is slow.
    pub(crate) fn longer_than_ns(&self) -> Option<i64> {
        let slow = self.round_trips?;
        Some(i64::try_from(slow.longer_than.as_nanos()).unwrap_or(i64::MAX))
    }

    /// The length of a window.
    pub(crate) fn window_ns(&self) -> i64 {
        i64::try_from(self.window.as_nanos()).unwrap_or(i64::MAX)
    }

    /// What makes no sense, if something does.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let Thresholds { above, clear_below } = self.thresholds;
        let is_finite = above.is_finite() && clear_below.is_none_or(f64::is_finite);
        let is_address = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        match () {
            () if self.name.is_empty() => Some("it has no name"),
            () if !is_finite => Some("thresholds must be finite"),
            () if clear_below.is_some_and(|clear_below| clear_below > above) => {
                Some("clear_below must not be larger than above")
            }
            () if (self.measure == Measure::Share) != self.round_trips.is_some() => {
                Some("measure = \"share\" needs point, kind and longer_than, and these need it")
            }
            () if self.window.is_zero() => Some("window must not be 0"),
            () if i64::try_from(self.window.as_nanos()).is_err() => Some("window is too long"),
            () if !self.webhook.as_ref().is_none_or(is_address) => {
                Some("webhook must begin with http:// or https://")
            }
            () => None,
        }
    }
}

impl SegmentPattern {
    /// Every segment.
    #[must_use]
    pub const fn all() -> Self {
        Self { upstream: PointPattern::all(), downstream: PointPattern::all() }
    }

    /// Points by their names, such as `edge-*`.
    ///
    /// # Errors
    /// When it is no pattern.
    pub fn of_points(text: &str) -> Result<Self, PatternError> {
        Ok(Self { upstream: text.parse()?, downstream: text.parse()? })
    }

    /// Whether a segment is meant.
    #[must_use]
    pub fn matches(&self, segment: &Segment) -> bool {
        self.upstream.matches(&segment.upstream.0) && self.downstream.matches(&segment.downstream.0)
    }
}

impl FromStr for SegmentPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text == "*" {
            return Ok(Self::all());
        }
        // Without a colon, the downstream end is missing, and the pattern of it is empty: refused.
        let (upstream, downstream) = text.split_once(':').unwrap_or((text, ""));
        Ok(Self { upstream: upstream.parse()?, downstream: downstream.parse()? })
    }
}

impl fmt::Display for SegmentPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.upstream, self.downstream)
    }
}
