//! The first read of one capture: a few packets of every flow, a thin sample of all.

use std::collections::{BTreeMap, HashMap};

use twixt_model::{Delay, FlowHash, PacketDigest, Prehashed, Span, Timestamp};

/// One packet at one point, as the survey needs it.
#[derive(Clone, Copy, Debug)]
pub struct Sighting {
    /// When.
    pub time: Timestamp,
    /// Stands for the packet.
    pub digest: PacketDigest,
    /// Stands for its directed flow.
    pub flow: FlowHash,
    /// Time to live, or hop limit: lower further down the way.
    pub ttl: u8,
    /// Whether the frame came in or went out at this point, where the capture tells.
    pub passage: Option<Passage>,
    /// Length of the IP packet in bytes.
    pub length: u32,
    /// It is a fragment other than the first.
    pub is_fragment: bool,
}

/// Whether a frame came in or went out at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// Received by the point's host.
    In,
    /// Sent by the point's host.
    Out,
}

/// The ends of a flow, asked for once per flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowEnds {
    /// Hash of the opposite flow.
    pub reverse: FlowHash,
    /// Hash of the source address.
    pub source: u64,
    /// Hash of the destination address.
    pub destination: u64,
    /// Routers do not forward it: to many at once, or on one link.
    pub stays_local: bool,
}

/// What the first read of a capture found.
#[derive(Debug, Default)]
pub struct PointSurvey {
    frames: Option<Span>,
    disorder: Disorder,
    places: HashMap<FlowHash, FlowPlace, Prehashed>,
    flows: Vec<FlowSurvey>,
    sample: Vec<Kept>,
    sample_level: u32,
    flows_refused: u64,
}

/// How far the frames of a capture are from being in order of time.
#[derive(Clone, Debug, Default)]
pub struct Disorder {
    /// Frames by how far they are behind the latest before them, in powers of two of nanoseconds:
    /// how many, and from when to when.
    behind: BTreeMap<u32, (u64, Span)>,
    /// How far a frame is behind the latest before it, at most.
    pub back_max: Delay,
}

impl Disorder {
    fn note(&mut self, time: Timestamp, back: Delay) {
        self.back_max = self.back_max.max(back);
        let (frames, span) = self.behind.entry(power(back)).or_insert((0, Span::at(time)));
        (*frames, *span) = (*frames + 1, span.including(time));
    }

    /// Frames that come too late if late ones are waited for so long, at most, and from when to when.
    #[must_use]
    pub fn beyond(&self, patience: Delay) -> Option<(u64, Span)> {
        if self.back_max <= patience {
            return None;
        }
        let late = self.behind.range(power(patience)..).map(|(_, late)| *late);
        late.reduce(|one, other| (one.0 + other.0, one.1.union(other.1)))
    }
}

const fn power(delay: Delay) -> u32 {
    u64::BITS - delay.as_nanos().unsigned_abs().leading_zeros()
}

/// A packet that was kept for comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub time: Timestamp,
    pub digest: PacketDigest,
    pub flow: FlowHash,
    pub ttl: u8,
    pub passage: Option<Passage>,
    pub length: u32,
    pub is_fragment: bool,
}

/// Where a flow is in the list, and what most of its packets need not look there for.
#[derive(Clone, Copy, Debug)]
struct FlowPlace {
    place: u32,
    /// The first half of the highest rank that is kept; packets of higher ones are not.
    ceiling: u32,
}

/// What is known of one flow at one point.
#[derive(Debug)]
pub(super) struct FlowSurvey {
    flow: FlowHash,
    pub ends: FlowEnds,
    /// The packets of lowest rank; both points keep the same ones of what both see.
    lowest: [Kept; KEPT_PER_FLOW],
    /// How many these are.
    count: usize,
}

/// Maximum number of flows that are distinguished (about 150 bytes each); later ones follow their
/// addresses.
const FLOWS_MAX: usize = 1 << 18;
/// Packets kept of each flow.
const KEPT_PER_FLOW: usize = 4;
/// Packets kept of all flows together; the sample is halved when it grows beyond this.
const SAMPLE_MAX: usize = 1 << 16;
/// Keeps the rank of a packet independent of all other uses of its digest.
const SALT: u64 = 0x7375_7276_6579_0001;

