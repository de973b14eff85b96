//! One flow that is being followed, and the two ways to choose which.

use twixt_model::{FlowHash, FlowKey, Prefix, mix};

use super::config::FollowConfig;
use super::handshake::Handshakes;
use super::judge::{DataPacket, Definition, Tracker};
use super::tally::{Tallies, Tally};
use crate::heavy::chance::{Coin, CountedCoin, Placement, Stages};

/// A packet with data, its flow, and where it came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) flow: FlowHash,
    pub(super) prefix: Prefix,
    pub(super) packet: &'a DataPacket,
    pub(super) key: &'a FlowKey,
    pub(super) handshakes: &'a Handshakes,
}

/// Holes of a flow that are remembered.
const HOLES_MAX: usize = 8;

/// A flow that is being followed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Record {
    flow: FlowHash,
    prefix: Prefix,
    tracker: Tracker<HOLES_MAX>,
    last_ns: i64,
    /// Of packets judged since the last report. The first packet of a record is not among them:
    /// what came before it was not seen.
    tally: Tally,
    /// All packets, as a table of large flows counts them: with those of flows before this one.
    size: u64,
}

impl Record {
    fn new(seen: &Seen<'_>, size: u64) -> Self {
        Self {
            flow: seen.flow,
            prefix: seen.prefix,
            tracker: Tracker::new(seen.packet, seen.handshakes.reaction_ns(seen.key)),
            last_ns: seen.packet.time.as_nanos(),
            tally: Tally::default(),
            size,
        }
    }

    #[inline]
    fn follow(&mut self, packet: &DataPacket, definition: Definition) {
        self.tally.count(self.tracker.judge(packet, definition));
        self.last_ns = packet.time.as_nanos();
        self.size = self.size.saturating_add(1);
    }

    /// Adds what was seen to the prefix, and forgets it.
    fn report(&mut self, tallies: &mut Tallies) {
        tallies.add(self.prefix, &std::mem::take(&mut self.tally));
    }
}

/// Room for records, taken when the first is needed: what was read back seldom needs any, and how
/// many there would be comes from outside.
#[derive(Clone, Debug, PartialEq)]
struct Records {
    most: usize,
    /// None or `most` of them.
    kept: Vec<Option<Record>>,
}

impl Records {
    const fn none(most: usize) -> Self {
        Self { most, kept: Vec::new() }
    }

    #[inline]
    fn reserve(&mut self) -> &mut [Option<Record>] {
        if self.kept.len() < self.most {
            self.kept.resize(self.most, None);
        }
        &mut self.kept
    }

    fn report_all(&mut self, tallies: &mut Tallies) {
        self.kept.iter_mut().flatten().for_each(|record| record.report(tallies));
    }
}

/// Flows in turns: a prefix has one record, and what it shows of one flow is soon enough known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SampledFlows {
    records: Records,
    stale_ns: i64,
    cap: u32,
}

impl SampledFlows {
    pub(super) fn new<const LARGE: bool>(config: &FollowConfig<LARGE>) -> Self {
        let stale_ns = i64::try_from(config.stale).unwrap_or(i64::MAX);
        Self { records: Records::none(config.sampled_records()), stale_ns, cap: config.cap }
    }

    /// Makes room for all records.
    pub(super) fn reserve(&mut self) {
        self.records.reserve();
    }

    pub(super) fn see(&mut self, seen: &Seen<'_>, definition: Definition, tallies: &mut Tallies) {
        let records = self.records.reserve();
        if records.is_empty() {
            return;
        }
        let slot = slot_of(seen.prefix, records.len());
        match &mut records[slot] {
            Some(record) if record.flow == seen.flow => record.follow(seen.packet, definition),
            Some(record) => {
                let idle_ns = seen.packet.time.as_nanos().saturating_sub(record.last_ns);
                // By its size, which goes on across epochs; its first packet was not judged.
                let enough = record.size > u64::from(self.cap);
                if enough || idle_ns > self.stale_ns {
                    record.report(tallies);
                    *record = Record::new(seen, 1);
                }
            }
            free @ None => *free = Some(Record::new(seen, 1)),
        }
    }

