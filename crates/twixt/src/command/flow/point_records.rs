//! The flow records of one point, as they come out of a file or a pipe.

use std::collections::BTreeMap;
use std::path::Path;

use twixt_flow::FlowReader;
use twixt_measure::survey::{Heading, Verdicts};
use twixt_model::{FlowRecord, Prefix, Span};
use twixt_observe::PathCounts;
use twixt_wire::Skip;

use super::direction::{FlowHashes, RecordSurvey};
use crate::flow_record_input::{RecordSource, note_troubles};

/// Which records of a point count.
pub(super) enum Selection {
    /// Those of flows toward a prefix.
    Toward(Prefix),
    /// Those of flows that go downstream.
    Going(Verdicts, FlowHashes),
    /// All, until it is known which way flows go.
    Surveyed(RecordSurvey),
}

/// A point whose records are being read. None are kept here.
pub(super) struct PointRecords {
    source: RecordSource,
    reader: FlowReader,
    selection: Selection,
    name: String,
    wrong_direction: u64,
    direction_unknown: u64,
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

impl Selection {
    /// Which way a record goes; `None` if that is not known.
    fn heading(&mut self, record: &FlowRecord) -> Option<Heading> {
        match self {
            Self::Toward(prefix) if prefix.contains(record.key.destination) => {
                Some(Heading::Downstream)
            }
            Self::Toward(_) => Some(Heading::Upstream),
            Self::Going(verdicts, flows) => flows.heading(verdicts, &record.key),
            Self::Surveyed(survey) => {
                survey.note(record);
                Some(Heading::Downstream)
            }
        }
    }
}

impl PointRecords {
    /// Opens a file of records; `-` is standard input.
    pub(super) fn open(path: &Path, enterprise: u32, selection: Selection) -> anyhow::Result<Self> {
        Ok(Self {
            source: RecordSource::open(path)?,
            reader: FlowReader::new(enterprise),
            selection,
            name: path.display().to_string(),
            wrong_direction: 0,
            direction_unknown: 0,
            packets: 0,
            records: 0,
            unlabelled: 0,
            resolution_ns: 1,
            span: None,
        })
    }

    /// Hands over the next records. Returns whether there may be more.
    pub(super) fn read(&mut self, mut each: impl FnMut(FlowRecord)) -> anyhow::Result<bool> {
        let Self { source, reader, selection, .. } = self;
        let (mut wrong_direction, mut direction_unknown, mut records) = (0, 0, Vec::new());
        let more =
            source.read_batch(reader, &mut |read| match selection.heading(&read.record) {
                Some(Heading::Downstream) => records.push(read.record),
                Some(Heading::Upstream) => wrong_direction += 1,
                None => direction_unknown += 1,
            })?;
        self.wrong_direction += wrong_direction;
        self.direction_unknown += direction_unknown;
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
        let directions = [
            (Skip::WrongDirection, self.wrong_direction),
            (Skip::DirectionUnknown, self.direction_unknown),
        ];
        let directions = directions.into_iter().filter(|(_, count)| *count > 0);
        skipped.extend(directions.map(|(skip, count)| (skip.name().to_owned(), count)));
        PathCounts { packets: self.packets, skipped, dropped: None }
    }

    /// What was noted of the records, where all of them count so far.
    pub(super) const fn survey(&self) -> Option<&RecordSurvey> {
        match &self.selection {
            Selection::Surveyed(survey) => Some(survey),
            Selection::Toward(_) | Selection::Going(..) => None,
        }
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
