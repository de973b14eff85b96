//! One counter of a table: whose it is, and what it has counted.

use std::collections::BTreeMap;

use twixt_model::{FlowHash, FlowKey, HeavyFlow};

use crate::codec::{DecodeError, Reader, Writer};
use crate::flow_key::{KEY_BYTES, read_key, write_key};

/// A counter, and the flow that has it now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) flow: FlowHash,
    pub(super) key: FlowKey,
    /// What the counter says.
    pub(super) packets: u64,
    /// The part of it that the flow took over from the one before. At most `packets`.
    pub(super) inherited: u64,
    /// Bytes of the packets that were counted since.
    pub(super) bytes: u64,
}

impl Entry {
    /// Bytes of an encoded entry.
    pub(super) const BYTES: usize = KEY_BYTES + 3 * 8;

    /// A flow's first packet, in a counter that stood at `inherited`.
    pub(super) fn first(flow: FlowHash, key: &FlowKey, bytes: u32, inherited: u64) -> Self {
        let packets = inherited.saturating_add(1);
        Self { flow, key: *key, packets, inherited, bytes: u64::from(bytes) }
    }

    /// Counts a packet.
    #[inline]
    pub(super) fn count(&mut self, bytes: u32) {
        self.packets = self.packets.saturating_add(1);
        self.bytes = self.bytes.saturating_add(u64::from(bytes));
    }

    /// Adds what another counter has of the same flow.
    pub(super) fn absorb(&mut self, other: &Self) {
        self.packets = self.packets.saturating_add(other.packets);
        self.inherited = self.inherited.saturating_add(other.inherited).min(self.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    /// Adds packets that may or may not have been the flow's.
    pub(super) fn inherit(&mut self, packets: u64) {
        self.packets = self.packets.saturating_add(packets);
        self.inherited = self.inherited.saturating_add(packets);
    }

    /// Packets that were the flow's for certain.
    pub(super) const fn counted(&self) -> u64 {
        self.packets - self.inherited
    }

    /// The report on the flow.
    pub(super) fn conclude(&self) -> HeavyFlow {
        let counted = u128::from(self.counted().max(1));
        let bytes = u128::from(self.bytes) * u128::from(self.packets) / counted;
        HeavyFlow {
            hash: self.flow,
            key: self.key,
            packets: self.packets,
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            packets_at_least: self.counted(),
            packets_at_most: None,
        }
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        write_key(out, self.flow, &self.key);
        out.u64(self.packets);
        out.u64(self.inherited);
        out.u64(self.bytes);
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (flow, key) = read_key(input)?;
        let packets = input.u64("packets of a flow")?;
        let inherited = input.u64("packets taken over")?;
        let bytes = input.u64("bytes of a flow")?;
        if inherited > packets {
            let problem = format!("{inherited} of {packets} packets");
            return Err(DecodeError::invalid("packets taken over", problem));
        }
        Ok(Self { flow, key, packets, inherited, bytes })
    }
}

/// One entry per flow, whichever counters it has.
pub(super) fn by_flow<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
) -> BTreeMap<FlowHash, Entry> {
    let mut flows: BTreeMap<FlowHash, Entry> = BTreeMap::new();
    for entry in entries {
        let known = flows.entry(entry.flow);
        known.and_modify(|sum| sum.absorb(entry)).or_insert(*entry);
    }
    flows
}

/// The same, largest first.
pub(super) fn by_size<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<Entry> {
    let mut flows: Vec<Entry> = by_flow(entries).into_values().collect();
    flows.sort_by_key(|entry| (std::cmp::Reverse(entry.packets), entry.flow));
    flows
}

/// The reports on flows, largest first.
pub(super) fn concluded<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<HeavyFlow> {
    by_size(entries).iter().map(Entry::conclude).collect()
}
