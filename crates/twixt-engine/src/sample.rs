//! A few of the packets that a point kept near its epochs' boundaries, chosen by digest, so that
//! all points choose the same ones.
//!
//! Enough to say whether two points see the same packets and how far their clocks are apart, and
//! small enough to be kept for every point. All times here are cut times: the point's time less
//! its shift.

use std::collections::{BTreeMap, VecDeque};

use twixt_measure::{CutKind, Sealed, Stash};
use twixt_model::{Delay, DigestIdentity, Epoch, PacketDigest, Timestamp};

/// Packets kept of each side of a boundary.
pub(crate) const SAMPLE_MAX: usize = 64;
/// Epochs of which a point's packets are kept. More than ever wait in a pairing, so that an epoch
/// that is concluded late can still be judged.
pub(crate) const SAMPLED_EPOCHS_MAX: usize = twixt_measure::WAITING_EPOCHS_MAX + 16;
/// Runs of an agent that are kept apart within an epoch.
const RUNS_MAX: usize = 4;

/// What is known of a point's packets near its boundaries.
#[derive(Debug)]
pub(crate) struct PointSample {
    digest: DigestIdentity,
    epochs: BTreeMap<Epoch, EpochSample>, // at most SAMPLED_EPOCHS_MAX
    /// In the order in which they came.
    came: VecDeque<Epoch>,
}

/// A few packets near the boundaries of an epoch.
#[derive(Debug)]
struct EpochSample {
    runs: Vec<u64>, // at most RUNS_MAX
    tag: u16,
    head: BoundarySide,
    tail: BoundarySide,
    guard: Delay,
    clock_bound: Option<Delay>,
}

/// A few packets of one side of a boundary.
#[derive(Clone, Debug)]
struct BoundarySide {
    /// By digest; none occurs twice.
    packets: Vec<SampledPacket>, // at most SAMPLE_MAX
    /// All packets with digests up to this were taken.
    ceiling: PacketDigest,
    /// Within this of the boundary.
    reach: Delay,
}

/// A packet and its cut time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampledPacket {
    pub(crate) digest: PacketDigest,
    pub(crate) time: Timestamp,
}

/// A few packets near a boundary.
#[derive(Clone, Debug)]
pub(crate) struct Boundary {
    /// By digest; none occurs twice.
    pub(crate) packets: Vec<SampledPacket>,
    /// All packets with digests up to this were taken.
    pub(crate) ceiling: PacketDigest,
    /// Within this before the boundary; negative where the epoch before is not there.
    pub(crate) before: Delay,
    /// Within this after it.
    pub(crate) after: Delay,
}

impl PointSample {
    /// Nothing kept yet, of digests like this epoch's.
    pub(crate) const fn of(sealed: &Sealed) -> Self {
        Self::new(sealed.digest)
    }

    const fn new(digest: DigestIdentity) -> Self {
        Self { digest, epochs: BTreeMap::new(), came: VecDeque::new() }
    }

    /// Takes a few packets of an epoch. Other algorithms kept the same ones, and are left out.
    pub(crate) fn add(&mut self, sealed: &Sealed) {
        if self.digest != sealed.digest {
            *self = Self::new(sealed.digest);
        }
        if let Some(known) = self.epochs.get_mut(&sealed.epoch) {
            known.merge(sealed);
            return;
        }
        self.epochs.insert(sealed.epoch, EpochSample::of(sealed));
        self.came.push_back(sealed.epoch);
        if self.came.len() > SAMPLED_EPOCHS_MAX
            && let Some(oldest) = self.came.pop_front()
        {
            self.epochs.remove(&oldest);
        }
    }

    /// Whether an epoch came.
    pub(crate) fn has(&self, epoch: Epoch) -> bool {
        self.epochs.contains_key(&epoch)
    }

    /// What makes its digests comparable.
    pub(crate) const fn digest(&self) -> DigestIdentity {
        self.digest
    }

    /// The epochs that came last, newest first.
    pub(crate) fn recent_epochs(&self, epochs: usize) -> impl Iterator<Item = Epoch> {
        self.came.iter().rev().take(epochs).copied()
    }

    /// The packets of the epochs that came last, newest first.
    pub(crate) fn recent(&self, epochs: usize) -> impl Iterator<Item = SampledPacket> {
        self.packets_in(self.recent_epochs(epochs))
    }

    /// The packets of those of some epochs that came.
    pub(crate) fn packets_in(
        &self,
        epochs: impl Iterator<Item = Epoch>,
    ) -> impl Iterator<Item = SampledPacket> {
        epochs
            .filter_map(|epoch| self.epochs.get(&epoch))
            .flat_map(|epoch| epoch.head.packets.iter().chain(&epoch.tail.packets).copied())
    }

    /// A few packets of an epoch, chosen by digest.
    pub(crate) fn packets_of(&self, epoch: Epoch) -> Vec<SampledPacket> {
        let sides =
            self.epochs.get(&epoch).into_iter().flat_map(|epoch| [&epoch.head, &epoch.tail]);
        distinct(sides.flat_map(|side| side.packets.iter().copied()).collect())
    }

