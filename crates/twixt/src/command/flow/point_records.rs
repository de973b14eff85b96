//! The flow records of one point, as they come out of a file or a pipe.

use std::collections::BTreeMap;
use std::path::Path;

use twixt_flow::FlowReader;
use twixt_model::{FlowRecord, Prefix, Span};
use twixt_observe::PathCounts;

use crate::flow_record_input::{RecordSource, note_troubles};

/// A point whose records are being read. None are kept here.
pub(super) struct PointRecords {
    source: RecordSource,
    reader: FlowReader,
    /// Only records of flows toward this prefix count.
    toward: Option<Prefix>,
    name: String,
    wrong_direction: u64,
    packets: u64,
    /// Records so far.
    pub(super) records: u64,
    /// Those without a label of their first or last packet.
    pub(super) unlabelled: u64,
    /// The coarsest of all so far.
    pub(super) resolution_ns: u64,
    /// From the first to the last packet of all.
    pub(super) span: Option<Span>,
}

impl PointRecords {
    /// Opens a file of records; `-` is standard input.
    pub(super) fn open(
        path: &Path,
        enterprise: u32,
        toward: Option<Prefix>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            source: RecordSource::open(path)?,
            reader: FlowReader::new(enterprise),
            toward,
            name: path.display().to_string(),
            wrong_direction: 0,
            packets: 0,
            records: 0,
            unlabelled: 0,
            resolution_ns: 1,
            span: None,
        })
    }

    /// Hands over the next records. Returns whether there may be more.
    pub(super) fn read(&mut self, mut each: impl FnMut(FlowRecord)) -> anyhow::Result<bool> {
        let Self { source, reader, toward, .. } = self;
        let (mut wrong_direction, mut records) = (0, Vec::new());
        let more = source.read_batch(reader, &mut |read| {
            let record = read.record;
            match toward.is_some_and(|prefix| !prefix.contains(record.key.destination)) {
                true => wrong_direction += 1,
                false => records.push(record),
            }
        })?;
        self.wrong_direction += wrong_direction;
        for record in records {
            self.count(&record);
            each(record);
        }
        Ok(more)
    }

    /// The share of packets that was metered, as far as announced by the exporter.
    pub(super) fn rate(&self) -> Option<f64> {
        self.reader.selectors().iter().find_map(|(_, _, notice)| notice.rate())
    }

    /// Says what was wrong; whether a part was unusable.
    pub(super) fn note_problems(&self) -> bool {
        note_troubles(&self.name, &self.reader);
        self.source.note_ending() | (self.reader.counts().malformed > 0)
    }

    /// What the point contributed.
    pub(super) fn counts(&self) -> PathCounts {
        let unusable = self.reader.counts().all_unusable();
        let mut skipped: BTreeMap<String, u64> =
            unusable.map(|(reason, count)| (reason.name().to_owned(), count)).collect();
        if self.wrong_direction > 0 {
            skipped.insert("wrong-direction".to_owned(), self.wrong_direction);
        }
        PathCounts { packets: self.packets, skipped, dropped: None }
    }

    fn count(&mut self, record: &FlowRecord) {
        self.records += 1;
        self.packets = self.packets.saturating_add(record.packets);
        let is_labelled = record.first_label.is_some() && record.last_label.is_some();
        self.unlabelled += u64::from(!is_labelled);
        self.resolution_ns = self.resolution_ns.max(record.resolution_ns);
        let span = Span { start: record.first, end: record.last };
        self.span = Some(self.span.map_or(span, |before| before.union(span)));
    }
}
