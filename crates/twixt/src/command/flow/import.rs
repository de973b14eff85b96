//! `twixt flow import`: which flow records a file or an exporter has.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use twixt_flow::{EXAMPLE_ENTERPRISE, FlowReader, ReadRecord};
use twixt_model::quantity::Nanoseconds;
use twixt_model::{Span, Timestamp};

use super::document::{RecordDocument, SelectorDocument};
use super::listen::{self, Listen};
use crate::exit::{Exit, no_answer, note};
use crate::flow_record_input;
use crate::output::{self, Format, ROWS_DEFAULT, RowWriter, Table, units};

/// Records of one JSON document at most; JSON lines and CSV have no bound.
const RECORDS_MAX: usize = 1 << 20;

/// Read flow records, from files or as exporters send them
#[derive(clap::Args)]
pub(crate) struct Args {
    /// IPFIX files, or captures of export traffic
    #[arg(value_name = "FILE", required_unless_present = "listen")]
    files: Vec<PathBuf>,
    /// Receive from exporters: udp:PORT or tcp:PORT, or with an address, udp:ADDRESS:PORT
    #[arg(long, value_name = "WHERE", conflicts_with = "files")]
    listen: Option<Listen>,
    /// Stop listening after this time
    #[arg(long = "for", value_name = "DURATION", requires = "listen")]
    listen_for: Option<Nanoseconds>,
    /// Stop after this many records
    #[arg(short = 'c', long = "count", value_name = "COUNT")]
    count: Option<u64>,
    /// Enterprise number under which twixt wrote its own elements
    #[arg(long, value_name = "NUMBER", default_value_t = EXAMPLE_ENTERPRISE)]
    enterprise: u32,
    /// Output format: human, json, jsonl or csv
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let mut reader = FlowReader::new(args.enterprise);
    let mut taking = RecordPrinter::new(args.format, args.count.unwrap_or(u64::MAX));
    let mut partial = false;
    match &args.listen {
        Some(listen) => {
            let wanted =
                |taking: &RecordPrinter| taking.taken < taking.most && taking.problem.is_none();
            listen::receive(listen, args.listen_for, |exporter, message| {
                let _ = reader.message(exporter, message, &mut |read| taking.take(read));
                taking.flush();
                wanted(&taking)
            })?;
        }
        None => {
            for path in &args.files {
                partial |= flow_record_input::read_records(path, &mut reader, &mut |read| {
                    taking.take(read);
                })?;
            }
        }
    }
    let name = if args.listen.is_some() { "exports" } else { "records" };
    flow_record_input::note_troubles(name, &reader);
    taking.finish(&reader)?;
    if reader.counts().messages == 0 {
        return Err(no_answer("no flow export was found"));
    }
    Ok(Exit::Done.or_partial(partial))
}

/// What becomes of records.
struct RecordPrinter {
    format: Format,
    most: u64,
    taken: u64,
    kept: Vec<RecordDocument>,
    refused: u64,
    span: Option<Span>,
    packets: u64,
    bytes: u64,
    formats: BTreeMap<&'static str, u64>,
    resolutions_ns: BTreeMap<u64, u64>,
    out: RowWriter,
    /// Why no more can be written.
    problem: Option<anyhow::Error>,
}

impl RecordPrinter {
    fn new(format: Format, most: u64) -> Self {
        Self {
            format,
            most,
            taken: 0,
            kept: Vec::new(),
            refused: 0,
            span: None,
            packets: 0,
            bytes: 0,
            formats: BTreeMap::new(),
            resolutions_ns: BTreeMap::new(),
            out: RowWriter::new(format),
            problem: None,
        }
    }

