//! What the first read of a capture keeps of its packets, so that the second need not read it.
//!
//! Parsing and hashing cost most of a read. What they find is kept, batch by batch, as long as a
//! capture has few enough packets; a larger one is read twice.

use twixt_capture::BatchEnd;
use twixt_measure::Cutting;
use twixt_measure::survey::{Heading, PointSurvey};
use twixt_model::{FlowHash, FlowKey, Observation, PacketDigest, SourceCounts, Timestamp};
use twixt_observe::PacketPath;
use twixt_wire::SkipCounts;

use crate::plan::Plan;
use crate::selection::{EndSink, Excerpt};
use crate::spill::MEMORY_BYTES;
use crate::stamps::Stamps;

/// Packets of one capture that are kept at most, 24 bytes each.
const RECALLED_MAX: usize = 1 << 23;
/// The same beside an algorithm that keeps packets itself: no more than that has in memory.
const RECALLED_BESIDE_MAX: usize = MEMORY_BYTES / size_of::<Observation>();

/// The packets of a capture.
#[derive(Debug, Default)]
pub(crate) struct Recollection {
    batches: Vec<RecalledBatch>,
    /// The batch that is being read.
    open: Vec<RecalledPacket>,
    /// Of the flows that the survey distinguishes, in its order.
    keys: Vec<FlowKey>,
    packets: usize,
    packets_max: usize,
    skipped: SkipCounts,
}

/// What was read at once. The second read goes on in the same steps, as it would with the file.
#[derive(Debug)]
struct RecalledBatch {
    packets: Vec<RecalledPacket>,
    /// Latest time of any frame so far.
    latest: Timestamp,
    /// Frames of this batch that were skipped.
    skipped: SkipCounts,
}

#[derive(Clone, Copy, Debug)]
struct RecalledPacket {
    time: Timestamp,
    digest: PacketDigest,
    /// Number of its flow.
    flow: u32,
    length: u32,
}

impl Plan {
    /// How many packets are kept, if what is kept of them is all that the second read needs.
    pub(crate) fn recalled_max(&self) -> Option<usize> {
        let keeps_packets = self.algorithms.iter().any(|chosen| chosen.algorithm.matches_packets());
        let packets_max = if keeps_packets { RECALLED_BESIDE_MAX } else { RECALLED_MAX };
        self.can_recall().then_some(packets_max)
    }

    fn can_recall(&self) -> bool {
        let needs = self.needs();
        let reads_headers = self.algorithms.iter().any(|chosen| chosen.prototype.reads_headers());
        let is_plain = self.traffic.classes.is_empty() && self.cutting == Cutting::Timed;
        is_plain && needs.digest && !needs.group && !reads_headers
    }
}

impl Recollection {
    /// Of so many packets at most.
    pub(crate) fn new(packets_max: usize) -> Self {
        Self { packets_max, ..Self::default() }
    }

    /// Keeps a packet of the flow with this number; `key` is asked if there was none of it before. Returns
    /// whether there was room.
    #[inline]
    pub(crate) fn keep(
        &mut self,
        observation: &Observation,
        flow: u32,
        key: impl FnOnce() -> FlowKey,
    ) -> bool {
        if flow as usize == self.keys.len() {
            self.keys.push(key());
        }
        let Observation { time, digest, length, .. } = *observation;
        self.open.push(RecalledPacket { time, digest, flow, length });
        self.packets += 1;
        self.packets <= self.packets_max
    }

    /// A batch was read; `skipped` are all frames skipped so far.
    pub(crate) fn end_batch(&mut self, latest: Timestamp, skipped: SkipCounts) {
        let mut since = SkipCounts::default();
        for (skip, frames) in skipped.iter() {
            since.add(skip, frames - self.skipped.of(skip));
        }
        self.skipped = skipped;
        let next = Vec::with_capacity(self.open.len());
        let packets = std::mem::replace(&mut self.open, next);
        self.batches.push(RecalledBatch { packets, latest, skipped: since });
    }
}