impl PointSurvey {
    /// Nothing read yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that the point was capturing at `time`, whatever the frame was.
    #[inline]
    pub fn saw_frame(&mut self, time: Timestamp) {
        match &mut self.frames {
            Some(frames) if time >= frames.end => frames.end = time,
            Some(frames) => {
                self.disorder.note(time, frames.end - time);
                *frames = frames.including(time);
            }
            None => self.frames = Some(Span::at(time)),
        }
    }

    /// Notes a packet; `ends` is asked the first time its flow is seen.
    pub fn observe(&mut self, sighting: &Sighting, ends: impl FnOnce() -> FlowEnds) {
        self.observe_with(sighting.digest, sighting.flow, || *sighting, ends);
    }

    /// Notes a packet, of which more is asked only if it is kept. Returns the place of its flow among
    /// [`flows_in_order`](Self::flows_in_order); `None` beyond their number.
    #[inline]
    pub fn observe_with(
        &mut self,
        digest: PacketDigest,
        flow: FlowHash,
        sighting: impl Fn() -> Sighting,
        ends: impl FnOnce() -> FlowEnds,
    ) -> Option<u32> {
        let rank = rank(digest);
        if rank.leading_zeros() >= self.sample_level {
            self.keep_in_sample(Kept::of(&sighting()));
        }
        match self.places.get_mut(&flow) {
            Some(found) => {
                if (rank >> 32) as u32 <= found.ceiling {
                    found.ceiling = self.flows[found.place as usize].offer(Kept::of(&sighting()));
                }
                Some(found.place)
            }
            None => self.begin(Kept::of(&sighting()), ends),
        }
    }

    #[cold]
    #[inline(never)]
    fn begin(&mut self, first: Kept, ends: impl FnOnce() -> FlowEnds) -> Option<u32> {
        if self.flows.len() >= FLOWS_MAX {
            self.flows_refused += 1;
            return None;
        }
        let place = self.flows.len() as u32; // at most FLOWS_MAX
        self.places.insert(first.flow, FlowPlace { place, ceiling: u32::MAX });
        let lowest = [first; KEPT_PER_FLOW];
        self.flows.push(FlowSurvey { flow: first.flow, ends: ends(), lowest, count: 1 });
        Some(place)
    }

    /// All flows, in the order of their first packets.
    pub fn flows_in_order(&self) -> impl ExactSizeIterator<Item = (FlowHash, FlowEnds)> {
        self.flows.iter().map(|survey| (survey.flow, survey.ends))
    }

    pub(super) fn flow(&self, flow: FlowHash) -> Option<&FlowSurvey> {
        self.places.get(&flow).map(|found| &self.flows[found.place as usize])
    }

    /// First and last time of any frame.
    #[must_use]
    pub const fn frames(&self) -> Option<Span> {
        self.frames
    }

    /// How far frames are from being in order of time.
    #[must_use]
    pub const fn disorder(&self) -> &Disorder {
        &self.disorder
    }

    /// Packets of flows beyond that number.
    #[must_use]
    pub const fn flows_refused(&self) -> u64 {
        self.flows_refused
    }

    /// Flows of at least as many packets as are kept of each, all of them within this time.
    pub(super) fn flows_of_several(&self, within: Span) -> impl Iterator<Item = FlowHash> {
        let is_within = move |kept: &Kept| within.contains(kept.time);
        let several = self
            .flows
            .iter()
            .filter(move |flow| flow.count == KEPT_PER_FLOW && flow.lowest.iter().all(is_within));
        several.map(|survey| survey.flow)
    }

    /// Every packet that was kept; some twice.
    pub(super) fn kept(&self) -> impl Iterator<Item = &Kept> {
        self.flows.iter().flat_map(FlowSurvey::kept).chain(&self.sample)
    }

