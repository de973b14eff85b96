//! The flows that a point saw, epoch by epoch, for algorithms that keep no flow keys of their own.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use twixt_model::{ClassId, Epoch, EpochRule, FlowHash, FlowKey, GroupId, Observation};
use twixt_synopsis::KnownFlow;

/// Flows of one epoch at most.
const FLOWS_MAX: usize = 1 << 20;

/// Names and sizes of flows.
pub(crate) struct Directory {
    rule: EpochRule,
    /// By algorithm, whether it needs the list of flows.
    asked_by: Vec<bool>,
    sizes_known: bool,
    epochs: BTreeMap<Epoch, HashMap<FlowHash, PassingFlow>>,
    refused: u64,
}

/// A flow as far as it was seen.
struct PassingFlow {
    key: FlowKey,
    group: GroupId,
    packets: u64,
    /// Of its first packet.
    class: ClassId,
}

impl Directory {
    /// Nothing seen yet.
    pub(crate) const fn new(rule: EpochRule, asked_by: Vec<bool>, sizes_known: bool) -> Self {
        Self { rule, asked_by, sizes_known, epochs: BTreeMap::new(), refused: 0 }
    }

    /// Notes a packet.
    pub(crate) fn note(&mut self, packet: &Observation, key: FlowKey) {
        let flows = self.epochs.entry(self.rule.epoch_of(packet.time)).or_default();
        if let Some(noted) = flows.get_mut(&packet.flow) {
            noted.packets += 1;
        } else if flows.len() < FLOWS_MAX {
            let Observation { flow, group, class, .. } = *packet;
            flows.insert(flow, PassingFlow { key, group, packets: 1, class });
        } else {
            self.refused += 1;
        }
    }

    /// The flows of an epoch, which is forgotten, if the algorithm needs them; in the order of
    /// their keys, so that equal captures give equal answers.
    pub(crate) fn take(&mut self, algorithm: usize, epoch: Epoch) -> Option<Arc<[KnownFlow]>> {
        if !self.asked_by[algorithm] {
            return None;
        }
        let flows = self.epochs.remove(&epoch).unwrap_or_default().into_iter();
        let mut known: Vec<KnownFlow> = flows
            .map(|(hash, noted)| KnownFlow {
                hash,
                key: noted.key,
                group: noted.group,
                packets: self.sizes_known.then_some(noted.packets),
                class: noted.class,
            })
            .collect();
        known.sort_unstable_by_key(|flow| flow.key);
        Some(known.into())
    }

    /// Packets of flows beyond the bound.
    pub(crate) const fn refused(&self) -> u64 {
        self.refused
    }
}
