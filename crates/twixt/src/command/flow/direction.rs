//! Which way the flows of records go: found as for captures, by the ends of records in place of
//! packets.

use std::path::Path;

use twixt_flow::FlowReader;
use twixt_measure::survey::{
    Comparison, FlowEnds, Heading, PointSurvey, Sighting, Verdicts, compare,
};
use twixt_model::{DigestHash, DigestProfile, FlowKey, FlowRecord, PacketDigest, Timestamp, mix};
use twixt_wire::{Digester, HashKey};

use crate::flow_record_input::RecordSource;

/// What is noted of the records of one point.
pub(super) struct RecordSurvey {
    survey: PointSurvey,
    flows: FlowHashes,
}

/// Stands for flows and addresses.
#[derive(Clone)]
pub(super) struct FlowHashes(Digester);

impl Default for FlowHashes {
    fn default() -> Self {
        let (profile, hash) = (DigestProfile::Default, DigestHash::default());
        Self(Digester::new(profile, hash, 0, HashKey::from_seed(0)))
    }
}

impl FlowHashes {
    /// Where the packets of a flow go; `None` if that is not known.
    pub(super) fn heading(&self, verdicts: &Verdicts, key: &FlowKey) -> Option<Heading> {
        verdicts.heading(self.0.flow_hash(key), || self.ends(key))
    }

    fn ends(&self, key: &FlowKey) -> FlowEnds {
        let address = |address| {
            let alone = FlowKey { source: address, destination: address, ..FlowKey::default() };
            self.0.flow_hash(&alone).0
        };
        FlowEnds {
            reverse: self.0.flow_hash(&key.reversed()),
            source: address(key.source),
            destination: address(key.destination),
            stays_local: key.destination.is_multicast(),
        }
    }
}

impl RecordSurvey {
    pub(super) fn new() -> Self {
        Self { survey: PointSurvey::new(), flows: FlowHashes::default() }
    }

    /// Of all records of a file.
    pub(super) fn of_file(path: &Path, enterprise: u32) -> anyhow::Result<Self> {
        let (mut source, mut reader) = (RecordSource::open(path)?, FlowReader::new(enterprise));
        let mut survey = Self::new();
        while source.read_batch(&mut reader, &mut |read| survey.note(&read.record))? {}
        Ok(survey)
    }

    /// Notes the ends of a record. Without labels, a record of as many packets and bytes of the flow is
    /// taken for the same.
    pub(super) fn note(&mut self, record: &FlowRecord) {
        let flow = self.flows.0.flow_hash(&record.key);
        let counted = mix(flow.0 ^ mix(record.packets) ^ mix(record.bytes).rotate_left(1));
        let label = |label: Option<PacketDigest>| label.unwrap_or(PacketDigest(counted));
        self.see(record, record.first, label(record.first_label));
        if record.last_label.is_some() {
            self.see(record, record.last, label(record.last_label));
        }
    }

    fn see(&mut self, record: &FlowRecord, time: Timestamp, digest: PacketDigest) {
        self.survey.saw_frame(time);
        let sighting = Sighting {
            time,
            digest,
            flow: self.flows.0.flow_hash(&record.key),
            ttl: 0,
            passage: None,
            length: 0,
            is_fragment: false,
        };
        self.survey.observe(&sighting, || self.flows.ends(&record.key));
    }

    /// What the records of two points have in common; `None` if it is nothing.
    pub(super) fn compare(&self, downstream: &Self) -> Option<Comparison> {
        compare(&self.survey, &downstream.survey)
    }
}
