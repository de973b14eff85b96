//! What delays usually are, and what became of packets by that.

use std::collections::HashMap;
use std::sync::Arc;

use twixt_model::{COPIED_WITHIN, Delay, FlowHash, Observation, Prehashed, Timestamp};

use super::alignment::{Alignment, Band, Indexes, Matched};
use super::matching::{Fate, Sightings};
use super::range::{SeenDelays, Slower};
use super::records::FlowDelay;
use crate::heartbeats::least_apart;
use crate::pile::{Pile, Sorted};
use crate::spill::SpillPlace;

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
struct Seen {
    /// Delays of packets that occur once at each point.
    once: Pile<Delay>,
    /// Flows that have identical packets, and how many.
    repeating: HashMap<FlowHash, usize, Prehashed>,
    /// How many packets were sent once and arrived as copies.
    copied: usize,
    /// When the first and the last of all packets were sent.
    sent_between: Option<(Timestamp, Timestamp)>,
}

impl Seen {
    fn of(sightings: &Sightings, place: Option<&Arc<dyn SpillPlace>>) -> Self {
        let (mut once, mut repeating) = (Pile::new(place), HashMap::default());
        let (mut copied, mut sent_between) = (0, None);
        sightings.each_group(|sent, received| {
            let (Some(first), Some(last)) = (sent.first(), sent.last()) else { return };
            let (from, to) = sent_between.unwrap_or((first.time, first.time));
            sent_between = Some((first.time.min(from), last.time.max(to)));
            if let Some(delay) = once_at_each((sent, received)) {
                once.push(delay);
            }
            copied += usize::from(received.len() > 1 && are_copies(sent, received));
            if sent.len().max(received.len()) > 1 {
                *repeating.entry(first.flow).or_default() += sent.len();
            }
        });
        Self { once, repeating, copied, sent_between }
    }

    fn has_copies(&self) -> bool {
        self.copied * COPIES_EVERY > self.once.len()
    }

    /// Between what delays of flows with identical packets lie.
    fn ranges(
        &self,
        sightings: &Sightings,
        window: Band,
        place: Option<&Arc<dyn SpillPlace>>,
    ) -> HashMap<FlowHash, Band, Prehashed> {
        if self.repeating.is_empty() {
            return HashMap::default();
        }
        let mut delays = Pile::new(place);
        sightings.each_group(|sent, received| {
            let is_asked = |delay: &Delay| {
                window.contains(*delay) && self.repeating.contains_key(&sent[0].flow)
            };
            let delay = once_at_each((sent, received)).filter(is_asked);
            delay
                .into_iter()
                .for_each(|delay| delays.push(FlowDelay { flow: sent[0].flow, delay }));
        });
        let delays = delays.sorted();
        let slower = Slower::of(&relative(&delays, place));
        let (mut parts, mut ranges) = (delays.parts(|record| record.flow), HashMap::default());
        while let Some((flow, part)) = parts.next() {
            let range = slower.range(&part, self.repeating[&flow], window);
            ranges.extend(range.map(|range| (flow, range)));
        }
        ranges
    }
}

/// Delays, each relative to the median of its flow.
fn relative(delays: &Sorted<FlowDelay>, place: Option<&Arc<dyn SpillPlace>>) -> Sorted<Delay> {
    let (mut parts, mut relative) = (delays.parts(|record| record.flow), Pile::new(place));
    while let Some((_, part)) = parts.next() {
        let ascending = || part.iter().map(|record| record.delay);
        let Some(seen) = SeenDelays::of(part.len(), ascending()) else { continue };
        ascending().for_each(|delay| relative.push(delay - seen.median));
    }
    relative.sorted()
}

impl Usual {
    pub(super) fn of(
        sightings: &Sightings,
        window: Delay,
        place: Option<&Arc<dyn SpillPlace>>,
    ) -> Self {
        let mut seen = Seen::of(sightings, place);
        let has_copies = seen.has_copies();
        let once = std::mem::replace(&mut seen.once, Pile::new(None)).sorted();
        let median = match once.len() {
            0 => median_in_order(sightings, place),
            count => once.iter().nth(count / 2),
        };
        let median = median.unwrap_or(Delay::ZERO);
        let window = Band { low: median - window, median, high: median + window };
        Self {
            window,
            of_all: within(&once, window).and_then(|seen| seen.range(window)),
            has_copies,
            ranges: seen.ranges(sightings, window, place),
            sent_between: seen.sent_between,
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
        let usual = range.or(self.of_all).map(Band::with_margin);
        let is_shifted = usual.is_some_and(|usual| {
            self.are_throughout(sent) && !received.is_empty() && !fits(sent, received, usual)
        });
        let arrived =
            Fate::Arrived(usual.map_or(Delay::ZERO, |usual| apart(sent, received, usual)));
        for ((index, _), matched) in Alignment::new(sent, received, self.window).matches {
            fates[index] = match (matched.is_certain(), range) {
                // At the ends, packets count by the usual delays: of those that took another time, as many may be
                // missing here as are too many there.
                _ if is_shifted => arrived,
                (true, Some(_)) => Fate::Measured(matched),
                // Nothing tells by how much packets may have overtaken each other: as if none did.
                (true, None) => Fate::Measured(Matched::certain(matched.delay)),
                (false, _) => arrived,
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

impl Band {
    /// Delays are compared with those of a sample: others may be somewhat beyond.
    fn with_margin(self) -> Self {
        let margin = (self.high - self.low).max(MARGIN_MIN);
        Self { low: self.low - margin, high: self.high + margin, ..self }
    }
}

/// How much longer than usual identical packets took on average, at least.
fn apart(sent: &[Observation], received: &[Observation], usual: Band) -> Delay {
    let times = |packets: &[Observation]| -> Vec<Timestamp> {
        packets.iter().map(|packet| packet.time).collect()
    };
    least_apart(&times(sent), &times(received), (usual.low, usual.high))
}

/// Whether most identical packets, in order, took so long that whoever cut the ends of the captures by the usual
/// delays did not take them for others.
fn fits(sent: &[Observation], received: &[Observation], range: Band) -> bool {
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

/// The delay of a packet that occurs once at each point, or several times at one of them as copies.
fn once_at_each((sent, received): (&[Observation], &[Observation])) -> Option<Delay> {
    match (sent, received) {
        ([sent], [received]) => Some(received.time - sent.time),
        _ if are_copies(sent, received) => Some(received[0].time - sent[0].time),
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

/// What delays within a window are like.
fn within(delays: &Sorted<Delay>, window: Band) -> Option<SeenDelays> {
    let possible = || delays.iter_from(&window.low).take_while(|delay| *delay <= window.high);
    SeenDelays::of(possible().count(), possible())
}

/// The median delay of identical packets of which none seems to be missing, in order.
fn median_in_order(sightings: &Sightings, place: Option<&Arc<dyn SpillPlace>>) -> Option<Delay> {
    let mut delays = Pile::new(place);
    sightings.each_group(|sent, received| {
        let pairs = sent.iter().zip(received).filter(|_| sent.len() == received.len());
        pairs.for_each(|(sent, received)| delays.push(received.time - sent.time));
    });
    let middle = delays.len() / 2;
    delays.nth(middle)
}
