//! Two surveys side by side: headings, clocks, the range of delays.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use twixt_model::{Delay, FlowHash, PacketDigest, Span};

use super::heading::{Heading, Method, Verdicts};
use super::point::{Kept, Keyed, Passage, PointSurvey};

/// What two surveys tell together.
#[derive(Debug)]
pub struct Comparison {
    /// Headings of the flows that the upstream point saw.
    pub upstream: Verdicts,
    /// Headings of the flows that the downstream point saw; the same flows under the same hash,
    /// unless addresses are translated on the way.
    pub downstream: Verdicts,
    /// The method that decided most flows.
    pub decided_by: Method,
    /// Smallest and largest delay (downstream time less upstream time) of matched packets that go
    /// downstream; `None` if none does.
    pub downstream_delays: Option<DelayRange>,
    /// Delays of matched packets that go downstream: evenly spaced quantiles, ascending.
    pub downstream_quantiles: Vec<Delay>,
    /// The same of those that go upstream: negative, unless the clocks differ.
    pub upstream_delays: Option<DelayRange>,
    /// Their quantiles.
    pub upstream_quantiles: Vec<Delay>,
    /// Matched packets.
    pub matched: u64,
    /// Matched packets going downstream whose delay is negative.
    pub negative_delays: u64,
    /// Matched packets going upstream whose delay, seen along that direction, is negative.
    pub opposite_negative_delays: u64,
    /// When frames were captured upstream.
    pub upstream_frames: Span,
    /// When frames were captured downstream.
    pub downstream_frames: Span,
}

/// Smallest, middle and largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayRange {
    /// Smallest.
    pub min: Delay,
    /// Median.
    pub median: Delay,
    /// Largest.
    pub max: Delay,
}

/// How far the downstream clock is ahead of the upstream clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockDifference {
    /// Best guess.
    pub offset: Delay,
    /// How far the guess may be off; not known when only one direction was seen.
    pub error_bound: Option<Delay>,
}

impl ClockDifference {
    /// What one direction tells: nothing, unless no delay could be so short or so long.
    #[must_use]
    pub fn from_delay(delay: Delay) -> Option<Self> {
        let impossible = delay < Delay::ZERO || delay > PLAUSIBLE_DELAY;
        impossible.then_some(Self { offset: delay, error_bound: None })
    }
}

/// Delays beyond this are taken for clocks that differ, not for slow networks.
const PLAUSIBLE_DELAY: Delay = Delay::from_nanos(10_000_000_000);

/// Quantiles that are kept of matched delays.
const QUANTILES_MAX: usize = 4096;

/// Matches what two points kept. `None` if they have no packet in common.
#[must_use]
pub fn compare(upstream: &PointSurvey, downstream: &PointSurvey) -> Option<Comparison> {
    compare_with(upstream, downstream, |matched| decide(upstream, matched))
}

/// As [`compare`], of surveys that hold only packets of which the user said that they go
/// downstream.
#[must_use]
pub fn compare_told(upstream: &PointSurvey, downstream: &PointSurvey) -> Option<Comparison> {
    let told = (Heading::Downstream, Method::Told);
    compare_with(upstream, downstream, |matched| {
        matched.iter().map(|pair| (pair.upstream.flow, told)).collect()
    })
}

fn compare_with(
    upstream: &PointSurvey,
    downstream: &PointSurvey,
    decide: impl FnOnce(&[Matched]) -> Headings,
) -> Option<Comparison> {
    let matched = match_kept(upstream, downstream);
    if matched.is_empty() {
        return None;
    }
    let headings = decide(&matched);
    let delays_of = |heading| -> Vec<Delay> {
        let goes = |pair: &&Matched| {
            headings.get(&pair.upstream.flow).is_some_and(|found| found.0 == heading)
        };
        matched.iter().filter(goes).filter_map(Matched::delay).collect()
    };
    let (downstream_delays, upstream_delays) =
        (delays_of(Heading::Downstream), delays_of(Heading::Upstream));
    let count = |delays: &[Delay], negative: fn(&Delay) -> bool| {
        delays.iter().filter(|delay| negative(delay)).count() as u64
    };
    let negative_delays = count(&downstream_delays, |delay| *delay < Delay::ZERO);
    let opposite_negative_delays = count(&upstream_delays, |delay| *delay > Delay::ZERO);
    let downstream_flows = matched
        .iter()
        .filter_map(|pair| Some((pair.downstream.flow, *headings.get(&pair.upstream.flow)?)))
        .collect();
    let verdicts = Verdicts::new(upstream, &headings);
    Some(Comparison {
        decided_by: most_common(&verdicts),
        upstream: verdicts,
        downstream: Verdicts::new(downstream, &downstream_flows),
        downstream_quantiles: quantiles(&downstream_delays),
        downstream_delays: delay_range(downstream_delays),
        upstream_quantiles: quantiles(&upstream_delays),
        upstream_delays: delay_range(upstream_delays),
        matched: matched.len() as u64,
        negative_delays,
        opposite_negative_delays,
        upstream_frames: upstream.frames()?,
        downstream_frames: downstream.frames()?,
    })
}

impl Comparison {
    /// How the clocks differ. With both directions seen, delays cannot be negative either way, so
    /// the difference lies between the largest (negative) delay of one and the smallest of the
    /// other. With one direction it is only known when no delay could explain what was seen.
    #[must_use]
    pub fn clock(&self) -> Option<ClockDifference> {
        let forward = self.downstream_delays?.min;
        if let Some(range) = self.upstream_delays {
            let (low, high) = (range.max.as_nanos(), forward.as_nanos());
            let half = (i128::from(high) - i128::from(low)) / 2;
            let offset = Delay::from_nanos((i128::from(low) + half) as i64);
            return Some(ClockDifference {
                offset,
                error_bound: Some(Delay::from_nanos(half.unsigned_abs() as i64)),
            });
        }
        ClockDifference::from_delay(forward)
    }

