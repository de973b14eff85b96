//! Two surveys side by side: headings, clocks, the range of delays.

use std::collections::{BTreeSet, HashMap};

use twixt_model::{
    COPIED_WITHIN, Delay, FlowHash, PacketDigest, Span, sort_by_hash, sort_by_number,
};

use crate::clock::{ClockOffset, ClockPoint, ClockReport, diagnose, two_way};

use super::decide::{Headings, Matched, decide};
use super::edges::Edges;
use super::heading::{Heading, Method, Verdicts, follow_one_way};
use super::point::{Kept, PointSurvey};

/// The combined result of two surveys.
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
    /// Roughly the same where all of them look alike, and the user says that they go downstream.
    pub alike_delays: Option<DelayRange>,
    /// Delays of matched packets that go downstream: evenly spaced quantiles, ascending.
    pub downstream_quantiles: Vec<Delay>,
    /// The same of those that go upstream: negative, unless the clocks differ.
    pub upstream_delays: Option<DelayRange>,
    /// Their quantiles.
    pub upstream_quantiles: Vec<Delay>,
    /// Matched packets.
    pub matched: u64,
    /// Digests of several packets each, of those that were kept.
    pub(super) repeated: BTreeSet<PacketDigest>,
    /// Not all packets were compared.
    pub is_sampled: bool,
    /// Matched packets going downstream whose delay is negative.
    pub negative_delays: u64,
    /// Matched packets going upstream whose delay, seen along that direction, is negative.
    pub opposite_negative_delays: u64,
    /// Matched packets that go downstream, as a clock sees them.
    pub downstream_points: Vec<ClockPoint>,
    /// The same of those that go upstream.
    pub upstream_points: Vec<ClockPoint>,
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

impl DelayRange {
    /// Of these delays; `None` if there are none.
    #[must_use]
    pub fn of(mut delays: Vec<Delay>) -> Option<Self> {
        delays.sort_unstable();
        Self::of_sorted(&delays)
    }

    /// Of delays in ascending order.
    fn of_sorted(delays: &[Delay]) -> Option<Self> {
        let median = *delays.get(delays.len() / 2)?;
        Some(Self { min: *delays.first()?, median, max: *delays.last()? })
    }

    /// The same seen from the other end.
    fn turned(self) -> Self {
        Self { min: -self.max, median: -self.median, max: -self.min }
    }
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
pub(super) const PLAUSIBLE_DELAY: Delay = Delay::from_nanos(10_000_000_000);

/// Fewer than one flow in so many may well be lost as a whole.
const UNSEEN_EVERY: u64 = 100;

/// Quantiles that are kept of matched delays.
const QUANTILES_MAX: usize = 4096;

/// Matches what two points kept. `None` if they have no packet in common.
#[must_use]
pub fn compare(upstream: &PointSurvey, downstream: &PointSurvey) -> Option<Comparison> {
    compare_with(upstream, downstream, |matched| decide(upstream, matched))
}

/// As [`compare`], of surveys that hold only packets that, by the user's choice, go
/// downstream. Where downstream saw frames, but none of these, all were lost.
#[must_use]
pub fn compare_specified(upstream: &PointSurvey, downstream: &PointSurvey) -> Option<Comparison> {
    let specified = (Heading::Downstream, Method::Specified);
    let comparison = compare_with(upstream, downstream, |_| {
        upstream.flows_in_order().map(|(flow, _)| (flow, specified)).collect()
    });
    comparison.map(|comparison| Comparison {
        alike_delays: alike_delays(upstream, downstream),
        ..comparison
    })
}

/// Delays of packets that all look alike: of each, about what the first at both points tell.
fn alike_delays(upstream: &PointSurvey, downstream: &PointSurvey) -> Option<DelayRange> {
    let delay = |pair: &Matched| pair.downstream.time - pair.upstream.time;
    let range = DelayRange::of(match_kept(upstream, downstream).iter().map(delay).collect())?;
    // The first that was sent need not be the first that arrived.
    Some(DelayRange { min: range.min.min(Delay::ZERO), max: range.max.max(Delay::ZERO), ..range })
}

fn compare_with(
    upstream: &PointSurvey,
    downstream: &PointSurvey,
    decide: impl FnOnce(&[Matched]) -> Headings,
) -> Option<Comparison> {
    let matched = match_kept(upstream, downstream);
    let headings = decide(&matched);
    if matched.is_empty() && (headings.is_empty() || downstream.flows_in_order().len() > 0) {
        return None;
    }
    let (mut downstream_points, mut upstream_points) = (Vec::new(), Vec::new());
    let mut downstream_flows = Headings::default();
    downstream_flows.reserve(headings.len());
    for pair in &matched {
        let Some(found) = headings.get(&pair.upstream.flow) else { continue };
        downstream_flows.insert(pair.downstream.flow, *found);
        match found.0 {
            Heading::Downstream => downstream_points.extend(pair.point()),
            Heading::Upstream => upstream_points.extend(pair.point()),
        }
    }
    let (downstream_delays, upstream_delays) =
        (sorted_differences(&downstream_points), sorted_differences(&upstream_points));
    let count = |delays: &[Delay], negative: fn(&Delay) -> bool| {
        delays.iter().filter(|delay| negative(delay)).count() as u64
    };
    let negative_delays = count(&downstream_delays, |delay| *delay < Delay::ZERO);
    let opposite_negative_delays = count(&upstream_delays, |delay| *delay > Delay::ZERO);
    let mut verdicts =
        [Verdicts::new(upstream, &headings), Verdicts::new(downstream, &downstream_flows)];
    let is_translated = matched.iter().any(|pair| pair.upstream.flow != pair.downstream.flow);
    let knows_all = upstream.flows_refused() == 0 && downstream.flows_refused() == 0;
    if knows_all && !is_translated {
        follow_one_way(&mut verdicts, [upstream, downstream]);
    }
    let [upstream_verdicts, downstream_verdicts] = verdicts;
    let repeated = matched.iter().filter(|pair| !pair.sure);
    Some(Comparison {
        decided_by: most_common(&upstream_verdicts),
        upstream: upstream_verdicts,
        downstream: downstream_verdicts,
        downstream_quantiles: quantiles_of_sorted(&downstream_delays),
        downstream_delays: DelayRange::of_sorted(&downstream_delays),
        alike_delays: None,
        upstream_quantiles: quantiles_of_sorted(&upstream_delays),
        upstream_delays: DelayRange::of_sorted(&upstream_delays),
        matched: matched.len() as u64,
        repeated: repeated.map(|pair| pair.upstream.digest).collect(),
        is_sampled: upstream.sample_level().max(downstream.sample_level()) > 0,
        negative_delays,
        opposite_negative_delays,
        downstream_points,
        upstream_points,
        upstream_frames: upstream.frames()?,
        downstream_frames: downstream.frames()?,
    })
}

impl Comparison {
    /// Flows of either point whose heading is not known.
    #[must_use]
    pub fn unknown_flows(&self) -> u64 {
        self.upstream.unknown().union(self.downstream.unknown()).count() as u64
    }

