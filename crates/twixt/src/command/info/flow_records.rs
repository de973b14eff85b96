//! What is in a file of flow records.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use twixt_flow::{FlowReader, ReadRecord};
use twixt_model::{Span, Timestamp};

use crate::exit::Exit;
use crate::flow_record_input;
use crate::output::{self, Format, units};

pub(super) fn run(path: &Path, format: Format) -> anyhow::Result<Exit> {
    let mut reader = FlowReader::default();
    let mut content = Content::default();
    let partial =
        flow_record_input::read_records(path, &mut reader, &mut |read| content.add(read))?;
    let document = RecordsDocument::new(path, &reader, &content);
    match format {
        Format::Json => output::json(&document)?,
        _ => output::text(&document.report())?,
    }
    Ok(Exit::Done.or_partial(partial))
}

/// What was found so far.
#[derive(Default)]
struct Content {
    span: Option<Span>,
    packets: u64,
    bytes: u64,
    labelled: u64,
    resolution_ns: Option<u64>,
}

impl Content {
    fn add(&mut self, read: &ReadRecord) {
        let record = &read.record;
        let span = Span { start: record.first, end: record.last };
        self.span = Some(self.span.map_or(span, |before| before.union(span)));
        self.packets = self.packets.saturating_add(record.packets);
        self.bytes = self.bytes.saturating_add(record.bytes);
        self.labelled += u64::from(record.first_label.is_some());
        self.resolution_ns = self.resolution_ns.max(Some(record.resolution_ns));
    }
}

/// `twixt info -F json` of a file of flow records.
#[derive(Serialize)]
struct RecordsDocument {
    file: String,
    format: &'static str,
    messages: u64,
    records: u64,
    options_records: u64,
    templates: u64,
    labelled: u64,
    packets: u64,
    bytes: u64,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
    /// Of the coarsest times.
    resolution_ns: Option<u64>,
    selection_rates: Vec<f64>,
    unusable: BTreeMap<&'static str, u64>,
    troubles: BTreeMap<&'static str, u64>,
}

impl RecordsDocument {
    fn new(path: &Path, reader: &FlowReader, content: &Content) -> Self {
        let counts = reader.counts();
        let unusable = counts.all_unusable().map(|(reason, count)| (reason.name(), count));
        Self {
            file: path.display().to_string(),
            format: "ipfix",
            messages: counts.messages,
            records: counts.records,
            options_records: counts.options_records,
            templates: counts.templates + counts.templates_changed,
            labelled: content.labelled,
            packets: content.packets,
            bytes: content.bytes,
            start_ns: content.span.map(|span| span.start.as_nanos()),
            end_ns: content.span.map(|span| span.end.as_nanos()),
            resolution_ns: content.resolution_ns,
            selection_rates: reader
                .selectors()
                .iter()
                .filter_map(|(_, _, notice)| notice.rate())
                .collect(),
            unusable: unusable.collect(),
            troubles: counts.troubles().collect(),
        }
    }

    fn report(&self) -> String {
        let mut lines = vec![
            ("file", self.file.clone()),
            ("format", format!("IPFIX, {} messages", units::count(self.messages))),
            (
                "records",
                format!("{}, {} labelled", units::count(self.records), units::count(self.labelled)),
            ),
            ("packets", format!("{}, {}", units::count(self.packets), units::bytes(self.bytes))),
        ];
        if let (Some(start), Some(end)) = (self.start_ns, self.end_ns) {
            let length = units::duration(end.saturating_sub(start) as f64);
            let start = units::moment(Timestamp::from_nanos(start));
            lines.push(("time", format!("{length} from {start} UTC")));
        }
        lines.extend(
            self.resolution_ns.map(|resolution| ("resolution", units::duration(resolution as f64))),
        );
        lines.extend(
            self.selection_rates
                .iter()
                .map(|&rate| ("selection", format!("{} of packets", units::percent(rate)))),
        );
        let counted = |(name, count): (&&str, &u64)| format!("{} {name}", units::count(*count));
        lines.extend(self.unusable.iter().map(|entry| ("not usable", counted(entry))));
        lines.extend(self.troubles.iter().map(|entry| ("trouble", counted(entry))));
        lines.iter().map(|(name, value)| format!("{name:<11}{value}\n")).collect()
    }
}
