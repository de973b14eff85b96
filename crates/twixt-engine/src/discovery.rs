//! Points that share packets become segments by themselves.
//!
//! An index by digest says who saw a packet before, so that the work grows with the packets looked
//! at and not with the pairs of points. Which point is passed first follows from the times, if
//! the clocks are known to be good enough for that; else it is unknown, and nothing is estimated.

use std::collections::{BTreeMap, HashMap, VecDeque};

use twixt_measure::Sealed;
use twixt_model::{Delay, PacketDigest, Segment, TimeSource, Timestamp};

use crate::event::EngineCounts;
use crate::overlap::median;
use crate::routes::PointKey;
use crate::sample::SampledPacket;

/// Packets looked at of each epoch.
const PACKETS_MAX: usize = 32;
/// Digests remembered; the oldest is forgotten for a new one.
const INDEX_MAX: usize = 1 << 16;
/// Points remembered that saw one digest.
const SIGHTINGS_MAX: usize = 16;
/// Pairs of points that are compared.
const PAIRS_MAX: usize = 16_384;
/// Packets in common before two points are a segment.
const COMMON_MIN: usize = 16;
/// So many of the packets in common must be later at the same point.
const AGREEING_SHARE_MIN: f64 = 0.9;

/// Who saw which packets.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    points: BTreeMap<PointKey, usize>, // as many as the engine follows
    /// By their numbers.
    keys: Vec<PointKey>,
    clocks: Vec<PointClock>,
    index: HashMap<PacketDigest, Vec<PacketSighting>>, // at most INDEX_MAX, SIGHTINGS_MAX each
    /// Digests in the order in which they came.
    order: VecDeque<PacketDigest>,
    pairs: BTreeMap<(usize, usize), PointPair>, // at most PAIRS_MAX
}

/// What is known of a point's clock.
#[derive(Clone, Copy, Debug)]
struct PointClock {
    run: u64,
    source: TimeSource,
    bound: Option<Delay>,
}

#[derive(Clone, Copy, Debug)]
struct PacketSighting {
    point: usize,
    time: Timestamp,
}

/// Two points that share packets.
#[derive(Debug, Default)]
struct PointPair {
    /// By how much the second point saw them later.
    offsets_ns: Vec<i64>, // at most COMMON_MIN
    is_decided: bool,
}

/// What was found out of two points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Discovered {
    /// The points; if the direction is not known, in any order.
    pub(crate) segment: Segment,
    pub(crate) direction: PointOrder,
    /// Downstream saw packets later by this.
    pub(crate) offset: Delay,
    pub(crate) digests: usize,
}

/// Which point is passed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointOrder {
    /// Upstream, by the times.
    Known,
    /// Some packets pass the one first, some the other.
    Both,
    /// The times are not good enough to say so.
    ClocksTooPoor,
}

impl Discovery {
    /// Looks at a few packets of an epoch, and returns what that decides.
    pub(crate) fn note(
        &mut self,
        key: &PointKey,
        sealed: &Sealed,
        packets: &[SampledPacket],
        counts: &mut EngineCounts,
    ) -> Vec<Discovered> {
        let point = self.point(key, sealed);
        let mut touched = Vec::new();
        for packet in packets.iter().take(PACKETS_MAX) {
            touched.extend(self.compare(key, point, packet, counts));
            self.remember(packet, point);
        }
        touched.sort_unstable();
        touched.dedup();
        touched.into_iter().filter_map(|pair| self.decide(pair)).collect()
    }

    fn point(&mut self, key: &PointKey, sealed: &Sealed) -> usize {
        let next = self.points.len();
        let point = *self.points.entry(key.clone()).or_insert(next);
        let clock =
            PointClock { run: sealed.run, source: sealed.time_source, bound: sealed.clock_bound };
        match self.clocks.get_mut(point) {
            Some(known) => *known = clock,
            None => {
                self.clocks.push(clock);
                self.keys.push(key.clone());
            }
        }
        point
    }

