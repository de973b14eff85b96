//! Which way flows go, by what their matched packets tell.

use std::collections::HashMap;

use twixt_model::{Delay, FlowHash, Prehashed};

use crate::clock::ClockPoint;

use super::compare::{DelayRange, PLAUSIBLE_DELAY};
use super::heading::{Heading, Method};
use super::point::{Kept, Passage, PointSurvey};

/// One packet at both points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matched {
    pub upstream: Kept,
    pub downstream: Kept,
    /// Whether neither point saw an identical packet, so that the delay is beyond doubt.
    pub sure: bool,
}

impl Matched {
    /// Where it is beyond doubt.
    pub(super) fn delay(&self) -> Option<Delay> {
        self.sure.then(|| self.downstream.time - self.upstream.time)
    }

    /// As a clock sees it, where it is beyond doubt.
    pub(super) fn point(&self) -> Option<ClockPoint> {
        let flow = self.upstream.flow.0;
        Some(ClockPoint { time: self.upstream.time, difference: self.delay()?, flow })
    }

    /// What the captures say of coming and going. Which of the two groups goes downstream is not
    /// known from this alone: a box between two points takes in at the first and sends at the
    /// second, two hosts at the ends of a wire the other way round.
    fn group(&self) -> Option<bool> {
        match (self.upstream.passage, self.downstream.passage) {
            (Some(Passage::Out), Some(Passage::In) | None) | (None, Some(Passage::In)) => {
                Some(true)
            }
            (Some(Passage::In), Some(Passage::Out) | None) | (None, Some(Passage::Out)) => {
                Some(false)
            }
            _ => None,
        }
    }

    fn by_ttl(&self) -> Option<Heading> {
        match self.downstream.ttl.cmp(&self.upstream.ttl) {
            std::cmp::Ordering::Less => Some(Heading::Downstream),
            std::cmp::Ordering::Greater => Some(Heading::Upstream),
            std::cmp::Ordering::Equal => None,
        }
    }
}

/// The headings of flows, and how they were decided.
pub(super) type Headings = HashMap<FlowHash, (Heading, Method), Prehashed>;

/// Decides every flow that has a matched packet.
pub(super) fn decide(survey: &PointSurvey, matched: &[Matched]) -> Headings {
    if let Some(headings) = decide_all_by_ttl(matched) {
        return headings;
    }
    let mut flows: HashMap<FlowHash, Vec<Matched>, Prehashed> = HashMap::default();
    for pair in matched {
        flows.entry(pair.upstream.flow).or_default().push(*pair);
    }
    let mut headings: Headings = HashMap::default();
    for (&flow, pairs) in &flows {
        let vote = majority(pairs.iter().filter_map(Matched::by_ttl));
        headings.extend(vote.map(|heading| (flow, (heading, Method::Ttl))));
    }
    decide_by_delay(survey, &flows, &mut headings);
    follow_groups(&flows, &mut headings);
    headings
}

/// The same where each flow crosses routers, and nothing else is known: then their packets need not be
/// looked at together.
fn decide_all_by_ttl(matched: &[Matched]) -> Option<Headings> {
    let mut votes: HashMap<FlowHash, i64, Prehashed> = HashMap::default();
    for pair in matched {
        if pair.group().is_some() {
            return None;
        }
        *votes.entry(pair.upstream.flow).or_default() += pair.by_ttl().map_or(0, vote);
    }
    let decided = |(flow, balance)| Some((flow, (winner(balance)?, Method::Ttl)));
    votes.into_iter().map(decided).collect()
}