    /// Whether all packets were seen at both points at the same moment: no two points do that.
    #[must_use]
    pub fn is_of_one_capture(&self) -> bool {
        const TELLING_MIN: usize = 8;
        let points = || self.downstream_points.iter().chain(&self.upstream_points);
        points().count() >= TELLING_MIN
            && points().all(|point| point.difference == Delay::ZERO)
            && self.upstream_frames == self.downstream_frames
    }

    /// Flows of several packets that go downstream and were not seen there, if they are not few, and how
    /// many of several packets go downstream. Of translated flows nothing can be said.
    #[must_use]
    pub fn unseen_flows(&self, sent: &PointSurvey, received: &PointSurvey) -> (u64, u64) {
        let Some(edges) = Edges::new(self) else { return (0, 0) };
        let several = sent.flows_of_several(edges.certain());
        let going: Vec<FlowHash> =
            several.filter(|flow| self.upstream.goes(*flow, Heading::Downstream)).collect();
        let is_seen = |flow: &FlowHash| received.flow(*flow).is_some();
        let unseen = going.iter().filter(|flow| !is_seen(flow)).count() as u64;
        let (knows_all, all) = (received.flows_refused() == 0, going.len() as u64);
        let is_translated = unseen == all;
        let is_chance = unseen.saturating_mul(UNSEEN_EVERY) < all;
        (if knows_all && !is_translated && !is_chance { unseen } else { 0 }, all)
    }

    /// Whether packets were sent downstream and none of them arrived.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        self.downstream_delays.is_none()
            && self.upstream.has(Heading::Downstream)
            && !self.downstream.has(Heading::Downstream)
    }

    /// Whether packets go downstream, and each looks like another.
    #[must_use]
    pub fn is_all_alike(&self) -> bool {
        self.downstream_delays.is_none()
            && self.upstream.has(Heading::Downstream)
            && self.downstream.has(Heading::Downstream)
    }

    /// Delays that packets going downstream have, or would have had where none arrived: those of
    /// the other direction, or, where clocks differ by more, what they differ by. `None` if none
    /// was sent.
    #[must_use]
    pub fn expected_delays(&self) -> Option<DelayRange> {
        let zero = DelayRange { min: Delay::ZERO, median: Delay::ZERO, max: Delay::ZERO };
        let unseen = || match self.upstream_delays {
            None => zero,
            Some(back) if ClockDifference::from_delay(-back.max).is_none() => back.turned(),
            Some(back) => DelayRange { min: back.max, median: back.max, max: back.max },
        };
        let alike = || self.alike_delays.filter(|_| self.is_all_alike());
        self.downstream_delays.or_else(|| self.is_outage().then(unseen)).or_else(alike)
    }

