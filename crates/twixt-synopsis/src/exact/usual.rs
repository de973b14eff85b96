//! What delays usually are, and what became of packets by that.

use std::collections::HashMap;

use twixt_model::{COPIED_WITHIN, Delay, FlowHash, Observation, Prehashed, Timestamp};

use super::alignment::{Alignment, Band, Indexes, Matched};
use super::matching::{Fate, groups};
use super::range::{Slower, median_of, range_of};

/// Copies are so close to each other that this is no more than this part of their delay: which of them it
/// is hardly matters then.
const COPIED_PART: i64 = 10;
/// Identical packets so many times farther apart than delays differ fit these by accident once in as
/// many times.
const ACCIDENT: i64 = 1_000;
/// Delays are compared with usual ones, those of a sample, with no less than this beyond their range.
const MARGIN_MIN: Delay = Delay::from_nanos(1_000_000);
/// Fewer identical packets are no heartbeats.
const HEARTBEATS_MIN: usize = 8;
/// Where one in so many packets that were sent once arrives as copies, others do too.
const COPIES_EVERY: usize = 100;

/// What delays usually are.
pub(super) struct Usual {
    /// Delays that are possible at all.
    window: Band,
    /// Delays of flows that have identical packets, if enough of their packets occur once.
    ranges: HashMap<FlowHash, Band, Prehashed>,
    /// Delays of all packets that occur once, if there are enough.
    of_all: Option<Band>,
    /// Whether packets arrive as copies.
    has_copies: bool,
    /// When the first and the last of all packets were sent.
    sent_between: Option<(Timestamp, Timestamp)>,
}

/// What equal packets show, before it is known which delays are possible.
#[derive(Default)]
struct Seen {
    /// Flow and delay of packets that occur once at each point.
    once: Vec<(FlowHash, Delay)>,
    /// Flows that have identical packets.
    repeating: HashMap<FlowHash, Repeating, Prehashed>,
    /// How many packets were sent once and arrived as copies.
    copied: usize,
}

/// Packets of a flow that has identical ones.
#[derive(Default)]
struct Repeating {
    identical: usize,
    /// Delays of those that occur once.
    delays: Vec<Delay>,
}

impl Seen {
    fn of(upstream: &[Observation], downstream: &[Observation]) -> Self {
        let mut seen = Self::default();
        for (sent, received) in groups(upstream, downstream) {
            seen.once.extend(once_at_each((sent, received)));
            seen.copied += usize::from(received.len() > 1 && are_copies(sent, received));
            if sent.len().max(received.len()) > 1 {
                seen.repeating.entry(sent[0].flow).or_default().identical += sent.len();
            }
        }
        seen
    }

    fn has_copies(&self) -> bool {
        self.copied * COPIES_EVERY > self.once.len()
    }

    /// Between what delays of flows with identical packets lie.
    fn ranges(mut self, window: Band) -> HashMap<FlowHash, Band, Prehashed> {
        for (flow, delay) in self.once.into_iter().filter(|&(_, delay)| window.contains(delay)) {
            self.repeating.entry(flow).and_modify(|flow| flow.delays.push(delay));
        }
        let slower = Slower::of(self.repeating.values().map(|flow| flow.delays.as_slice()));
        let range = |(hash, flow): (FlowHash, Repeating)| {
            Some((hash, slower.range(flow.delays, flow.identical, window)?))
        };
        self.repeating.into_iter().filter_map(range).collect()
    }
}

impl Usual {
    pub(super) fn of(upstream: &[Observation], downstream: &[Observation], window: Delay) -> Self {
        let seen = Seen::of(upstream, downstream);
        let mut delays: Vec<Delay> = seen.once.iter().map(|&(_, delay)| delay).collect();
        if delays.is_empty() {
            delays = groups(upstream, downstream).flat_map(in_order).collect();
        }
        let median = median_of(&mut delays).unwrap_or(Delay::ZERO);
        let window = Band { low: median - window, median, high: median + window };
        let all = seen.once.iter().map(|&(_, delay)| delay);
        let of_all = range_of(all.filter(|&delay| window.contains(delay)).collect(), window);
        let times = || upstream.iter().map(|packet| packet.time);
        Self {
            window,
            of_all,
            has_copies: seen.has_copies(),
            ranges: seen.ranges(window),
            sent_between: times().min().zip(times().max()),
        }
    }