/// Flows whose time to live does not change (no router in between) are decided by their delay:
/// relative to the clocks' difference where decided flows or opposite flows tell it, else by sign.
fn decide_by_delay(
    survey: &PointSurvey,
    flows: &HashMap<FlowHash, Vec<Matched>, Prehashed>,
    headings: &mut Headings,
) {
    let range =
        |pairs: &[Matched]| DelayRange::of(pairs.iter().filter_map(Matched::delay).collect());
    let undecided: Vec<(FlowHash, DelayRange)> = flows
        .iter()
        .filter(|(flow, _)| !headings.contains_key(flow))
        .filter_map(|(&flow, pairs)| Some((flow, range(pairs)?)))
        .collect();
    if undecided.is_empty() {
        return;
    }
    let known = between(flows, headings).or_else(|| between_opposites(survey, &undecided));
    let nearest = undecided.iter().map(|(_, range)| range.median.as_nanos().unsigned_abs()).min();
    let meaningless = known.is_none()
        && nearest.is_some_and(|nearest| nearest > PLAUSIBLE_DELAY.as_nanos().unsigned_abs());
    for (flow, range) in undecided {
        let verdict = match (meaningless, range.median >= known.unwrap_or(Delay::ZERO)) {
            (true, _) => (Heading::Downstream, Method::CaptureOrder),
            (false, true) => (Heading::Downstream, Method::DelaySign),
            (false, false) => (Heading::Upstream, Method::DelaySign),
        };
        headings.insert(flow, verdict);
    }
}

/// Middle between the delays of flows decided to go upstream and downstream, if there are both.
fn between(
    flows: &HashMap<FlowHash, Vec<Matched>, Prehashed>,
    headings: &Headings,
) -> Option<Delay> {
    let of = |heading| {
        let decided = headings.iter().filter(move |(_, found)| found.0 == heading);
        decided.flat_map(|(flow, _)| &flows[flow]).filter_map(Matched::delay)
    };
    let (high, low) = (of(Heading::Downstream).min()?, of(Heading::Upstream).max()?);
    Some(middle(low, high))
}

/// Of a flow and its opposite, the one with the larger delay goes downstream, whatever the clocks:
/// the difference of the two is a sum of two delays. The clocks' difference lies between the
/// smallest delay of the one and the largest of the other.
fn between_opposites(survey: &PointSurvey, undecided: &[(FlowHash, DelayRange)]) -> Option<Delay> {
    let ranges: HashMap<FlowHash, DelayRange, Prehashed> = undecided.iter().copied().collect();
    let bounds = undecided.iter().filter_map(|(flow, range)| {
        let opposite = ranges.get(&survey.flow(*flow)?.ends.reverse)?;
        (opposite.median < range.median).then_some((opposite.max, range.min))
    });
    let (low, high) = bounds.reduce(|one, other| (one.0.max(other.0), one.1.min(other.1)))?;
    Some(middle(low, high))
}

fn middle(low: Delay, high: Delay) -> Delay {
    Delay::from_nanos(i64::midpoint(low.as_nanos(), high.as_nanos()))
}

/// Where the captures tell frames that came in from frames that went out, all flows of one group
/// go the way that most of them were found to go.
fn follow_groups(flows: &HashMap<FlowHash, Vec<Matched>, Prehashed>, headings: &mut Headings) {
    for group in [true, false] {
        let members: Vec<FlowHash> = flows
            .iter()
            .filter(|(_, pairs)| pairs.iter().all(|pair| pair.group() == Some(group)))
            .map(|(&flow, _)| flow)
            .collect();
        let votes = members.iter().filter_map(|flow| headings.get(flow)).map(|found| found.0);
        if let Some(heading) = majority(votes) {
            headings.extend(members.into_iter().map(|flow| (flow, (heading, Method::Metadata))));
        }
    }
}

/// The heading that most say; `None` for a tie.
fn majority(votes: impl Iterator<Item = Heading>) -> Option<Heading> {
    winner(votes.map(vote).sum())
}

const fn vote(heading: Heading) -> i64 {
    match heading {
        Heading::Downstream => 1,
        Heading::Upstream => -1,
    }
}

const fn winner(balance: i64) -> Option<Heading> {
    match balance.signum() {
        1 => Some(Heading::Downstream),
        -1 => Some(Heading::Upstream),
        _ => None,
    }
}
