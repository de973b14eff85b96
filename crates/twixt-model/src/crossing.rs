//! What became of each packet of a segment, where every packet was kept.

use std::collections::BTreeMap;

use crate::{Delay, FlowHash, FlowKey, Timestamp, Variation};

/// What is known packet by packet, from algorithms that keep every packet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Crossings {
    /// How delays vary from packet to packet; `None` with fewer than two of a flow.
    pub variation: Option<Variation>,
    /// Every packet that upstream counted, in the order of time, if that was asked for.
    pub packets: Vec<Crossing>,
    /// The flows of these packets.
    pub keys: BTreeMap<FlowHash, FlowKey>,
}

/// One packet that upstream counted, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// When upstream saw it.
    pub sent: Timestamp,
    /// Stands for its flow.
    pub flow: FlowHash,
    /// Length of the IP packet in bytes.
    pub length: u32,
    /// What became of it.
    pub fate: CrossingFate,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossingFate {
    /// Downstream did not see it.
    Lost,
    /// It arrived, among packets that are identical to it: nothing tells when.
    Unmeasured,
    /// How long it took.
    Took(Delay),
}

impl Crossing {
    /// How long it took, where that is known.
    #[must_use]
    pub const fn delay(&self) -> Option<Delay> {
        match self.fate {
            CrossingFate::Took(delay) => Some(delay),
            CrossingFate::Lost | CrossingFate::Unmeasured => None,
        }
    }

    /// Whether the network lost it.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.fate == CrossingFate::Lost
    }
}

impl Crossings {
    /// Adds what is known of other packets of the same scope. Between the two no packet follows
    /// another.
    pub fn add(&mut self, other: Self) {
        self.variation = match (self.variation, other.variation) {
            (Some(one), Some(another)) => Some(one.merged(another)),
            (one, another) => one.or(another),
        };
        self.packets.extend(other.packets);
        self.packets.sort_by_key(|packet| packet.sent);
        self.keys.extend(other.keys);
    }
}