    fn take(&mut self, read: &ReadRecord) {
        if self.taken >= self.most || self.problem.is_some() {
            return;
        }
        self.taken += 1;
        let record = &read.record;
        let span = Span { start: record.first, end: record.last };
        self.span = Some(self.span.map_or(span, |before| before.union(span)));
        self.packets = self.packets.saturating_add(record.packets);
        self.bytes = self.bytes.saturating_add(record.bytes);
        *self.formats.entry(read.protocol.name()).or_default() += 1;
        if self.resolutions_ns.len() < 16 || self.resolutions_ns.contains_key(&record.resolution_ns)
        {
            *self.resolutions_ns.entry(record.resolution_ns).or_default() += 1;
        }
        let document = RecordDocument::from(read);
        match self.format {
            Format::Jsonl | Format::Csv => self.problem = self.out.write(&document).err(),
            Format::Json if self.kept.len() < RECORDS_MAX => self.kept.push(document),
            Format::Human if self.kept.len() < ROWS_DEFAULT => self.kept.push(document),
            Format::Json | Format::Human => self.refused += 1,
        }
    }

    /// Lets those who read along see what came.
    fn flush(&mut self) {
        if let Err(error) = self.out.flush() {
            self.problem = Some(error);
        }
    }

    fn finish(mut self, reader: &FlowReader) -> anyhow::Result<()> {
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        self.out.flush()?;
        match self.format {
            Format::Human => output::text(&self.report(reader)),
            Format::Json => {
                if self.refused > 0 {
                    let records = units::count(self.refused);
                    note(format_args!(
                        "{records} records exceed the limit of one document: use -F jsonl"
                    ));
                }
                output::json(&self.document(reader))
            }
            Format::Jsonl | Format::Csv => Ok(()),
        }
    }

    fn document(&self, reader: &FlowReader) -> ImportDocument<'_> {
        let counts = reader.counts();
        let unusable = counts.all_unusable().map(|(reason, count)| (reason.name(), count));
        ImportDocument {
            messages: counts.messages,
            templates: counts.templates + counts.templates_changed,
            missing: counts.missing,
            unusable: unusable.collect(),
            troubles: counts.troubles().collect(),
            selectors: reader.selectors().iter().map(|(_, _, notice)| notice.into()).collect(),
            complete: self.refused == 0,
            records: &self.kept,
        }
    }

    fn report(&self, reader: &FlowReader) -> String {
        let mut report = String::new();
        let mut line = |name: &str, value: String| report += &format!("{name:<11} {value}\n");
        let formats: Vec<String> = self.formats.keys().map(|name| (*name).to_owned()).collect();
        line("records", format!("{} ({})", units::count(self.taken), formats.join(", ")));
        line("packets", format!("{}, {}", units::count(self.packets), units::bytes(self.bytes)));
        if let Some(span) = self.span {
            let length = units::duration((span.end - span.start).as_nanos() as f64);
            line("time", format!("{length} from {} UTC", units::moment(span.start)));
        }
        for (&resolution_ns, &records) in &self.resolutions_ns {
            let resolution = units::duration(resolution_ns as f64);
            line("resolution", format!("{resolution} in {} records", units::count(records)));
        }
        for (_, _, notice) in reader.selectors() {
            let rate = notice.rate().map_or("unknown".to_owned(), units::percent);
            line("selection", format!("selector {}: {rate} of packets", notice.selector_id));
        }
        report + "\n" + &self.table()
    }

    fn table(&self) -> String {
        let mut table = Table::new(&["flow", "first (UTC)", "duration", "packets", "bytes", "end"]);
        for record in &self.kept {
            let first = Timestamp::from_nanos(record.first_ns);
            table.row(vec![
                record.scope.clone(),
                units::moment(first),
                units::duration(record.last_ns.saturating_sub(record.first_ns) as f64),
                units::count(record.packets),
                units::bytes(record.bytes),
                record.end.unwrap_or("–").to_owned(),
            ]);
        }
        let more = match self.refused {
            0 => String::new(),
            records => format!("… and {} more\n", units::count(records)),
        };
        format!("{table}{more}")
    }
}

/// `twixt flow import -F json`.
#[derive(Serialize)]
struct ImportDocument<'a> {
    messages: u64,
    templates: u64,
    missing: u64,
    unusable: BTreeMap<&'static str, u64>,
    troubles: BTreeMap<&'static str, u64>,
    selectors: Vec<SelectorDocument>,
    complete: bool,
    records: &'a [RecordDocument],
}
