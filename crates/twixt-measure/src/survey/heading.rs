//! Which way a flow goes.

use std::collections::{HashMap, HashSet};

use twixt_model::{FlowHash, Prehashed};

use super::point::{FlowEnds, PointSurvey};

/// Which way a packet goes along a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Heading {
    /// From the upstream point to the downstream point: what a segment measures.
    Downstream,
    /// The other way.
    Upstream,
}

impl Heading {
    /// The other way.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Downstream => Self::Upstream,
            Self::Upstream => Self::Downstream,
        }
    }
}

/// How the heading of a flow was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// The user specified which packets go downstream.
    Specified,
    /// The captures say which frames came in and which went out.
    Metadata,
    /// Matched packets have a lower time to live further down the way.
    Ttl,
    /// By the sign of matched delays, relative to the clocks' difference where that is known.
    DelaySign,
    /// The clocks differ by so much that signs mean nothing: the captures were named in order.
    CaptureOrder,
    /// The opposite flow was decided.
    ReverseFlow,
    /// Other flows of these addresses were decided.
    Addresses,
    /// All flows that were decided go one way.
    OneWay,
}

impl Method {
    /// The name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Specified => "toward",
            Self::Metadata => "metadata",
            Self::Ttl => "ttl",
            Self::DelaySign => "delay-sign",
            Self::CaptureOrder => "capture-order",
            Self::ReverseFlow => "reverse-flow",
            Self::Addresses => "addresses",
            Self::OneWay => "one-way",
        }
    }
}

/// Where all decided flows go one way, so do the others that were seen where these come from: seen
/// there alone, a flow was lost whole. Not those that were seen at the other end alone: they may
/// have come another way.
pub(super) fn follow_one_way(verdicts: &mut [Verdicts; 2], surveys: [&PointSurvey; 2]) {
    let Some(only) = only_heading(verdicts) else { return };
    let [upstream, downstream] = verdicts;
    let [sent, received] = match only {
        Heading::Downstream => [(upstream, surveys[0]), (downstream, surveys[1])],
        Heading::Upstream => [(downstream, surveys[1]), (upstream, surveys[0])],
    };
    sent.0.decide_all(sent.1, only, |_| true);
    received.0.decide_all(received.1, only, |flow| sent.1.flow(flow).is_some());
}

/// The way of all decided flows of both points, if it is one.
fn only_heading(verdicts: &[Verdicts; 2]) -> Option<Heading> {
    let has = |heading| verdicts.iter().any(|verdicts| verdicts.has(heading));
    match (has(Heading::Downstream), has(Heading::Upstream)) {
        (true, false) => Some(Heading::Downstream),
        (false, true) => Some(Heading::Upstream),
        _ => None,
    }
}

/// The headings of one point's flows. Bounded as the survey is.
#[derive(Debug, Default)]
pub struct Verdicts {
    flows: HashMap<FlowHash, (Heading, Method), Prehashed>,
    /// For each address, how many flows say that it lies upstream less those that say downstream.
    sides: HashMap<u64, i32, Prehashed>,
    unknown: HashSet<FlowHash, Prehashed>,
}

impl Verdicts {
    /// Extends what matched packets decided to the flows without a match: an undecided flow
    /// follows its opposite flow, then its addresses.
    pub(super) fn new(
        survey: &PointSurvey,
        decided: &HashMap<FlowHash, (Heading, Method), Prehashed>,
    ) -> Self {
        let mut verdicts = Self::default();
        verdicts.flows.reserve(survey.flows_in_order().len().max(decided.len()));
        for (&flow, &(heading, method)) in decided {
            if let Some(survey) = survey.flow(flow) {
                verdicts.note_sides(&survey.ends, heading);
            }
            verdicts.flows.insert(flow, (heading, method));
        }
        for (flow, ends) in survey.flows_in_order() {
            if decided.contains_key(&flow) {
                continue;
            }
            let opposite = decided.get(&ends.reverse).map(|(heading, _)| heading.opposite());
            let by_reverse = opposite.map(|heading| (heading, Method::ReverseFlow));
            let by_addresses = || Some((verdicts.by_addresses(&ends)?, Method::Addresses));
            match by_reverse.or_else(by_addresses) {
                Some(verdict) => _ = verdicts.flows.insert(flow, verdict),
                None => _ = verdicts.unknown.insert(flow),
            }
        }
        verdicts
    }