    /// The delay in the middle.
    pub(super) const fn median(&self) -> Delay {
        self.window.median
    }

    /// Delays that identical packets may have. Those of other flows count only if it is no accident that
    /// every packet received fits them: they are nearly alike, and identical packets far apart.
    fn range(&self, sent: &[Observation], received: &[Observation]) -> Option<Band> {
        let own = self.ranges.get(&sent[0].flow).copied();
        own.or_else(|| {
            let all = self.of_all?;
            let intervals = i64::try_from(sent.len()).ok()? - 1;
            let apart_ns = (sent[sent.len() - 1].time - sent[0].time).as_nanos() / intervals.max(1);
            let is_narrow = (all.high - all.low).as_nanos().checked_mul(ACCIDENT)? <= apart_ns;
            let fits = || Alignment::new(sent, received, all).matches.len() == received.len();
            (is_narrow && fits()).then_some(all)
        })
    }

    /// Of a packet that occurs once at each point.
    pub(super) fn fate(&self, sent: &Observation, received: &Observation) -> Fate {
        let delay = received.time - sent.time;
        match self.window.contains(delay) {
            true => Fate::Measured(Matched::certain(delay)),
            false => Fate::Lost,
        }
    }

    /// Of a packet that one point saw several times: the copy whose delay is nearest to the usual one is
    /// the packet, and which of them is it makes little difference.
    pub(super) fn fates_of_copies(
        &self,
        sent: &[Observation],
        received: &[Observation],
    ) -> Vec<Fate> {
        let (last_sent, last_received) = (sent[sent.len() - 1], received[received.len() - 1]);
        let (low, high) = (received[0].time - last_sent.time, last_received.time - sent[0].time);
        let pairs = sent.iter().enumerate().flat_map(|(index, packet)| {
            received.iter().map(move |arrived| (index, arrived.time - packet.time))
        });
        let distance =
            |&(_, delay): &(usize, Delay)| (delay - self.window.median).as_nanos().unsigned_abs();
        let nearest = pairs.min_by_key(distance);
        let mut fates = vec![Fate::Lost; sent.len()];
        if let Some((index, delay)) = nearest.filter(|&(_, delay)| self.window.contains(delay)) {
            fates[index] = Fate::Measured(Matched { delay, least: low, most: high, low, high });
        }
        fates
    }

    /// Of identical packets.
    pub(super) fn fates(&self, sent: &[Observation], received: &[Observation]) -> Vec<Fate> {
        let mut fates = vec![Fate::Lost; sent.len()];
        let range = self.range(sent, received);
        if let Some(matches) = range.and_then(|range| self.matches(sent, received, range)) {
            for ((index, _), matched) in matches {
                fates[index] = Fate::Measured(matched);
            }
            return fates;
        }
        let is_shifted = range.or(self.of_all).is_some_and(|range| {
            self.are_throughout(sent) && !received.is_empty() && !fits(sent, received, range)
        });
        for ((index, _), matched) in Alignment::new(sent, received, self.window).matches {
            fates[index] = match (matched.is_certain(), range) {
                // At the ends, packets count by the usual delays: of those that took another time, as many may be
                // missing here as are too many there.
                _ if is_shifted => Fate::Arrived,
                (true, Some(_)) => Fate::Measured(matched),
                // Nothing tells by how much packets may have overtaken each other: as if none did.
                (true, None) => Fate::Measured(Matched::certain(matched.delay)),
                (false, _) => Fate::Arrived,
            };
        }
        fates
    }

    /// Whether identical packets were sent from the first of all packets to the last, as heartbeats are: others of them
    /// may have been sent before, and after.
    fn are_throughout(&self, sent: &[Observation]) -> bool {
        let apart = sent.windows(2).map(|pair| pair[1].time - pair[0].time).max();
        let (Some((first, last)), Some(apart)) = (self.sent_between, apart) else { return false };
        let is_near = |early: Timestamp, late: Timestamp| late - early <= apart;
        sent.len() >= HEARTBEATS_MIN
            && is_near(first, sent[0].time)
            && is_near(sent[sent.len() - 1].time, last)
    }

