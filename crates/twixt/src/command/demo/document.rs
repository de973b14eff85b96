//! The summary for programs.

use serde::Serialize;
use twixt_demo::{
    DemoSummary, FoundIncident, IncidentOutcome, Injected, SegmentSummary, SegmentVerdict,
};

/// `demo --once -F json`.
#[derive(Serialize)]
pub(super) struct Document {
    pub(super) segments: Vec<SegmentRow>,
    incidents: Vec<IncidentEntry>,
}

#[derive(Serialize)]
pub(super) struct SegmentRow {
    segment: String,
    class: &'static str,
    mean_ns: Option<i64>,
    p99_ns: Option<i64>,
    loss: Option<f64>,
    verdict: Option<&'static str>,
}

#[derive(Serialize)]
struct IncidentEntry {
    kind: &'static str,
    injected: Option<InjectedEntry>,
    found: Option<FoundEntry>,
}

#[derive(Serialize)]
struct InjectedEntry {
    segment: String,
    class: Option<&'static str>,
    start_s: f64,
    end_s: f64,
}

#[derive(Serialize)]
struct FoundEntry {
    segment: String,
    class: Option<String>,
    start_s: f64,
    confidence: f64,
}

impl Document {
    pub(super) fn of(summary: &DemoSummary) -> Self {
        Self {
            segments: summary.segments.iter().map(SegmentRow::of).collect(),
            incidents: summary.incidents.iter().map(IncidentEntry::of).collect(),
        }
    }
}

impl SegmentRow {
    fn of(summary: &SegmentSummary) -> Self {
        Self {
            segment: summary.segment.to_string(),
            class: summary.class,
            mean_ns: summary.mean_ns,
            p99_ns: summary.p99_ns,
            loss: summary.loss,
            verdict: summary.verdict.map(SegmentVerdict::name),
        }
    }
}

impl IncidentEntry {
    fn of(outcome: &IncidentOutcome) -> Self {
        let injected = |injected: &Injected| InjectedEntry {
            segment: injected.segment.to_string(),
            class: injected.class,
            start_s: injected.start_s,
            end_s: injected.end_s,
        };
        let found = |found: &FoundIncident| FoundEntry {
            segment: found.segment.to_string(),
            class: found.class.clone(),
            start_s: found.start_s,
            confidence: found.confidence,
        };
        Self {
            kind: outcome.kind.name(),
            injected: outcome.injected.as_ref().map(injected),
            found: outcome.found.as_ref().map(found),
        }
    }
}
