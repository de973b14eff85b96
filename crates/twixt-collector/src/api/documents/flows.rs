//! Flows.

use serde::{Deserialize, Serialize};
use twixt_history::{DelayPart, Row};
use utoipa::ToSchema;

use super::{CompletenessDocument, EstimateDocument, MomentRange, TimeRange};
use crate::flows::{FlowsAnswer, FlowsAsked};

/// Sort order of flows, largest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FlowOrder {
    /// Mean delay.
    #[default]
    Delay,
    /// Standard deviation of delay.
    Deviation,
    /// Share of packets lost.
    Loss,
}

impl FlowOrder {
    /// The name in questions and answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Deviation => "deviation",
            Self::Loss => "loss",
        }
    }
}

/// Which flows of an answer are shown.
#[derive(Clone, Copy, Debug)]
pub struct FlowSelection {
    /// Largest first.
    pub order: FlowOrder,
    /// Flows with fewer packets upstream are left out; those whose packets are not known too, unless 0.
    pub min_packets: u64,
    /// Flows at most.
    pub limit: usize,
}

/// The flows with the largest delay, deviation or loss.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FlowsDocument {
    /// The requested time.
    pub range: TimeRange,
    /// What is missing. Also not complete if there were too many flows to sum.
    pub completeness: CompletenessDocument,
    /// Sort order: `delay`, `deviation` or `loss`.
    pub order: String,
    /// Number of flows with a known key and enough packets; a flow may count once for each algorithm.
    pub found: u64,
    /// Largest first, unknown last.
    pub flows: Vec<EstimateDocument>,
    /// Why flows are missing, if some are.
    pub reason: Option<String>,
}

/// One flow over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct FlowDocument {
    /// The requested time.
    pub range: TimeRange,
    /// What is missing.
    pub completeness: CompletenessDocument,
    /// The flow.
    pub scope: String,
    /// Each epoch with packets of it, by class and algorithm, in order of time.
    pub estimates: Vec<EstimateDocument>,
    /// What these come to, by class and algorithm.
    pub total: Vec<EstimateDocument>,
    /// Why epochs of it are missing, or it is not known.
    pub reason: Option<String>,
}

impl FlowDocument {
    /// What is known of the flow that was asked for.
    #[must_use]
    pub fn of(asked: &FlowsAsked, answer: FlowsAnswer) -> Self {
        Self {
            range: asked.span.into(),
            scope: asked.scope.clone().unwrap_or_default(),
            estimates: answer.course.iter().map(EstimateDocument::from).collect(),
            total: answer.flows.iter().map(EstimateDocument::from).collect(),
            reason: reason(&answer),
            completeness: completeness(answer),
        }
    }
}

fn reason(answer: &FlowsAnswer) -> Option<String> {
    (!answer.reasons.is_empty()).then(|| answer.reasons.join("; "))
}

fn completeness(answer: FlowsAnswer) -> CompletenessDocument {
    CompletenessDocument {
        complete: answer.is_whole,
        epochs: answer.epochs,
        gaps: answer.gaps,
        stored: answer.stored.map(MomentRange::from),
        problems: answer.problems,
    }
}

impl FlowsDocument {
    /// The first few flows of an answer.
    #[must_use]
    pub fn of(asked: &FlowsAsked, mut answer: FlowsAnswer, selection: FlowSelection) -> Self {
        let FlowSelection { order, min_packets, limit } = selection;
        let mut flows = std::mem::take(&mut answer.flows);
        flows.retain(|row| row.packets.unwrap_or(0) >= min_packets);
        let found = flows.len() as u64;
        flows.sort_by(|one, other| rank(other, order).total_cmp(&rank(one, order)));
        flows.truncate(limit);
        Self {
            range: asked.span.into(),
            order: order.name().to_owned(),
            found,
            flows: flows.iter().map(EstimateDocument::from).collect(),
            reason: reason(&answer),
            completeness: completeness(answer),
        }
    }
}

/// What is not known ranks last.
fn rank(row: &Row, order: FlowOrder) -> f64 {
    let delay = row.delay.as_ref();
    let known = match order {
        FlowOrder::Delay => delay.map(|delay| delay.mean_ns() as f64),
        FlowOrder::Deviation => delay.and_then(DelayPart::deviation_ns),
        FlowOrder::Loss => {
            let packets = row.packets.filter(|packets| *packets > 0);
            row.lost.zip(packets).map(|(lost, packets)| lost as f64 / packets as f64)
        }
    };
    known.unwrap_or(f64::NEG_INFINITY)
}

#[cfg(test)]
mod tests {
    use twixt_model::{PointId, Segment, Span, Timestamp};

    use super::*;

    fn flow(name: &str, mean_ns: Option<i128>, packets: u64, lost: Option<u64>) -> Row {
        let delay =
            mean_ns.map(|mean_ns| DelayPart { count: 1, sum_ns: mean_ns, ..DelayPart::default() });
        let (scope, packets) = (name.to_owned(), Some(packets));
        Row { scope, packets, lost, delay, epochs: 1, ..Row::default() }
    }

    #[track_caller]
    fn check(order: FlowOrder, limit: usize, expected: &[&str]) {
        check_selection(FlowSelection { order, min_packets: 0, limit }, expected, 3);
    }

    #[track_caller]
    fn check_selection(selection: FlowSelection, expected: &[&str], found: u64) {
        let flows = vec![
            flow("unknown", None, 10, None),
            flow("early", Some(-5), 10, Some(1)),
            flow("late", Some(9), 100, Some(5)),
        ];
        let point = |name: &str| PointId(name.to_owned());
        let asked = FlowsAsked {
            segment: Segment { upstream: point("a"), downstream: point("b") },
            class: None,
            algorithm: None,
            span: Span::at(Timestamp::from_nanos(0)),
            scope: None,
        };
        let answer = FlowsAnswer { flows, ..FlowsAnswer::default() };
        let document = FlowsDocument::of(&asked, answer, selection);
        let names: Vec<&str> = document.flows.iter().map(|flow| flow.scope.as_str()).collect();
        assert_eq!((names.as_slice(), document.found), (expected, found));
    }

    #[test]
    fn the_largest_come_first_and_the_unknown_last() {
        check(FlowOrder::Delay, 9, &["late", "early", "unknown"]);
        check(FlowOrder::Delay, 1, &["late"]);
        check(FlowOrder::Loss, 9, &["early", "late", "unknown"]);
        check(FlowOrder::Deviation, 9, &["unknown", "early", "late"]);
    }

    #[test]
    fn small_flows_are_left_out_and_not_counted() {
        let selection =
            |min_packets| FlowSelection { order: FlowOrder::Loss, min_packets, limit: 9 };
        check_selection(selection(10), &["early", "late", "unknown"], 3);
        check_selection(selection(11), &["late"], 1);
    }
}
