//! The referee of large flows: a counter for every flow.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use twixt_model::{FlowHash, FlowKey, HeavyFlow};

use super::entry::{Entry, by_flow, concluded};
use super::table::FlowTable;
use crate::codec::{DecodeError, Reader, Writer};
use crate::synopsis::{ConfigOption, SplitMerge};

/// A counter for every flow. Memory grows with flows.
#[derive(Clone, Debug, PartialEq)]
pub struct ExactTable {
    config: NoConfig,
    flows: HashMap<FlowHash, Entry>,
}

/// There is nothing to set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoConfig {}

impl FlowTable for ExactTable {
    const NAME: &'static str = "exact";
    const TAG: u16 = 32;
    const SUMMARY: &'static str = "a counter for every flow; memory grows with flows";
    const OPTIONS: &'static [ConfigOption] = &[];
    const SPLIT_MERGE: SplitMerge = SplitMerge::Exact;
    type Config = NoConfig;

    fn sized(_memory_bytes: u64) -> Option<NoConfig> {
        None
    }

    fn start(config: &NoConfig) -> Self {
        Self { config: *config, flows: HashMap::new() }
    }

    fn config(&self) -> &NoConfig {
        &self.config
    }

    fn add(&mut self, flow: FlowHash, key: &FlowKey, bytes: u32) {
        let known = self.flows.entry(flow).and_modify(|entry| entry.count(bytes));
        known.or_insert_with(|| Entry::first(flow, key, bytes, 0));
    }

    fn merge(&mut self, other: &Self) {
        for (flow, entry) in &other.flows {
            let known = self.flows.entry(*flow).and_modify(|own| own.absorb(entry));
            known.or_insert(*entry);
        }
    }

    fn flows(&self) -> Vec<HeavyFlow> {
        let mut flows = concluded(self.flows.values());
        for flow in &mut flows {
            flow.packets_at_most = Some(flow.packets);
        }
        flows
    }

    fn state_bytes(&self) -> u64 {
        (self.flows.len() * size_of::<(FlowHash, Entry)>()) as u64
    }

    fn encode(&self, out: &mut Writer) {
        out.u64(self.flows.len() as u64);
        for entry in by_flow(self.flows.values()).values() {
            entry.encode(out);
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = input.count("flows", Entry::BYTES)?;
        let mut flows = HashMap::with_capacity(count);
        for _ in 0..count {
            let entry = Entry::decode(input)?;
            flows.insert(entry.flow, entry);
        }
        Ok(Self { config: NoConfig {}, flows })
    }
}