    /// Notes who else saw a packet.
    fn compare(
        &mut self,
        key: &PointKey,
        point: usize,
        packet: &SampledPacket,
        counts: &mut EngineCounts,
    ) -> Vec<(usize, usize)> {
        let Some(sightings) = self.index.get(&packet.digest) else { return Vec::new() };
        let mut touched = Vec::new();
        for other in sightings.iter().filter(|other| other.point != point) {
            let pair = (point.min(other.point), point.max(other.point));
            if !self.pairs.contains_key(&pair) {
                if self.pairs.len() >= PAIRS_MAX || !self.are_alike(key, other.point) {
                    counts.pairs_refused += u64::from(self.pairs.len() >= PAIRS_MAX);
                    continue;
                }
                self.pairs.insert(pair, PointPair::default());
            }
            let later_ns = (packet.time - other.time).as_nanos();
            let offset_ns = if point == pair.1 { later_ns } else { later_ns.saturating_neg() };
            if let Some(known) = self.pairs.get_mut(&pair)
                && !known.is_decided
            {
                known.offsets_ns.push(offset_ns);
                touched.push(pair);
            }
        }
        touched
    }

    /// Whether points could be the ends of a segment: same domain, class and length of epoch.
    fn are_alike(&self, key: &PointKey, other: usize) -> bool {
        self.keys.get(other).is_some_and(|other| {
            (&key.domain, &key.class, key.epoch_ns) == (&other.domain, &other.class, other.epoch_ns)
        })
    }

    fn remember(&mut self, packet: &SampledPacket, point: usize) {
        if !self.index.contains_key(&packet.digest) {
            self.order.push_back(packet.digest);
            if self.order.len() > INDEX_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.index.remove(&oldest);
            }
        }
        let sightings = self.index.entry(packet.digest).or_default();
        if sightings.len() < SIGHTINGS_MAX && sightings.iter().all(|seen| seen.point != point) {
            sightings.push(PacketSighting { point, time: packet.time });
        }
    }

    /// Decides about a pair when enough is known, once.
    fn decide(&mut self, pair: (usize, usize)) -> Option<Discovered> {
        let known = self.pairs.get_mut(&pair)?;
        if known.offsets_ns.len() < COMMON_MIN {
            return None;
        }
        let offsets_ns = std::mem::take(&mut known.offsets_ns);
        known.is_decided = true;
        let digests = offsets_ns.len();
        let later = offsets_ns.iter().filter(|&&offset_ns| offset_ns > 0).count();
        let offset = median(offsets_ns)?;
        let agreeing = later.max(digests - later) as f64 / digests as f64;
        let error = self.clock_error(pair);
        let direction = match error {
            _ if agreeing < AGREEING_SHARE_MIN => PointOrder::Both,
            Some(error) if offset.as_nanos().abs() > error.as_nanos() => PointOrder::Known,
            _ => PointOrder::ClocksTooPoor,
        };
        let (first, second) = if offset >= Delay::ZERO { pair } else { (pair.1, pair.0) };
        let segment = Segment {
            upstream: self.keys.get(first)?.point.clone(),
            downstream: self.keys.get(second)?.point.clone(),
        };
        let offset = Delay::from_nanos(offset.as_nanos().saturating_abs());
        Some(Discovered { segment, direction, offset, digests })
    }

    /// By how much the clocks may differ. Points of one agent have one clock, unless adapters
    /// take the times.
    fn clock_error(&self, (one, other): (usize, usize)) -> Option<Delay> {
        let (one, other) = (self.clocks.get(one)?, self.clocks.get(other)?);
        let is_kernel = |clock: &PointClock| clock.source == TimeSource::Kernel;
        if one.run == other.run && is_kernel(one) && is_kernel(other) {
            return Some(Delay::ZERO);
        }
        Some(one.bound? + other.bound?)
    }
}
