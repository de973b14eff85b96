//! `[[alert]]` of the collector's configuration file.

use std::time::Duration;

use serde::Deserialize;
use twixt_collector::alerts::{AlertConfig, Measure, SegmentPattern, Thresholds};

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
        let segment = match &self.segment {
            Some(text) => {
                text.parse().map_err(|error| problem(format!("segment {text:?}: {error}")))?
            }
            None => SegmentPattern::all(),
        };
        let clear_below = self.clear_below.as_ref().map(|below| value("clear_below", below));
        let window = self.window.as_deref();
        let window = window.map(|text| duration(&format!("alert {:?}: window", self.name), text));
        Ok(AlertConfig {
            name: self.name.clone(),
            segment,
            class: self.class.clone(),
            algorithm: self.algorithm.clone(),
            measure,
            thresholds: Thresholds {
                above: value("above", &self.above)?,
                clear_below: clear_below.transpose()?,
            },
            window: window.transpose()?.unwrap_or(WINDOW_DEFAULT),
            minimum_packets: self.minimum_packets.unwrap_or(MINIMUM_PACKETS_DEFAULT),
            webhook: self.webhook.clone(),
        })
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
