//! Delays of flows, written for collectors of IPFIX.

use std::path::Path;

use twixt_flow::{DelayRecord, FlowWriter, WriterConfig};
use twixt_model::{Estimate, Scope};

use super::send::Outlet;
use crate::exit::note;
use crate::output::units;

/// Writes the known delays of flows. Returns how many could not be written, which it notes: IPFIX
/// has no negative delays.
pub(super) fn write(path: &Path, estimates: &[Estimate], enterprise: u32) -> anyhow::Result<u64> {
    let mut writer = FlowWriter::new(WriterConfig { enterprise, ..WriterConfig::STREAM })?;
    let mut outlet = Outlet::file(path)?;
    let mut refused = 0;
    for estimate in estimates {
        let Some(delay) = delay_of(estimate) else { continue };
        refused += u64::from(writer.delay(&delay, delay.last).is_err());
        while let Some(message) = writer.poll() {
            outlet.send(&message)?;
        }
    }
    writer.finish();
    while let Some(message) = writer.poll() {
        outlet.send(&message)?;
    }
    outlet.finish()?;
    if refused > 0 {
        let flows = units::count(refused);
        note(format_args!(
            "{flows} flows have delays or times that IPFIX cannot represent: not written"
        ));
    }
    Ok(refused)
}

fn delay_of(estimate: &Estimate) -> Option<DelayRecord> {
    let Scope::Flow(key) = estimate.scope else { return None };
    Some(DelayRecord {
        key,
        first: estimate.span.start,
        last: estimate.span.end,
        packets: estimate.evidence.used,
        mean: estimate.delay?.mean(),
        extremes: None,
    })
}