    /// Where a packet of this flow goes; `None` if that is not known. `ends` is asked for flows
    /// beyond the number that the survey distinguishes.
    #[inline]
    pub fn heading(&self, flow: FlowHash, ends: impl FnOnce() -> FlowEnds) -> Option<Heading> {
        match self.flows.get(&flow) {
            Some(&(heading, _)) => Some(heading),
            None if self.sides.is_empty() => None,
            None => self.by_addresses(&ends()),
        }
    }

    /// Flows whose heading is not known.
    pub(super) const fn unknown(&self) -> &HashSet<FlowHash, Prehashed> {
        &self.unknown
    }

    /// Whether any flow goes this way.
    pub(super) fn has(&self, heading: Heading) -> bool {
        self.flows.values().any(|found| found.0 == heading)
    }

    /// Whether a flow is known to go this way.
    pub(super) fn goes(&self, flow: FlowHash, heading: Heading) -> bool {
        self.flows.get(&flow).is_some_and(|found| found.0 == heading)
    }

    /// Flows that go downstream, and upstream by others.
    pub(super) fn contradicted_by(&self, others: &Self) -> u64 {
        let flows = self.flows.keys();
        let contradicted = flows.filter(|flow| {
            self.goes(**flow, Heading::Downstream) && others.goes(**flow, Heading::Upstream)
        });
        contradicted.count() as u64
    }

    /// How many flows were decided by which method.
    pub fn methods(&self) -> impl Iterator<Item = Method> {
        self.flows.values().map(|found| found.1)
    }

    /// The same flows seen along the opposite segment.
    #[must_use]
    pub fn opposite(&self) -> Self {
        let opposite = |(&flow, &(heading, method)): (&FlowHash, &(Heading, Method))| {
            (flow, (heading.opposite(), method))
        };
        Self {
            flows: self.flows.iter().map(opposite).collect(),
            sides: self.sides.iter().map(|(&address, side)| (address, -side)).collect(),
            unknown: self.unknown.clone(),
        }
    }

    fn note_sides(&mut self, ends: &FlowEnds, heading: Heading) {
        let vote = if heading == Heading::Downstream { 1 } else { -1 };
        *self.sides.entry(ends.source).or_default() += vote;
        *self.sides.entry(ends.destination).or_default() -= vote;
    }

    /// Decides flows that can go this way, and of which no address says otherwise.
    fn decide_all(
        &mut self,
        survey: &PointSurvey,
        only: Heading,
        is_meant: impl Fn(FlowHash) -> bool,
    ) {
        let sign = if only == Heading::Downstream { 1 } else { -1 };
        let side = |address| self.sides.get(&address).copied().unwrap_or(0).signum() * sign;
        let goes = |flow: &FlowHash| {
            let ends = survey.flow(*flow).map(|flow| flow.ends);
            is_meant(*flow)
                && ends.is_some_and(|ends| {
                    !ends.stays_local && side(ends.source) >= 0 && side(ends.destination) <= 0
                })
        };
        let decided: Vec<FlowHash> = self.unknown.iter().copied().filter(goes).collect();
        for flow in decided {
            self.unknown.remove(&flow);
            self.flows.insert(flow, (only, Method::OneWay));
        }
    }

    /// Both addresses must be known, and lie on different sides: traffic to somewhere else that
    /// merely starts at a known address is not the segment's.
    fn by_addresses(&self, ends: &FlowEnds) -> Option<Heading> {
        let side = |address| self.sides.get(&address).copied().unwrap_or(0).signum();
        match (side(ends.source), side(ends.destination)) {
            (1, -1) => Some(Heading::Downstream),
            (-1, 1) => Some(Heading::Upstream),
            _ => None,
        }
    }
}