    /// How thin the sample of all packets is.
    pub(super) const fn sample_level(&self) -> u32 {
        self.sample_level
    }

    /// That sample, as thin as at a level.
    pub(super) fn sample(&self, level: u32) -> impl Iterator<Item = &Kept> {
        self.sample.iter().filter(move |kept| kept.rank().leading_zeros() >= level)
    }

    fn keep_in_sample(&mut self, kept: Kept) {
        self.sample.push(kept);
        while self.sample.len() > SAMPLE_MAX {
            self.sample_level += 1;
            let level = self.sample_level;
            self.sample.retain(|kept| kept.rank().leading_zeros() >= level);
            // Identical packets have identical ranks: halving cannot thin them out.
            if level > 60 {
                self.sample.truncate(SAMPLE_MAX);
            }
        }
    }
}

/// Which packets are kept: those of the lowest.
fn rank(digest: PacketDigest) -> u64 {
    digest.derive(SALT)
}

impl Kept {
    const fn of(sighting: &Sighting) -> Self {
        let Sighting { time, digest, flow, ttl, passage, length, is_fragment } = *sighting;
        Self { time, digest, flow, ttl, passage, length, is_fragment }
    }

    fn rank(&self) -> u64 {
        rank(self.digest)
    }
}

impl FlowSurvey {
    fn kept(&self) -> &[Kept] {
        &self.lowest[..self.count]
    }

    /// Keeps a packet if its rank is low. Returns the ceiling of what is kept now.
    fn offer(&mut self, kept: Kept) -> u32 {
        if self.count < KEPT_PER_FLOW {
            self.lowest[self.count] = kept;
            self.count += 1;
        } else {
            let highest = self.lowest.iter_mut().max_by_key(|other| other.rank());
            let highest = highest.expect("it is full");
            if kept.rank() < highest.rank() {
                *highest = kept;
            }
        }
        match self.count == KEPT_PER_FLOW {
            true => self.lowest.iter().map(Kept::rank).fold(0, u64::max).wrapping_shr(32) as u32,
            false => u32::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use twixt_model::mix;

    use super::*;

    fn see(survey: &mut PointSurvey, packet: u64, flow: u64) {
        let sighting = Sighting {
            time: Timestamp::from_nanos(packet as i64),
            digest: PacketDigest(mix(packet)),
            flow: FlowHash(mix(flow)),
            ttl: 64,
            passage: None,
            length: 100,
            is_fragment: false,
        };
        let ends = FlowEnds { reverse: FlowHash(0), source: 0, destination: 0, stays_local: false };
        survey.observe(&sighting, || ends);
    }

    #[test]
    fn the_sample_stays_bounded_and_both_points_choose_alike() {
        let (mut one, mut other) = (PointSurvey::new(), PointSurvey::new());
        for packet in 0..300_000 {
            see(&mut one, packet, packet % 10);
            if packet % 10 != 3 {
                see(&mut other, packet, packet % 10);
            }
        }
        assert!(one.sample.len() <= SAMPLE_MAX);
        let chosen: std::collections::HashSet<_> =
            one.sample.iter().map(|kept| kept.digest).collect();
        let common = other.sample.iter().filter(|kept| chosen.contains(&kept.digest)).count();
        assert!(common * 2 > other.sample.len(), "{common} of {}", other.sample.len());
    }

    #[test]
    fn flows_beyond_the_bound_are_counted() {
        let mut survey = PointSurvey::new();
        for flow in 0..FLOWS_MAX as u64 + 5 {
            see(&mut survey, flow, flow);
        }
        assert_eq!(survey.flows.len(), FLOWS_MAX);
        assert_eq!(survey.flows_refused(), 5);
    }

    #[test]
    fn a_million_identical_packets_do_not_overflow_the_sample() {
        let mut survey = PointSurvey::new();
        for _ in 0..SAMPLE_MAX + 10 {
            see(&mut survey, 7, 7);
        }
        assert!(survey.sample.len() <= SAMPLE_MAX);
    }
}