    /// The flow restarts: its record is free.
    pub(super) fn reopen(&mut self, flow: FlowHash, prefix: Prefix, tallies: &mut Tallies) {
        let records = self.records.reserve();
        if records.is_empty() {
            return;
        }
        let slot = slot_of(prefix, records.len());
        if let Some(record) = records[slot].as_mut().filter(|record| record.flow == flow) {
            record.report(tallies);
            records[slot] = None;
        }
    }

    pub(super) fn report_all(&mut self, tallies: &mut Tallies) {
        self.records.report_all(tallies);
    }
}

/// Large flows for as long as they last, found as PRECISION finds them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LargeFlows {
    records: Records,
    coin: CountedCoin,
}

const STAGES: usize = 2;

impl LargeFlows {
    pub(super) fn new(records: usize) -> Self {
        Self { records: Records::none(records), coin: CountedCoin::default() }
    }

    /// Makes room for all records.
    pub(super) fn reserve(&mut self) {
        self.records.reserve();
    }

    /// Whether the packet's flow is, or from now on will be, among them.
    pub(super) fn see(
        &mut self,
        seen: &Seen<'_>,
        definition: Definition,
        tallies: &mut Tallies,
    ) -> bool {
        let Some((slot, size)) = self.smallest(seen.flow) else { return false };
        match &mut self.records.reserve()[slot] {
            Some(record) if record.flow == seen.flow => record.follow(seen.packet, definition),
            Some(record) => {
                if !self.coin.one_in(size.saturating_add(1), seen.flow) {
                    return false;
                }
                record.report(tallies);
                *record = Record::new(seen, size.saturating_add(1));
            }
            free @ None => *free = Some(Record::new(seen, 1)),
        }
        true
    }

    /// The flow's own record, or else the smaller of the two that it might have.
    fn smallest(&mut self, flow: FlowHash) -> Option<(usize, u64)> {
        let records = self.records.reserve();
        let slots = records.len() / STAGES;
        if slots == 0 {
            return None;
        }
        let places = [0, 1].map(|stage| Stages.place(flow, stage, slots));
        let size = |place: usize| records[place].as_ref().map_or(0, |record| record.size);
        let own = |&place: &usize| records[place].as_ref().is_some_and(|it| it.flow == flow);
        let place = places.into_iter().find(own);
        let place = place.or_else(|| places.into_iter().min_by_key(|&place| size(place)))?;
        Some((place, size(place)))
    }

    /// The flow restarts: its record is free.
    pub(super) fn reopen(&mut self, flow: FlowHash, tallies: &mut Tallies) {
        let Some((slot, _)) = self.smallest(flow) else { return };
        let own = &mut self.records.reserve()[slot];
        if let Some(record) = own.as_mut().filter(|record| record.flow == flow) {
            record.report(tallies);
            *own = None;
        }
    }

    pub(super) fn report_all(&mut self, tallies: &mut Tallies) {
        self.records.report_all(tallies);
    }
}

/// By prefix, so that a large one cannot fill the table.
fn slot_of(prefix: Prefix, slots: usize) -> usize {
    const SALT: u64 = 0x7265_6f72_6465_7200;
    let bits = match prefix.address() {
        std::net::IpAddr::V4(address) => u128::from(address.to_bits()),
        std::net::IpAddr::V6(address) => address.to_bits(),
    };
    let hash = mix((bits >> 64) as u64 ^ mix(bits as u64 ^ SALT ^ u64::from(prefix.length())));
    ((u128::from(hash) * slots as u128) >> 64) as usize
}

pub(super) const RECORD_BYTES: usize = size_of::<Option<Record>>();
