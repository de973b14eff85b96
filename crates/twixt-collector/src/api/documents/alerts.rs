//! Alerts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::alerts::{AlertConfig, AlertMessage, AlertTarget};

/// What is checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AlertRuleDocument {
    /// Name of the alert.
    pub alert: String,
    /// Segments that it is on, such as `r-*:r-out`.
    pub segment: String,
    /// Class of traffic; null: each.
    pub class: Option<String>,
    /// Algorithm; null: each that knows the measure.
    pub algorithm: Option<String>,
    /// What is compared.
    pub measure: String,
    /// `ns` or `share`: what `above` and `clear_below` are.
    pub unit: String,
    /// Values above this raise it.
    pub above: f64,
    /// Values below this clear it; null: any that is not above `above`.
    pub clear_below: Option<f64>,
    /// Length of the window.
    pub window_ns: i64,
    /// Packets, or round trips, without which a value is unknown.
    pub minimum_packets: u64,
    /// Kind of round trips, of an alert on points: both ends of the pattern are the point.
    pub kind: Option<String>,
    /// What takes longer counts in the share.
    pub longer_than_ns: Option<i64>,
}

/// Alerts.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AlertsDocument {
    /// As configured.
    pub rules: Vec<AlertRuleDocument>,
    /// How each stood in its last window, by series; those without a window that is over are missing.
    pub standing: Vec<AlertMessage>,
    /// What changed since the collector's start, newest last; at most 1,000.
    pub changes: Vec<AlertMessage>,
    /// Whether this reader may acknowledge and silence alerts.
    pub may_silence: bool,
}

/// Somebody attends to an alert, or nobody does any more.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AcknowledgeDocument {
    /// Which alert, on which segment and class.
    pub target: AlertTarget,
    /// Whether somebody does.
    pub acknowledged: bool,
}

/// An alert is to send no messages for a while.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SilenceDocument {
    /// Which alert, on which segment and class.
    pub target: AlertTarget,
    /// For how long from now; 0 ends a silence. At most 30 days.
    #[schema(maximum = 2_592_000)]
    pub seconds: u32,
}

impl From<&AlertConfig> for AlertRuleDocument {
    fn from(alert: &AlertConfig) -> Self {
        Self {
            alert: alert.name.clone(),
            segment: alert.segment.to_string(),
            class: alert.class.clone(),
            algorithm: alert.algorithm.clone(),
            measure: alert.measure.name().to_owned(),
            unit: alert.unit().to_owned(),
            above: alert.thresholds.above,
            clear_below: alert.thresholds.clear_below,
            window_ns: alert.window_ns(),
            minimum_packets: alert.minimum_packets,
            kind: alert.round_trips.map(|slow| slow.kind.name().to_owned()),
            longer_than_ns: alert.longer_than_ns(),
        }
    }
}