    /// How the clocks differ. With both directions seen, delays cannot be negative either way, so
    /// the difference lies between the largest (negative) delay of one and the smallest of the
    /// other. With one direction it is only known when no delay could explain what was seen.
    #[must_use]
    pub fn clock(&self) -> Option<ClockDifference> {
        let forward = self.downstream_delays?.min;
        if let Some(range) = self.upstream_delays {
            // Beyond that, the difference was not the same all the time.
            let is_possible = range.max <= forward;
            let ClockOffset { offset, error_bound } = two_way(forward, range.max);
            return is_possible
                .then_some(ClockDifference { offset, error_bound: Some(error_bound) });
        }
        ClockDifference::from_delay(forward)
    }

    /// What single packets tell of the clocks, if any goes downstream.
    #[must_use]
    pub fn clocks(&self) -> Option<ClockReport> {
        diagnose(&self.downstream_points, &self.upstream_points)
    }

    /// Takes over what packets that are not measured tell of the clocks, where those that are go one
    /// way only.
    pub fn learn_clocks(&mut self, all: &Self) {
        if self.upstream_points.is_empty() {
            self.upstream_points.clone_from(&all.upstream_points);
        }
    }

    /// Flows that go downstream here, and upstream by a comparison of all packets.
    #[must_use]
    pub fn contradicted_by(&self, all: &Self) -> u64 {
        self.upstream.contradicted_by(&all.upstream)
    }

    /// The same two captures, measured the other way.
    #[must_use]
    pub fn opposite(&self) -> Self {
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
            downstream_delays: self.upstream_delays.map(DelayRange::turned),
            upstream_delays: self.downstream_delays.map(DelayRange::turned),
            alike_delays: None,
            matched: self.matched,
            repeated: self.repeated.clone(),
            is_sampled: self.is_sampled,
            negative_delays: self.opposite_negative_delays,
            opposite_negative_delays: self.negative_delays,
            downstream_points: self.upstream_points.iter().map(|point| point.turned()).collect(),
            upstream_points: self.downstream_points.iter().map(|point| point.turned()).collect(),
            upstream_frames: self.downstream_frames,
            downstream_frames: self.upstream_frames,
        }
    }
}

/// Packets that both kept. Of identical packets the first ones are taken for the same: which is
/// which does not matter for their time to live, but makes their delay doubtful.
fn match_kept(upstream: &PointSurvey, downstream: &PointSurvey) -> Vec<Matched> {
    let (upstream, downstream) = (firsts(upstream), firsts(downstream));
    let mut received = downstream.iter().peekable();
    let both = upstream.iter().filter_map(|sent| {
        let digest = sent.kept.digest;
        while received.next_if(|other| other.kept.digest < digest).is_some() {}
        let received = received.peek().filter(|other| other.kept.digest == digest)?;
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

/// What was kept of each digest, in the order of digests.
fn firsts(survey: &PointSurvey) -> Vec<First> {
    let mut kept: Vec<&Kept> = survey.kept().collect();
    sort_by_hash(&mut kept, |kept| kept.digest.0);
    let mut firsts: Vec<First> = Vec::with_capacity(kept.len());
    for &kept in kept {
        match firsts.last_mut().filter(|first| first.kept.digest == kept.digest) {
            None => firsts.push(First { kept, repeated: false }),
            Some(first) => {
                let apart_ns = (first.kept.time - kept.time).as_nanos().saturating_abs();
                first.repeated |= apart_ns > COPIED_WITHIN.as_nanos();
                if kept.time < first.kept.time {
                    first.kept = kept;
                }
            }
        }
    }
    firsts
}

/// By how much the clocks differ, ascending.
fn sorted_differences(points: &[ClockPoint]) -> Vec<Delay> {
    let mut differences: Vec<Delay> = points.iter().map(|point| point.difference).collect();
    // Negative ones come first.
    sort_by_number(&mut differences, |delay| delay.as_nanos().cast_unsigned() ^ (1 << 63));
    differences
}

/// At most [`QUANTILES_MAX`] evenly spaced elements, in ascending order.
pub(super) fn quantiles(delays: &[Delay]) -> Vec<Delay> {
    let mut sorted = delays.to_vec();
    sorted.sort_unstable();
    quantiles_of_sorted(&sorted)
}

fn quantiles_of_sorted(sorted: &[Delay]) -> Vec<Delay> {
    let kept = sorted.len().min(QUANTILES_MAX);
    (0..kept).map(|index| sorted[index * sorted.len() / kept]).collect()
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