/// A capture that was read, of which enough was kept.
#[derive(Clone, Copy)]
pub(crate) struct Recalled<'a> {
    pub(crate) recollection: &'a Recollection,
    pub(crate) survey: &'a PointSurvey,
    /// What its source counted, up to its end.
    pub(crate) counts: SourceCounts,
    /// Its end was missing.
    pub(crate) ended_early: bool,
    pub(crate) size_bytes: u64,
}

/// A second read, of what was kept.
pub(crate) struct Replay<'a> {
    recalled: Recalled<'a>,
    /// By number of the flow: where it goes; empty if the user specified that.
    headings: Vec<Option<Heading>>,
    /// Empty if no algorithm reads flow hashes.
    hashes: Vec<FlowHash>,
    next: usize,
}

impl<'a> Recalled<'a> {
    pub(crate) fn replay(self, plan: &Plan, excerpt: &Excerpt<'_>) -> Replay<'a> {
        let flows = || self.survey.flows_in_order();
        let heading = |(flow, ends)| excerpt.verdicts?.heading(flow, || ends);
        let headings = match excerpt.verdicts {
            Some(_) => flows().map(heading).collect(),
            None => Vec::new(),
        };
        let has_flows = plan.needs().flow || excerpt.verdicts.is_some();
        let hashes = if has_flows { flows().map(|(flow, _)| flow).collect() } else { Vec::new() };
        Replay { recalled: self, headings, hashes, next: 0 }
    }

    /// When the packets of an excerpt were sent.
    pub(crate) fn stamps(self, plan: &Plan, excerpt: &Excerpt<'_>) -> Stamps {
        let replay = self.replay(plan, excerpt);
        let mut stamps = Stamps::default();
        for packet in self.recollection.batches.iter().flat_map(|batch| &batch.packets) {
            if excerpt.place(|| replay.heading(packet), packet.time).is_ok() {
                stamps.note(&replay.observation(packet));
            }
        }
        stamps
    }
}

impl<'a> Replay<'a> {
    /// Hands a batch to the sink of a path, as if it had been read.
    pub(crate) fn next_batch(&mut self, path: &mut PacketPath<EndSink<'_>>) -> BatchEnd {
        let Recollection { batches, keys, .. } = self.recalled.recollection;
        let Some(batch) = batches.get(self.next) else { return BatchEnd::End };
        self.next += 1;
        let mut skipped = batch.skipped;
        let sink = path.sink_mut();
        sink.latest = sink.latest.max(batch.latest);
        for packet in &batch.packets {
            let key = || keys[packet.flow as usize];
            let heading = || self.heading(packet);
            if let Err(skip) = sink.recall(self.observation(packet), heading, key) {
                skipped.count(skip);
            }
        }
        path.count_skipped(&skipped);
        if self.next == batches.len() { BatchEnd::End } else { BatchEnd::More }
    }

    /// How much of the capture the next batch is, in bytes: all of them together are all of it.
    pub(crate) fn batch_bytes(&self) -> u64 {
        let batches = self.recalled.recollection.batches.len().max(1) as u128;
        let size_bytes = u128::from(self.recalled.size_bytes);
        let up_to = |batch: usize| size_bytes * (batch as u128).min(batches) / batches;
        (up_to(self.next + 1) - up_to(self.next)) as u64
    }

    /// The capture that was read.
    pub(crate) const fn recalled(&self) -> Recalled<'a> {
        self.recalled
    }

    #[inline]
    fn heading(&self, packet: &RecalledPacket) -> Option<Heading> {
        self.headings[packet.flow as usize]
    }

    #[inline]
    fn observation(&self, packet: &RecalledPacket) -> Observation {
        let RecalledPacket { time, digest, flow, length } = *packet;
        let flow = self.hashes.get(flow as usize).copied().unwrap_or_default();
        Observation { time, digest, flow, length, ..Observation::default() }
    }
}
