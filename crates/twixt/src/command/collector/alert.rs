//! `[[alert]]` of the collector's configuration file.

use std::time::Duration;

use serde::Deserialize;
use twixt_collector::alerts::{AlertConfig, Measure, SegmentPattern, SlowRoundTrips, Thresholds};

use super::file::duration;
use crate::args::threshold;
use crate::exit::usage;

const WINDOW_DEFAULT: Duration = Duration::from_secs(60);
const MINIMUM_PACKETS_DEFAULT: u64 = 100;

/// An alert as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct AlertWritten {
    name: String,
    segment: Option<String>,
    point: Option<String>,
    kind: Option<String>,
    longer_than: Option<String>,
    class: Option<String>,
    algorithm: Option<String>,
    measure: String,
    above: Value,
    clear_below: Option<Value>,
    window: Option<String>,
    minimum_packets: Option<u64>,
    webhook: Option<String>,
}

/// `"5ms"`, `"0.1%"`, or a share as a number.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Value {
    Text(String),
    Number(f64),
}

impl AlertWritten {
    pub(super) fn config(&self) -> anyhow::Result<AlertConfig> {
        let problem = |problem: String| usage(format!("alert {:?}: {problem}", self.name));
        let measure: Measure =
            self.measure.parse().map_err(|error| problem(format!("measure: {error}")))?;
        let value = |name: &str, value: &Value| {
            value.read(measure).map_err(|error| problem(format!("{name}: {error}")))
        };
        let segment = match (&self.segment, &self.point) {
            (Some(_), Some(_)) => {
                return Err(problem("it is on a segment or on a point, not on both".to_owned()));
            }
            (Some(text), None) => {
                text.parse().map_err(|error| problem(format!("segment {text:?}: {error}")))?
            }
            (None, Some(text)) => SegmentPattern::of_points(text)
                .map_err(|error| problem(format!("point {text:?}: {error}")))?,
            (None, None) => SegmentPattern::all(),
        };
        let round_trips = self.round_trips().map_err(&problem)?;
        let clear_below = self.clear_below.as_ref().map(|below| value("clear_below", below));
        let window = self.window.as_deref();
        let window = window.map(|text| duration(&format!("alert {:?}: window", self.name), text));
        Ok(AlertConfig {
            name: self.name.clone(),
            segment,
            round_trips,
            class: self.class.clone(),
            algorithm: self.algorithm.clone(),
            measure,
            thresholds: Thresholds {
                above: value("above", &self.above)?,
                clear_below: clear_below.transpose()?,
            },
            window: window.transpose()?.unwrap_or(WINDOW_DEFAULT),
            minimum_packets: self.minimum_packets.unwrap_or(match round_trips {
                // The interval says whether they are enough.
                Some(_) => 1,
                None => MINIMUM_PACKETS_DEFAULT,
            }),
            webhook: self.webhook.clone(),
        })
    }
}

impl AlertWritten {
    /// What of points is meant; `None` of segments.
    fn round_trips(&self) -> Result<Option<SlowRoundTrips>, String> {
        match (&self.point, &self.kind, &self.longer_than) {
            (None, None, None) => Ok(None),
            (Some(_), Some(kind), Some(longer_than)) => Ok(Some(SlowRoundTrips {
                kind: kind.parse().map_err(|error| format!("kind: {error}"))?,
                longer_than: duration("longer_than", longer_than)
                    .map_err(|error| error.to_string())?,
            })),
            _ => Err("point, kind and longer_than belong together".to_owned()),
        }
    }
}

impl Value {
    fn read(&self, measure: Measure) -> Result<f64, String> {
        match self {
            Self::Text(text) => threshold(measure, text),
            Self::Number(number) => threshold(measure, &number.to_string()),
        }
    }
}
