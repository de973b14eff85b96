//! SpaceSaving: a new flow always takes over the smallest counter with its count.
//!
//! Metwally, Agrawal, El Abbadi: "Efficient Computation of Frequent and Top-k Elements in Data
//! Streams", ICDT 2005. Never counts too few, and never more than the smallest counter too many.

use twixt_model::{FlowHash, FlowKey, HeavyFlow};

use super::config::{ENTRIES_OPTION, EntriesConfig};
use super::entry::{Entry, by_flow};
use super::summary::Summary;
use super::table::FlowTable;
use crate::codec::{DecodeError, Reader, Writer};
use crate::synopsis::ConfigOption;

/// SpaceSaving's counters.
#[derive(Clone, Debug, PartialEq)]
pub struct SpaceSavingTable {
    config: EntriesConfig,
    /// Ranked by position: of equal counters the first in the table is taken over.
    summary: Summary,
}

impl SpaceSavingTable {
    /// Packets that a flow without an entry may have had: none before the table was full.
    fn missed_at_most(&self) -> u64 {
        let smallest = self.summary.smallest().filter(|_| self.summary.is_full());
        smallest.map_or(0, |entry| entry.packets)
    }
}

#[cfg(test)]
impl SpaceSavingTable {
    pub(super) fn entries(&self) -> &[Entry] {
        self.summary.entries()
    }
}

impl FlowTable for SpaceSavingTable {
    const NAME: &'static str = "space-saving";
    const TAG: u16 = 33;
    const SUMMARY: &'static str =
        "new flows take over the smallest counter; never undercounts, overcounts by a known bound";
    const OPTIONS: &'static [ConfigOption] = &[ENTRIES_OPTION];
    type Config = EntriesConfig;

    fn sized(memory_bytes: u64) -> Option<EntriesConfig> {
        EntriesConfig::within(memory_bytes, Summary::bytes_for)
    }

    fn start(config: &EntriesConfig) -> Self {
        Self { config: config.clone(), summary: Summary::new(config.entries() as usize) }
    }

    fn config(&self) -> &EntriesConfig {
        &self.config
    }

    fn add(&mut self, flow: FlowHash, key: &FlowKey, bytes: u32) {
        if self.summary.count(flow, bytes) {
            return;
        }
        if !self.summary.is_full() {
            let rank = self.summary.len() as u64;
            return self.summary.insert(Entry::first(flow, key, bytes, 0), rank);
        }
        let inherited = self.missed_at_most();
        self.summary.replace_smallest(Entry::first(flow, key, bytes, inherited), None);
    }

    /// What a flow has in both is added; a flow that one of them does not have may have had as
    /// many packets there as its smallest counter says. The bounds stay true.
    fn merge(&mut self, other: &Self) {
        let missed = [self.missed_at_most(), other.missed_at_most()];
        let [mut flows, others] = [&*self, other].map(|table| by_flow(table.summary.entries()));
        for (flow, entry) in &mut flows {
            match others.get(flow) {
                Some(other) => entry.absorb(other),
                None => entry.inherit(missed[1]),
            }
        }
        for (flow, mut entry) in others {
            flows.entry(flow).or_insert_with(|| {
                entry.inherit(missed[0]);
                entry
            });
        }
        self.summary.refill(flows.values());
    }

    fn flows(&self) -> Vec<HeavyFlow> {
        let mut flows = super::entry::concluded(self.summary.entries());
        for flow in &mut flows {
            flow.packets_at_most = Some(flow.packets);
        }
        flows
    }

    fn state_bytes(&self) -> u64 {
        Summary::bytes_for(self.summary.capacity())
    }

    fn encode(&self, out: &mut Writer) {
        self.config.encode(out);
        self.summary.encode(out);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let config = EntriesConfig::decode(input)?;
        let summary = Summary::decode(config.entries() as usize, input)?;
        Ok(Self { config, summary })
    }
}
