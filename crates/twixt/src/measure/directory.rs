//! The flows that a point saw, epoch by epoch, for algorithms that keep no flow keys of their own.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use twixt_model::{ClassId, Epoch, EpochRule, FlowHash, FlowKey, GroupId, Observation};
use twixt_synopsis::KnownFlow;

/// Flows of one epoch at most.
const FLOWS_MAX: usize = 1 << 20;

/// Names and sizes of flows.
pub(super) struct Directory {
    rule: EpochRule,
    epochs: BTreeMap<Epoch, HashMap<FlowHash, Noted>>,
    refused: u64,
}

struct Noted {
    key: FlowKey,
    group: GroupId,
    packets: u64,
    /// Of its first packet.
    class: ClassId,
}

impl Directory {
    /// Nothing seen yet.
    pub(super) const fn new(rule: EpochRule) -> Self {
        Self { rule, epochs: BTreeMap::new(), refused: 0 }
    }

    /// Notes a packet.
    pub(super) fn note(&mut self, packet: &Observation, key: FlowKey) {
        let flows = self.epochs.entry(self.rule.epoch_of(packet.time)).or_default();
        if let Some(noted) = flows.get_mut(&packet.flow) {
            noted.packets += 1;
        } else if flows.len() < FLOWS_MAX {
            let Observation { flow, group, class, .. } = *packet;
            flows.insert(flow, Noted { key, group, packets: 1, class });
        } else {
            self.refused += 1;
        }
    }

    /// The flows of an epoch, which is forgotten; in the order of their keys, so that equal
    /// captures give equal answers.
    pub(super) fn take(&mut self, epoch: Epoch, sizes_known: bool) -> Arc<[KnownFlow]> {
        let flows = self.epochs.remove(&epoch).unwrap_or_default().into_iter();
        let mut known: Vec<KnownFlow> = flows
            .map(|(hash, noted)| KnownFlow {
                hash,
                key: noted.key,
                group: noted.group,
                packets: sizes_known.then_some(noted.packets),
                class: noted.class,
            })
            .collect();
        known.sort_unstable_by_key(|flow| flow.key);
        known.into()
    }

    /// Packets of flows beyond the bound.
    pub(super) const fn refused(&self) -> u64 {
        self.refused
    }
}
