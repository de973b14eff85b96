//! What there is to tell after a minute: every segment and class, and what was found of what was injected.

use twixt_detect::{DetectorConfig, Incident, IncidentKind};
use twixt_history::{DelayPart, Row, RowQuestion, Step, totals};
use twixt_model::{Delay, Segment, Span, Timestamp};
use twixt_sim::LinkStep;

use crate::points::{MEANS_FROM, PERCENTILES_FROM, point_bytes};
use crate::scenario::{CLASSES, Injected, Scenario, segments};
use crate::watching::Watched;
use crate::{EPOCH_NS, LEAD_SECONDS, SUMMARY_SECONDS};

/// What there is to tell.
#[derive(Clone, Debug, PartialEq)]
pub struct DemoSummary {
    /// What passed the network meanwhile.
    pub traffic: TrafficCount,
    /// What a point keeps of a class in an epoch.
    pub point_bytes: u64,
    /// Every segment and class.
    pub segments: Vec<SegmentSummary>,
    /// What was injected and found, in order of time.
    pub incidents: Vec<IncidentOutcome>,
    /// How alarms were raised.
    pub detector: DetectorConfig,
}

/// What entered the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCount {
    /// Flows.
    pub flows: u64,
    /// Packets.
    pub packets: u64,
}

/// A segment's class, over the whole time.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentSummary {
    /// The two points.
    pub segment: Segment,
    /// Name of the class.
    pub class: &'static str,
    /// Mean delay.
    pub mean_ns: Option<i64>,
    /// What 99 % of the packets did not exceed.
    pub p99_ns: Option<i64>,
    /// Share of the packets that was lost.
    pub loss: Option<f64>,
    /// What changed, if anything did; `None` if there is nothing to judge by.
    pub verdict: Option<SegmentVerdict>,
    /// Mean delay in every epoch.
    pub means_ns: Vec<Option<i64>>,
}

/// What is to be said of a segment's class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentVerdict {
    /// It is as it was before.
    Ok,
    /// It changed.
    Incident(IncidentKind),
}

impl SegmentVerdict {
    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Incident(kind) => kind.name(),
        }
    }
}

/// An incident that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundIncident {
    /// What.
    pub kind: IncidentKind,
    /// Where.
    pub segment: Segment,
    /// For which class; for all when `None`.
    pub class: Option<String>,
    /// When the first epoch that differs began, since the start.
    pub start_s: f64,
    /// When the last one ended; `None` if it lasts.
    pub end_s: Option<f64>,
    /// How sure it is, after all tests that were made.
    pub confidence: f64,
}

/// An incident that was injected, found, or both.
#[derive(Clone, Debug, PartialEq)]
pub struct IncidentOutcome {
    /// What.
    pub kind: IncidentKind,
    /// What was injected; `None` for a false alarm.
    pub injected: Option<Injected>,
    /// What was found; `None` if it was missed.
    pub found: Option<FoundIncident>,
}

impl IncidentOutcome {
    /// Whether it was found where it is, for the class that it concerns, and the first epoch that differs is
    /// the one in which it began, or a neighbour of it.
    #[must_use]
    pub fn is_right(&self) -> bool {
        let (Some(injected), Some(found)) = (&self.injected, &self.found) else { return false };
        let epoch_s = EPOCH_NS as f64 / 1e9;
        injected.segment == found.segment
            && injected.class == found.class.as_deref()
            && (injected.start_s - found.start_s).abs() <= epoch_s
    }
}

impl FoundIncident {
    /// Times count from `start`.
    pub(crate) fn of(incident: &Incident, start: Timestamp) -> Self {
        let start_epoch = start.as_nanos().div_euclid(EPOCH_NS);
        let seconds = |epoch: i64| (epoch - start_epoch) as f64 * EPOCH_NS as f64 / 1e9;
        Self {
            kind: incident.kind,
            segment: incident.segment.clone(),
            class: incident.class.clone(),
            start_s: seconds(incident.since.0),
            end_s: incident.until.map(|until| seconds(until.0 + 1)),
            confidence: incident.confidence,
        }
    }
}

/// The stored estimates that a summary rests on.
pub(crate) fn question(start: Timestamp) -> RowQuestion {
    let end = start + Delay::from_nanos(SUMMARY_SECONDS * EPOCH_NS - 1);
    RowQuestion { span: Span { start, end }, histograms: true, ..RowQuestion::all(Step::Epoch) }
}

/// Puts together what is stored and what was found.
pub(crate) fn summarise(
    rows: &[Row],
    watched: &Watched,
    scenario: &Scenario,
    traffic: TrafficCount,
    start: Timestamp,
) -> DemoSummary {
    let all = watched.incidents();
    let found = all.iter().map(|incident| FoundIncident::of(incident, start));
    let is_within = |start_s: f64| (0.0..SUMMARY_SECONDS as f64).contains(&start_s);
    let found: Vec<FoundIncident> = found.filter(|incident| is_within(incident.start_s)).collect();
    let whole = totals(rows);
    let of_segments = segments().flat_map(|segment| {
        CLASSES.map(|class| segment_summary(&segment, class.name, rows, &whole, &found, start))
    });
    let of_segments: Vec<SegmentSummary> = of_segments.collect();
    let injected = scenario.injected.iter().filter(|of| is_within(of.start_s));
    DemoSummary {
        traffic,
        point_bytes: point_bytes(),
        segments: of_segments,
        incidents: outcomes(injected.cloned().collect(), found),
        detector: *watched.config(),
    }
}