    /// The smallest guard of late, and the largest bound on the clock's error if all have one.
    pub(crate) fn recent_guard(&self) -> Option<(Delay, Option<Delay>)> {
        let newest = self.came.back().and_then(|epoch| self.epochs.get(epoch))?;
        Some((newest.guard, newest.clock_bound))
    }

    /// What is known of the boundary at which an epoch starts.
    pub(crate) fn boundary(&self, epoch: Epoch) -> Option<Boundary> {
        let before = self.epochs.get(&Epoch(epoch.0.saturating_sub(1))).map(|epoch| &epoch.tail);
        let after = self.epochs.get(&epoch).map(|epoch| &epoch.head);
        let sides = [before, after];
        let ceiling = sides.iter().flatten().map(|side| side.ceiling).min()?;
        let reach =
            |side: Option<&BoundarySide>| side.map_or(Delay::from_nanos(-1), |side| side.reach);
        let packets = sides.iter().flatten().flat_map(|side| side.packets.iter().copied());
        Some(Boundary {
            packets: distinct(packets.filter(|packet| packet.digest <= ceiling).collect()),
            ceiling,
            before: reach(before),
            after: reach(after),
        })
    }
}

/// Whether packets near the boundaries of an epoch tell anything.
pub(crate) fn has_boundary_packets(sealed: &Sealed) -> bool {
    sealed.rule.length_ns().is_some()
        && sealed.cut == CutKind::Timed
        && sealed.synopsis.needs().digest
}

impl EpochSample {
    fn of(sealed: &Sealed) -> Self {
        let span = sealed.rule.span_of(sealed.epoch);
        let side = |stash: &Stash, boundary| BoundarySide::of(stash, sealed, boundary);
        Self {
            runs: vec![sealed.run],
            tag: sealed.synopsis.tag(),
            head: side(&sealed.head, span.start),
            tail: side(&sealed.tail, span.end),
            guard: sealed.guard,
            clock_bound: sealed.clock_bound,
        }
    }

    /// Adds what another run of the agent kept.
    fn merge(&mut self, sealed: &Sealed) {
        let is_known = self.runs.contains(&sealed.run) || self.tag != sealed.synopsis.tag();
        if is_known || self.runs.len() >= RUNS_MAX {
            return;
        }
        let other = Self::of(sealed);
        self.runs.push(sealed.run);
        self.head.merge(&other.head);
        self.tail.merge(&other.tail);
        self.guard = self.guard.min(other.guard);
        self.clock_bound = self.clock_bound.zip(other.clock_bound).map(|(one, two)| one.max(two));
    }
}

impl BoundarySide {
    fn of(stash: &Stash, sealed: &Sealed, boundary: Timestamp) -> Self {
        let packets: Vec<SampledPacket> = stash
            .observations()
            .iter()
            .map(|kept| SampledPacket { digest: kept.digest, time: kept.time - sealed.shift })
            .collect();
        let distance =
            |packet: &SampledPacket| (packet.time - boundary).as_nanos().saturating_abs();
        let farthest_ns = packets.iter().map(distance).max().unwrap_or(0);
        let guard_ns = sealed.guard.as_nanos();
        let reach_ns = if stash.overflow() == 0 { guard_ns } else { guard_ns.min(farthest_ns) };
        let whole = Self { packets, ceiling: HIGHEST, reach: Delay::from_nanos(reach_ns) };
        whole.thinned()
    }

    fn merge(&mut self, other: &Self) {
        self.packets.extend_from_slice(&other.packets);
        self.ceiling = self.ceiling.min(other.ceiling);
        self.reach = self.reach.min(other.reach);
        let ceiling = self.ceiling;
        self.packets.retain(|packet| packet.digest <= ceiling);
        *self = std::mem::replace(self, Self::empty()).thinned();
    }

    const fn empty() -> Self {
        Self { packets: Vec::new(), ceiling: HIGHEST, reach: Delay::ZERO }
    }

    /// Keeps those with the smallest digests.
    fn thinned(mut self) -> Self {
        let mut packets = distinct(self.packets);
        if packets.len() > SAMPLE_MAX {
            packets.truncate(SAMPLE_MAX);
            packets.shrink_to_fit();
            self.ceiling = packets[SAMPLE_MAX - 1].digest;
        }
        Self { packets, ..self }
    }
}

const HIGHEST: PacketDigest = PacketDigest(u64::MAX);

/// By digest, without those that occur more than once: it is not known which is which.
fn distinct(mut packets: Vec<SampledPacket>) -> Vec<SampledPacket> {
    packets.sort_unstable_by_key(|packet| (packet.digest, packet.time));
    let mut once = Vec::with_capacity(packets.len());
    once.extend(
        packets
            .chunk_by(|one, other| one.digest == other.digest)
            .filter(|group| group.len() == 1)
            .map(|group| group[0]),
    );
    once
}
