//! How many packets the flows of a capture have.

use std::collections::HashMap;
use std::path::Path;

use twixt_model::{DigestHash, DigestProfile, FlowHash, Needs};
use twixt_observe::{PacketPath, PacketSink, SeenPacket};
use twixt_offline::{Capture, Traffic};
use twixt_wire::{Digester, HashKey, Observer, Skip};

use crate::exit::note;
use crate::output::units;
use crate::progress::ReadProgress;
use crate::remarks::note_ending;

/// Maximum number of flows counted.
const FLOWS_MAX: usize = 1 << 22;

/// Packets of each flow, in no particular order.
pub(super) fn flow_sizes(path: &Path) -> anyhow::Result<Vec<u64>> {
    let mut capture = Capture::open(path)?;
    // Flow hashes never leave this command: a fixed key will do.
    let digester =
        Digester::new(DigestProfile::Headers, DigestHash::Xxh3, 0, HashKey::from_seed(0));
    let needs = Needs { flow: true, ..Needs::default() };
    let mut path =
        PacketPath::new(Traffic::default().observer(needs, digester)?, FlowCounts::default());
    let progress = ReadProgress::new(capture.size_bytes(), "reading");
    capture.read_to_end(&progress, |frame| path.take(&frame));
    drop(progress);
    let found = path.into_sink();
    note_ending(&capture);
    if found.refused > 0 {
        let refused = units::count(found.refused);
        note(format_args!("{refused} packets of further flows were left out"));
    }
    Ok(found.flows.into_values().collect())
}

#[derive(Default)]
struct FlowCounts {
    flows: HashMap<FlowHash, u64>,
    refused: u64,
}

impl PacketSink for FlowCounts {
    fn take(&mut self, _observer: &Observer, seen: SeenPacket<'_>) -> Result<(), Skip> {
        let flow = seen.observation.flow;
        if let Some(packets) = self.flows.get_mut(&flow) {
            *packets += 1;
        } else if self.flows.len() < FLOWS_MAX {
            self.flows.insert(flow, 1);
        } else {
            self.refused += 1;
        }
        Ok(())
    }
}