fn segment_summary(
    segment: &Segment,
    class: &'static str,
    rows: &[Row],
    whole: &[Row],
    found: &[FoundIncident],
    start: Timestamp,
) -> SegmentSummary {
    let is_own = |row: &&Row, algorithm: &str| {
        row.series.is_of(segment) && row.series.class == class && row.series.algorithm == algorithm
    };
    let means = whole.iter().find(|row| is_own(row, MEANS_FROM));
    let sample = whole.iter().find(|row| is_own(row, PERCENTILES_FROM));
    let mut means_ns = vec![None; SUMMARY_SECONDS as usize];
    for row in rows.iter().filter(|row| is_own(row, MEANS_FROM)) {
        let index = (row.start_ns - start.as_nanos()) / EPOCH_NS;
        let mean_ns = row.delay.as_ref().map(DelayPart::mean_ns);
        if let Some(place) = usize::try_from(index).ok().and_then(|index| means_ns.get_mut(index)) {
            *place = mean_ns;
        }
    }
    let concerns = |incident: &&FoundIncident| {
        incident.segment == *segment && incident.class.as_deref().is_none_or(|of| of == class)
    };
    let verdict = match found.iter().find(concerns) {
        Some(incident) => SegmentVerdict::Incident(incident.kind),
        None => SegmentVerdict::Ok,
    };
    let [_, _, p99, _] =
        sample.and_then(|row| row.delay.as_ref()).map(|delay| delay.quantiles).unwrap_or_default();
    SegmentSummary {
        segment: segment.clone(),
        class,
        mean_ns: means.and_then(|row| row.delay.as_ref()).map(DelayPart::mean_ns),
        p99_ns: p99.value_ns,
        loss: means.and_then(|row| Some(row.lost? as f64 / row.packets? as f64)),
        verdict: means.map(|_| verdict),
        means_ns,
    }
}

/// Brings together what was injected and what was found: of one kind, nearest in time, wherever it was
/// found.
fn outcomes(injected: Vec<Injected>, mut found: Vec<FoundIncident>) -> Vec<IncidentOutcome> {
    let mut outcomes = Vec::new();
    for injected in injected {
        let apart_s = |of: &FoundIncident| (of.start_s - injected.start_s).abs();
        let nearest = (0..found.len())
            .filter(|&index| found[index].kind == injected.kind)
            .min_by(|&one, &other| apart_s(&found[one]).total_cmp(&apart_s(&found[other])));
        let found = nearest.map(|index| found.remove(index));
        outcomes.push(IncidentOutcome { kind: injected.kind, injected: Some(injected), found });
    }
    outcomes.extend(found.into_iter().map(|found| IncidentOutcome {
        kind: found.kind,
        injected: None,
        found: Some(found),
    }));
    let start_s = |outcome: &IncidentOutcome| {
        let injected = outcome.injected.as_ref().map(|injected| injected.start_s);
        injected.or(outcome.found.as_ref().map(|found| found.start_s)).unwrap_or_default()
    };
    outcomes.sort_by(|one, other| start_s(one).total_cmp(&start_s(other)));
    outcomes
}

impl TrafficCount {
    /// Counts what of a step entered the network in the time of the summary.
    pub(crate) fn add(&mut self, steps: &[LinkStep]) {
        let first_ns = LEAD_SECONDS * EPOCH_NS;
        let summarised_ns = first_ns..first_ns + SUMMARY_SECONDS * EPOCH_NS;
        let entered = steps.iter().flat_map(|step| &step.entered);
        for crossing in entered.filter(|of| summarised_ns.contains(&of.entered_ns)) {
            if crossing.hop == 0 {
                self.packets += 1;
                self.flows += u64::from(crossing.packet.sequence() == 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(index: usize) -> Segment {
        segments().nth(index).unwrap()
    }

    fn injected(kind: IncidentKind, at: usize, start_s: f64) -> Injected {
        let end_s = start_s + 12.0;
        Injected { kind, segment: segment(at), class: Some("web"), start_s, end_s }
    }

    fn found(kind: IncidentKind, at: usize, start_s: f64) -> FoundIncident {
        let class = Some("web".to_owned());
        FoundIncident { kind, segment: segment(at), class, start_s, end_s: None, confidence: 1.0 }
    }

    /// What was injected and found: start of each, and whether it is right.
    #[track_caller]
    fn check(
        injected: Vec<Injected>,
        found: Vec<FoundIncident>,
        expected: &[(Option<f64>, Option<f64>, bool)],
    ) {
        let shown = |outcome: &IncidentOutcome| {
            let injected = outcome.injected.as_ref().map(|injected| injected.start_s);
            let found = outcome.found.as_ref().map(|found| found.start_s);
            (injected, found, outcome.is_right())
        };
        let outcomes = outcomes(injected, found);
        assert_eq!(outcomes.iter().map(shown).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_was_found_is_compared_with_what_was_injected() {
        use IncidentKind::{Loss, Queue};
        let both = || vec![injected(Queue, 0, 22.4), injected(Loss, 3, 40.0)];
        let right = vec![found(Loss, 3, 40.0), found(Queue, 0, 23.0)];
        check(both(), right, &[(Some(22.4), Some(23.0), true), (Some(40.0), Some(40.0), true)]);
        // Another segment, or too late.
        let wrong = vec![found(Queue, 1, 22.0), found(Loss, 3, 42.0)];
        check(both(), wrong, &[(Some(22.4), Some(22.0), false), (Some(40.0), Some(42.0), false)]);
        // Missed, and a false alarm.
        let alarm = vec![found(Queue, 5, 50.0), found(Queue, 0, 22.0)];
        let expected =
            [(Some(22.4), Some(22.0), true), (Some(40.0), None, false), (None, Some(50.0), false)];
        check(both(), alarm, &expected);
        check(Vec::new(), Vec::new(), &[]);
    }
}