    /// The same two captures, measured the other way.
    #[must_use]
    pub fn opposite(&self) -> Self {
        let turned = |range: Option<DelayRange>| {
            range.map(|range| DelayRange {
                min: -range.max,
                median: -range.median,
                max: -range.min,
            })
        };
        Self {
            upstream: self.downstream.opposite(),
            downstream: self.upstream.opposite(),
            decided_by: self.decided_by,
            downstream_quantiles: self
                .upstream_quantiles
                .iter()
                .rev()
                .map(|delay| -*delay)
                .collect(),
            upstream_quantiles: self
                .downstream_quantiles
                .iter()
                .rev()
                .map(|delay| -*delay)
                .collect(),
            downstream_delays: turned(self.upstream_delays),
            upstream_delays: turned(self.downstream_delays),
            matched: self.matched,
            negative_delays: self.opposite_negative_delays,
            opposite_negative_delays: self.negative_delays,
            upstream_frames: self.downstream_frames,
            downstream_frames: self.upstream_frames,
        }
    }
}

/// One packet at both points.
#[derive(Clone, Copy, Debug)]
struct Matched {
    upstream: Kept,
    downstream: Kept,
    /// Whether neither point saw an identical packet, so that the delay is beyond doubt.
    sure: bool,
}

impl Matched {
    /// Where it is beyond doubt.
    fn delay(&self) -> Option<Delay> {
        self.sure.then(|| self.downstream.time - self.upstream.time)
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

/// Packets that both kept. Of identical packets the first ones are taken for the same: which is
/// which does not matter for their time to live, but makes their delay doubtful.
fn match_kept(upstream: &PointSurvey, downstream: &PointSurvey) -> Vec<Matched> {
    let (upstream, downstream) = (by_digest(upstream), by_digest(downstream));
    let both = upstream.into_iter().filter_map(|(digest, sent)| {
        let received = downstream.get(&digest)?;
        let sure = !sent.repeated && !received.repeated;
        Some(Matched { upstream: sent.kept, downstream: received.kept, sure })
    });
    both.collect()
}

/// A digest's first packet, and whether there were others.
struct First {
    kept: Kept,
    repeated: bool,
}

fn by_digest(survey: &PointSurvey) -> HashMap<PacketDigest, First, Keyed> {
    let mut firsts: HashMap<PacketDigest, First, Keyed> = HashMap::default();
    for &kept in survey.kept() {
        match firsts.entry(kept.digest) {
            Entry::Vacant(entry) => {
                entry.insert(First { kept, repeated: false });
            }
            Entry::Occupied(mut entry) => {
                let first = entry.get_mut();
                first.repeated |= first.kept.time != kept.time;
                if kept.time < first.kept.time {
                    first.kept = kept;
                }
            }
        }
    }
    firsts
}

fn delay_range(mut delays: Vec<Delay>) -> Option<DelayRange> {
    delays.sort_unstable();
    let median = *delays.get(delays.len() / 2)?;
    Some(DelayRange { min: *delays.first()?, median, max: *delays.last()? })
}

/// At most [`QUANTILES_MAX`] evenly spaced elements, in ascending order.
fn quantiles(delays: &[Delay]) -> Vec<Delay> {
    let mut sorted = delays.to_vec();
    sorted.sort_unstable();
    let kept = sorted.len().min(QUANTILES_MAX);
    (0..kept).map(|index| sorted[index * sorted.len() / kept]).collect()
}

type Headings = HashMap<FlowHash, (Heading, Method), Keyed>;

/// Decides every flow that has a matched packet.
fn decide(survey: &PointSurvey, matched: &[Matched]) -> Headings {
    let mut flows: HashMap<FlowHash, Vec<Matched>, Keyed> = HashMap::default();
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

/// Flows whose time to live does not change (no router in between) are decided by their delay:
/// relative to the clocks' difference where decided flows or opposite flows tell it, else by sign.
fn decide_by_delay(
    survey: &PointSurvey,
    flows: &HashMap<FlowHash, Vec<Matched>, Keyed>,
    headings: &mut Headings,
) {
    let range = |pairs: &[Matched]| delay_range(pairs.iter().filter_map(Matched::delay).collect());
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
fn between(flows: &HashMap<FlowHash, Vec<Matched>, Keyed>, headings: &Headings) -> Option<Delay> {
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
    let ranges: HashMap<FlowHash, DelayRange, Keyed> = undecided.iter().copied().collect();
    let bounds = undecided.iter().filter_map(|(flow, range)| {
        let opposite = ranges.get(&survey.flows.get(flow)?.ends.reverse)?;
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
fn follow_groups(flows: &HashMap<FlowHash, Vec<Matched>, Keyed>, headings: &mut Headings) {
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
    let balance: i64 =
        votes.map(|heading| if heading == Heading::Downstream { 1 } else { -1 }).sum();
    match balance.signum() {
        1 => Some(Heading::Downstream),
        -1 => Some(Heading::Upstream),
        _ => None,
    }
}

fn most_common(verdicts: &Verdicts) -> Method {
    let mut counts: HashMap<Method, u64> = HashMap::new();
    for method in verdicts.methods() {
        *counts.entry(method).or_default() += 1;
    }
    // Ties go to the method that comes first, so that the answer does not depend on the map.
    let best = counts.into_iter().max_by_key(|&(method, count)| (count, std::cmp::Reverse(method)));
    best.map_or(Method::CaptureOrder, |(method, _)| method)
}

#[cfg(test)]
mod tests;
