//! Which flows are asked about, and what is known of their sizes.

use twixt_model::{ClassId, FlowKey, Span};
use twixt_synopsis::KnownFlow;
use twixt_wire::Digester;

use crate::recorded_sizes::{RecordedSizes, Within};

/// Whether flow sizes are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowSizes {
    /// Counted, or given with the list.
    Known,
    /// Estimated from the synopsis alone.
    Estimated,
}

/// A flow, with what else is known of it.
#[derive(Clone, Copy, Debug)]
pub struct NamedFlow {
    /// Its key.
    pub key: FlowKey,
    /// Its size, over all time.
    pub packets: Option<u64>,
    /// Its class.
    pub class: Option<ClassId>,
}

/// Which flows are asked about.
#[derive(Clone, Debug)]
pub struct FlowList {
    source: NameSource,
    /// Whether their sizes are known.
    pub sizes: FlowSizes,
}

/// Where names of flows come from.
#[derive(Clone, Debug)]
enum NameSource {
    Passing,
    Table,
    List(Vec<NamedFlow>),
    Records(Vec<NamedFlow>, RecordedSizes),
}

impl FlowList {
    /// No flow is asked about.
    #[must_use]
    pub const fn none() -> Self {
        Self { source: NameSource::List(Vec::new()), sizes: FlowSizes::Estimated }
    }

    /// All flows that pass.
    #[must_use]
    pub const fn passing(sizes: FlowSizes) -> Self {
        Self { source: NameSource::Passing, sizes }
    }

    /// The flows that synopses have in a table of large ones.
    #[must_use]
    pub const fn heavy(sizes: FlowSizes) -> Self {
        Self { source: NameSource::Table, sizes }
    }

    /// These flows.
    #[must_use]
    pub const fn named(flows: Vec<NamedFlow>, sizes: FlowSizes) -> Self {
        Self { source: NameSource::List(flows), sizes }
    }

    /// The flows of flow records, with their sizes epoch by epoch.
    #[must_use]
    pub fn recorded(records: RecordedSizes, sizes: FlowSizes) -> Self {
        let named = |(key, packets)| NamedFlow { key, packets: Some(packets), class: None };
        let flows = records.totals().map(named).collect();
        Self { source: NameSource::Records(flows, records), sizes }
    }

    /// Whether the flows that pass are to be noted.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        matches!(self.source, NameSource::Passing)
    }

    /// Whether the synopses name them.
    #[must_use]
    pub const fn is_heavy(&self) -> bool {
        matches!(self.source, NameSource::Table)
    }

    /// Whether classes of flows are known.
    #[must_use]
    pub fn has_classes(&self) -> bool {
        match &self.source {
            NameSource::Passing => true,
            NameSource::Table => false,
            NameSource::List(named) | NameSource::Records(named, _) => {
                named.iter().all(|named| named.class.is_some())
            }
        }
    }

    /// Whether a flow is asked about.
    #[must_use]
    pub fn asks_for(&self, flow: &FlowKey) -> bool {
        match &self.source {
            NameSource::Passing | NameSource::Table => true,
            NameSource::List(named) | NameSource::Records(named, _) => {
                named.iter().any(|named| named.key == *flow)
            }
        }
    }

    /// The named flows, under the hashes that observations have.
    #[must_use]
    pub fn known(&self, digester: &Digester) -> Vec<KnownFlow> {
        let known = |named: &NamedFlow| KnownFlow {
            hash: digester.flow_hash(&named.key),
            key: named.key,
            group: digester.group(&named.key),
            packets: named.packets.filter(|_| self.sizes == FlowSizes::Known),
            class: named.class.unwrap_or_default(),
        };
        match &self.source {
            NameSource::List(named) | NameSource::Records(named, _) => {
                named.iter().map(known).collect()
            }
            NameSource::Passing | NameSource::Table => Vec::new(),
        }
    }

    /// The flows of one epoch with their sizes there; `None` where those are the same in all.
    /// Where a record goes on beyond the epoch, the size there is left to the synopses.
    #[must_use]
    pub fn known_within(&self, digester: &Digester, span: Span) -> Option<Vec<KnownFlow>> {
        let NameSource::Records(_, records) = &self.source else { return None };
        let are_known = self.sizes == FlowSizes::Known;
        let flows = self.known(digester).into_iter();
        let sized = flows.filter_map(|flow| match records.within(&flow.key, span) {
            Within::Absent => None,
            Within::Packets(packets) if are_known => {
                Some(KnownFlow { packets: Some(packets), ..flow })
            }
            Within::Packets(_) | Within::Unknown => Some(KnownFlow { packets: None, ..flow }),
        });
        Some(sized.collect())
    }

    /// Whether sizes are given for all time together, and not epoch by epoch.
    #[must_use]
    pub fn has_whole_sizes(&self) -> bool {
        let NameSource::List(named) = &self.source else { return false };
        self.sizes == FlowSizes::Known && named.iter().any(|named| named.packets.is_some())
    }
}
