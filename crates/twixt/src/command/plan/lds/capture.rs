//! How many packets the flows of a capture have.

use std::collections::HashMap;
use std::path::Path;

use twixt_capture::{BatchEnd, Frame};
use twixt_model::{DigestHash, DigestProfile, FlowHash, Needs};
use twixt_offline::Capture;
use twixt_wire::{Digester, FrameBytes, HashKey, LinkType, Observer, ObserverOptions};

use crate::exit::{note, usage};
use crate::output::units;
use crate::progress::ReadProgress;
use crate::remarks::note_ending;

/// Flows told apart at most.
const FLOWS_MAX: usize = 1 << 22;

/// Packets of each flow, in no particular order.
pub(super) fn flow_sizes(path: &Path) -> anyhow::Result<Vec<u64>> {
    let mut capture = Capture::open(path)?;
    // Flow hashes never leave this command: a fixed key will do.
    let digester =
        Digester::new(DigestProfile::Headers, DigestHash::Xxh3, 0, HashKey::from_seed(0));
    let options = ObserverOptions {
        needs: Needs { digest: false, flow: true, detail: false, group: false },
        outer: false,
        filter: None,
        classes: Vec::new(),
        digester,
    };
    let observer = Observer::new(options).map_err(|error| usage(error.to_string()))?;
    let mut found = FlowCounts::default();
    let progress = ReadProgress::new(capture.size_bytes());
    while capture.read_batch(&progress, |frame| found.add(&observer, &frame)) == BatchEnd::More {}
    drop(progress);
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

impl FlowCounts {
    fn add(&mut self, observer: &Observer, frame: &Frame<'_>) {
        let link = LinkType(frame.link_type);
        let bytes = FrameBytes::within(frame.memory, frame.bytes.len());
        let Ok(packet) = observer.observe(link, bytes, frame.wire_length, frame.time) else {
            return;
        };
        if let Some(packets) = self.flows.get_mut(&packet.flow) {
            *packets += 1;
        } else if self.flows.len() < FLOWS_MAX {
            self.flows.insert(packet.flow, 1);
        } else {
            self.refused += 1;
        }
    }
}