    /// Identical packets by what delays usually are; `None` if most of them do not fit.
    fn matches(
        &self,
        sent: &[Observation],
        received: &[Observation],
        range: Band,
    ) -> Option<Vec<(Indexes, Matched)>> {
        let matches = Alignment::new(sent, received, range).matches;
        let all = sent.len().min(received.len());
        if matches.len() == all {
            return Some(matches);
        }
        if 2 * matches.len() <= all {
            return None;
        }
        // Some that were sent and some that arrived are left over: slower than any that occurs once,
        // so that others may be, too. Or some were lost, and others came from elsewhere.
        let received = match self.has_copies {
            true => without_copies(received, &matches),
            false => received.to_vec(),
        };
        let reached = range.reaching(sent, &received, self.window);
        let (known, other) = (range.widened(self.window), range.median);
        let matches = Alignment::new(sent, &received, reached).matches.into_iter();
        let doubted = |matched: Matched| match known.contains(matched.delay) {
            true => matched,
            false => matched.or(other),
        };
        Some(matches.map(|(indexes, matched)| (indexes, doubted(matched))).collect())
    }
}

/// Whether most identical packets, in order, took so long that whoever cut the ends of the captures by the usual
/// delays did not take them for others.
fn fits(sent: &[Observation], received: &[Observation], range: Band) -> bool {
    let margin = (range.high - range.low).max(MARGIN_MIN);
    let range = Band { low: range.low - margin, high: range.high + margin, ..range };
    let delays = sent.iter().zip(received).map(|(sent, received)| received.time - sent.time);
    2 * delays.filter(|&delay| range.contains(delay)).count() > sent.len().min(received.len())
}

/// All but those left over that came with another.
fn without_copies(received: &[Observation], matches: &[(Indexes, Matched)]) -> Vec<Observation> {
    let mut is_taken = vec![false; received.len()];
    matches.iter().for_each(|((_, index), _)| is_taken[*index] = true);
    let is_copy = |index: usize| {
        let near = |other: usize| {
            let apart = (received[other].time - received[index].time).as_nanos().abs();
            is_taken[other] && apart <= COPIED_WITHIN.as_nanos()
        };
        index.checked_sub(1).is_some_and(near) || (index + 1 < received.len() && near(index + 1))
    };
    let kept = (0..received.len()).filter(|&index| is_taken[index] || !is_copy(index));
    kept.map(|index| received[index]).collect()
}

/// The flow and the delay of a packet that occurs once at each point, or several times at one of them
/// as copies.
fn once_at_each((sent, received): (&[Observation], &[Observation])) -> Option<(FlowHash, Delay)> {
    match (sent, received) {
        ([sent], [received]) => Some((sent.flow, received.time - sent.time)),
        _ if are_copies(sent, received) => Some((sent[0].flow, received[0].time - sent[0].time)),
        _ => None,
    }
}

/// Whether one point saw a packet once, and the other so often within so short a time that the
/// capture, and not the sender, made copies.
pub(super) fn are_copies(sent: &[Observation], received: &[Observation]) -> bool {
    let copies = match (sent, received) {
        ([_], [_, _, ..]) => received,
        ([_, _, ..], [_]) => sent,
        _ => return false,
    };
    let spread_ns = (copies[copies.len() - 1].time - copies[0].time).as_nanos();
    let delay_ns = (received[0].time - sent[0].time).as_nanos().saturating_abs();
    spread_ns <= COPIED_WITHIN.as_nanos().min(delay_ns / COPIED_PART)
}

/// Delays of identical packets of which none seems to be missing.
fn in_order((sent, received): (&[Observation], &[Observation])) -> Vec<Delay> {
    let pairs = sent.iter().zip(received).filter(|_| sent.len() == received.len());
    pairs.map(|(sent, received)| received.time - sent.time).collect()
}
