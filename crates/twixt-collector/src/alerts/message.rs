//! The message to a webhook. Keys are part of the contract with users: some may be added, none is
//! renamed or removed.

use serde::Serialize;
use twixt_engine::Series;

use super::window::Reading;
use super::{AlertConfig, News};

/// A transition, as JSON.
#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    /// Name of the alert.
    alert: &'a str,
    state: &'static str,
    before: &'static str,
    domain: &'a str,
    upstream: &'a str,
    downstream: &'a str,
    class: &'a str,
    algorithm: &'static str,
    measure: &'static str,
    /// `ns` or `share`: what `value`, `above` and `clear_below` are.
    unit: &'static str,
    value: Option<f64>,
    above: f64,
    clear_below: Option<f64>,
    /// The interval of upstream time that it rests on.
    start_ns: i64,
    end_ns: i64,
    packets: u64,
    epochs: u64,
    gaps: u64,
    /// Why the value is not known.
    reason: Option<&'a str>,
    /// The window was over before: an epoch in it was estimated late.
    late: bool,
}

impl<'a> Message<'a> {
    pub(super) fn new(alert: &'a AlertConfig, series: &'a Series, news: &News<'a>) -> Self {
        let News { reading, transition, is_late } = *news;
        let Reading { span, epochs, gaps, packets, value } = reading;
        Self {
            alert: &alert.name,
            state: transition.to.name(),
            before: transition.from.name(),
            domain: &series.domain,
            upstream: &series.segment.upstream.0,
            downstream: &series.segment.downstream.0,
            class: &series.class,
            algorithm: series.algorithm,
            measure: alert.measure.name(),
            unit: if alert.measure.is_time() { "ns" } else { "share" },
            value: value.as_ref().ok().copied(),
            above: alert.thresholds.above,
            clear_below: alert.thresholds.clear_below,
            start_ns: span.start.as_nanos(),
            end_ns: span.end.as_nanos(),
            packets: *packets,
            epochs: *epochs,
            gaps: *gaps,
            reason: value.as_ref().err().map(String::as_str),
            late: is_late,
        }
    }

    /// As JSON.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("names and numbers can be written as JSON")
    }
}
