//! The flow records of one point, out of a file.

use std::collections::BTreeMap;
use std::path::Path;

use twixt_flow::FlowReader;
use twixt_model::{FlowRecord, Prefix};

use crate::exit::note;
use crate::measure::PointCounts;
use crate::output::units;
use crate::records::{note_troubles, read_records};

/// Records of one point at most: estimates look at all of them.
const RECORDS_MAX: usize = 1 << 24;

/// What a file has.
pub(super) struct PointRecords {
    pub(super) records: Vec<FlowRecord>,
    pub(super) counts: PointCounts,
    /// The share of packets that was metered, if the exporter says.
    pub(super) rate: Option<f64>,
    /// Whether a part of the file was unusable.
    pub(super) partial: bool,
}

impl PointRecords {
    /// Whether all records have labels of their first and last packets.
    pub(super) fn are_labelled(&self) -> bool {
        self.records
            .iter()
            .all(|record| record.first_label.is_some() && record.last_label.is_some())
    }

    /// The coarsest of all records.
    pub(super) fn resolution_ns(&self) -> u64 {
        self.records.iter().map(|record| record.resolution_ns).max().unwrap_or(1)
    }
}

/// Reads the records of flows toward a prefix, or all.
pub(super) fn read(
    path: &Path,
    enterprise: u32,
    toward: Option<Prefix>,
) -> anyhow::Result<PointRecords> {
    let mut reader = FlowReader::new(enterprise);
    let mut records = Vec::new();
    let mut skipped = BTreeMap::new();
    let mut refused = 0;
    let mut partial = read_records(path, &mut reader, &mut |read| {
        let record = read.record;
        if toward.is_some_and(|prefix| !prefix.contains(record.key.destination)) {
            *skipped.entry("wrong-direction".to_owned()).or_default() += 1;
        } else if records.len() == RECORDS_MAX {
            refused += 1;
        } else {
            records.push(record);
        }
    })?;
    note_troubles(&path.display().to_string(), &reader);
    if refused > 0 {
        let (refused, most) = (units::count(refused), units::count(RECORDS_MAX as u64));
        note(format_args!("{}: {refused} records beyond {most} are left out", path.display()));
        partial = true;
    }
    skipped.extend(
        reader.counts().all_unusable().map(|(reason, count)| (reason.name().to_owned(), count)),
    );
    let packets = records.iter().map(|record: &FlowRecord| record.packets).sum();
    let rate = reader.selectors().iter().find_map(|(_, _, notice)| notice.rate());
    Ok(PointRecords {
        records,
        counts: PointCounts { packets, skipped, dropped: None },
        rate,
        partial,
    })
}
