//! How an alert stands, as webhooks and the API have it. Keys are part of the contract with users: some
//! may be added, none is renamed or removed.

use serde::{Deserialize, Serialize};
use twixt_engine::Series;
use utoipa::ToSchema;

use super::marks::{Acknowledgement, Silence};
use super::window::Reading;
use super::{AlertConfig, News};

/// A change of an alert, or how it stands.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AlertMessage {
    /// Name of the alert.
    pub alert: String,
    /// `raised`, `clear` or `unknown`.
    pub state: String,
    /// The state before.
    pub before: String,
    /// Domain within which point names are unique.
    pub domain: String,
    /// The point that packets pass first.
    pub upstream: String,
    /// The point that packets pass second.
    pub downstream: String,
    /// Class of traffic; empty without classes.
    pub class: String,
    /// The algorithm of the estimates.
    pub algorithm: String,
    /// What is compared.
    pub measure: String,
    /// `ns` or `share`: what `value`, `above` and `clear_below` are.
    pub unit: String,
    /// What was measured; null if unknown.
    pub value: Option<f64>,
    /// Values above this raise it.
    pub above: f64,
    /// Values below this clear it; null: any that is not above `above`.
    pub clear_below: Option<f64>,
    /// Start of the window, by the upstream clock, nanoseconds since 1970.
    pub start_ns: i64,
    /// Its end.
    pub end_ns: i64,
    /// Packets counted upstream in the window.
    pub packets: u64,
    /// Epochs in the window.
    pub epochs: u64,
    /// Epochs without data.
    pub gaps: u64,
    /// Why the value is unknown.
    pub reason: Option<String>,
    /// The window was over before: an epoch in it was estimated late.
    pub late: bool,
    /// Kind of round trips, of an alert on a point: both points are that one.
    pub kind: Option<String>,
    /// What takes longer counts in the share.
    pub longer_than_ns: Option<i64>,
    /// Who attends to it; null: nobody said so.
    pub acknowledged: Option<Acknowledgement>,
    /// Who silenced it and until when; null if it is not.
    pub silenced: Option<Silence>,
}

impl AlertMessage {
    pub(super) fn new(alert: &AlertConfig, series: &Series, news: &News<'_>) -> Self {
        let News { reading, transition, is_late } = news;
        let Reading { span, epochs, gaps, packets, value } = reading;
        Self {
            alert: alert.name.clone(),
            state: transition.to.name().to_owned(),
            before: transition.from.name().to_owned(),
            domain: series.domain.clone(),
            upstream: series.segment.upstream.0.clone(),
            downstream: series.segment.downstream.0.clone(),
            class: series.class.clone(),
            algorithm: series.algorithm.to_owned(),
            measure: alert.measure.name().to_owned(),
            unit: alert.unit().to_owned(),
            value: value.as_ref().ok().copied(),
            above: alert.thresholds.above,
            clear_below: alert.thresholds.clear_below,
            start_ns: span.start.as_nanos(),
            end_ns: span.end.as_nanos(),
            packets: *packets,
            epochs: *epochs,
            gaps: *gaps,
            reason: value.as_ref().err().cloned(),
            late: *is_late,
            kind: alert.round_trips.map(|slow| slow.kind.name().to_owned()),
            longer_than_ns: alert.longer_than_ns(),
            acknowledged: None,
            silenced: None,
        }
    }

    /// As JSON.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("names and numbers can be written as JSON")
    }
}
