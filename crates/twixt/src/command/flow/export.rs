//! `twixt flow export`: a capture or an interface into flow records.

use std::path::PathBuf;

use clap::ValueEnum;
use twixt_capture::Frame;
use twixt_flow::{EXAMPLE_ENTERPRISE, FlowWriter, TimeUnit, WriterConfig};
use twixt_model::Needs;
use twixt_model::quantity::Nanoseconds;
use twixt_observe::{PacketPath, PathCounts};
use twixt_synopsis::{FlowCache, FlowCacheConfig};
use twixt_wire::{SelectionCounts, SelectionFunction, Selector, SelectorInput};

use super::metering::{Metering, SelectArg};
use super::send::Outlet;
use crate::args::{DigestArgs, TrafficArgs};
use crate::configuration::Configuration;
use crate::exit::{Exit, note, usage};
use crate::frame_input::{OnePass, SoFar, SourceArgs};
use crate::output::units;

/// Meter a capture or an interface into flow records, and write or send them as IPFIX
#[derive(clap::Args)]
pub(crate) struct Args {
    /// IPFIX file to write; - is standard output
    #[arg(short = 'w', long = "write", value_name = "FILE", required_unless_present = "to")]
    write: Option<PathBuf>,
    /// Collector to send to
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "write")]
    to: Option<String>,
    /// Send datagrams, the default
    #[arg(long, requires = "to", conflicts_with = "tcp")]
    udp: bool,
    /// Send over a connection
    #[arg(long, requires = "to")]
    tcp: bool,
    /// Stop after this many packets
    #[arg(short = 'c', long = "count", value_name = "COUNT")]
    count: Option<u64>,
    #[command(flatten)]
    meter: MeterArgs,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    traffic: TrafficArgs,
    #[command(flatten)]
    digest: DigestArgs,
    #[command(flatten)]
    source: SourceArgs,
}

/// What is metered, and when records end.
#[derive(clap::Args)]
#[command(next_help_heading = "Metering")]
struct MeterArgs {
    /// Meter this share of the packets or flows, selected by a hash: the same ones at every point
    #[arg(long, value_name = "RATE", default_value_t = 1.0)]
    sampling: f64,
    /// What is selected: packet or flow
    #[arg(long, value_enum, default_value_t)]
    select: SelectArg,
    /// The hash that selects: keyed, or bob, ipsx, crc32 for other meters
    #[arg(long, value_name = "NAME", default_value = "keyed")]
    select_hash: SelectionFunction,
    /// Initial value of the hash
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    select_initialiser: u32,
    /// Close records that are this old
    #[arg(long, value_name = "DURATION", default_value = "30m")]
    active_timeout: Nanoseconds,
    /// Close records without a packet for this long
    #[arg(long, value_name = "DURATION", default_value = "15s")]
    inactive_timeout: Nanoseconds,
    /// Flows open at once; beyond that, the one idle for longest is closed
    #[arg(long, value_name = "N", default_value_t = FlowCacheConfig::DEFAULT.entries_max)]
    entries: u32,
}

/// How records are written.
#[derive(clap::Args)]
#[command(next_help_heading = "Records")]
struct FormatArgs {
    /// Observation domain
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    domain: u32,
    /// Number of the observation point, in every record
    #[arg(long, value_name = "NUMBER")]
    point: Option<u32>,
    /// Enterprise number of twixt's own elements
    #[arg(long, value_name = "NUMBER", default_value_t = EXAMPLE_ENTERPRISE,
          value_parser = clap::value_parser!(u32).range(1..))]
    enterprise: u32,
    /// Write times no finer than this: nano, micro or milli
    #[arg(long, value_enum, default_value_t)]
    time_unit: TimeUnitArg,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum TimeUnitArg {
    #[default]
    Nano,
    Micro,
    Milli,
}

impl Args {
    /// Takes from the configuration file what the command line left out.
    pub(super) fn with(self, configuration: &Configuration) -> Self {
        Self {
            traffic: self.traffic.with(configuration),
            digest: self.digest.with(configuration),
            ..self
        }
    }

    fn outlet(&self) -> anyhow::Result<Outlet> {
        match (&self.write, &self.to) {
            (Some(path), _) => Outlet::file(path),
            (None, Some(collector)) if self.tcp => Outlet::tcp(collector),
            (None, Some(collector)) => Outlet::udp(collector),
            (None, None) => unreachable!("clap requires one of the two"),
        }
    }

    fn writer(&self, classes: bool) -> anyhow::Result<FlowWriter> {
        let datagrams = self.to.is_some() && !self.tcp;
        let carrier = if datagrams { WriterConfig::UDP } else { WriterConfig::STREAM };
        let config = WriterConfig {
            domain: self.format.domain,
            enterprise: self.format.enterprise,
            observation_point: self.format.point,
            classes,
            time_unit: match self.format.time_unit {
                TimeUnitArg::Nano => None,
                TimeUnitArg::Micro => Some(TimeUnit::Microseconds),
                TimeUnitArg::Milli => Some(TimeUnit::Milliseconds),
            },
            ..carrier
        };
        Ok(FlowWriter::new(config)?)
    }

    fn path(&self) -> anyhow::Result<PacketPath<Metering>> {
        let MeterArgs { sampling, select, select_hash, select_initialiser, .. } = self.meter;
        let input = SelectorInput { initialiser: select_initialiser, ..SelectorInput::default() };
        let selector = Selector::at_rate(select_hash, sampling, input)
            .map_err(|error| usage(error.to_string()))?;
        if select == SelectArg::Flow && select_hash == SelectionFunction::Ipsx {
            return Err(usage("ipsx selects packets only: use --select-hash bob or keyed"));
        }
        let needs = Needs {
            digest: true,
            flow: select == SelectArg::Flow,
            detail: true,
            group: false,
            exchange: false,
        };
        let digester = self.digest.digester();
        let timeout = |length: Nanoseconds| length.0.max(1) as u64;
        let observer = self.traffic.observer(needs, digester)?;
        let metering = Metering {
            cache: FlowCache::new(FlowCacheConfig {
                active_timeout_ns: timeout(self.meter.active_timeout),
                inactive_timeout_ns: timeout(self.meter.inactive_timeout),
                entries_max: self.meter.entries,
            }),
            selector,
            select,
            selection: SelectionCounts::default(),
            now: None,
        };
        let path = PacketPath::new(observer, metering);
        let path = path.toward(self.traffic.toward).within(self.traffic.within()?);
        Ok(path.at_most(self.count))
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let path = args.path()?;
    let mut source = args.source.open()?;
    let mut exporting = Exporting {
        export: Export {
            writer: args.writer(path.observer().class_names().count() > 1)?,
            outlet: args.outlet()?,
            key_id: path.observer().digester().identity().key_id,
            records: 0,
            refused: 0,
            messages_since_selector: None,
        },
        path,
        is_live: args.source.live.is_given(),
    };
    source.read(&mut exporting)?;
    let Exporting { path, mut export, .. } = exporting;
    let (name, counts) = (source.name(), path.counts(source.counts()));
    let mut metering = path.into_sink();
    metering.cache.finish();
    export.records_of(&mut metering)?;
    export.selector_of(&metering)?;
    let (records, refused) = export.finish()?;
    let exit = source.conclude(Exit::Done);
    if records == 0 {
        return exit.without_answer(format!("{name}: no flow to export"));
    }
    conclude(&metering, &counts, records, refused);
    Ok(exit.or_partial(refused > 0))
}

fn conclude(metering: &Metering, counts: &PathCounts, records: u64, refused: u64) {
    let selection = &metering.selection;
    if let Some(rate) = selection.achieved_rate()
        && metering.selector.rate() < 1.0
    {
        let (asked, achieved) = (units::percent(metering.selector.rate()), units::percent(rate));
        note(format_args!("{achieved} of packets were metered, {asked} were requested"));
    }
    if selection.undefined > 0 {
        let packets = units::count(selection.undefined);
        let function = metering.selector.function();
        note(format_args!("{packets} packets have no {function} hash and were not metered"));
    }
    let skipped: Vec<String> = counts
        .skipped
        .iter()
        .map(|(reason, frames)| format!("{} {reason}", units::count(*frames)))
        .collect();
    if !skipped.is_empty() {
        note(format_args!("skipped: {}", skipped.join(", ")));
    }
    let cached = metering.cache.counts();
    if cached.evicted > 0 {
        let flows = units::count(cached.evicted);
        note(format_args!(
            "{flows} records were closed early because the table was full: use a \
             larger --entries"
        ));
    }
    if refused > 0 {
        let records = units::count(refused);
        note(format_args!(
            "{records} records have times that IPFIX cannot represent; they are left out"
        ));
    }
    let (packets, records) = (units::count(cached.packets), units::count(records));
    note(format_args!("{packets} packets in {records} records"));
}

/// From frames to messages.
struct Exporting {
    path: PacketPath<Metering>,
    export: Export,
    /// Collectors want to know now, not when a message is full.
    is_live: bool,
}

impl OnePass for Exporting {
    fn take(&mut self, frame: &Frame<'_>) {
        self.path.take(frame);
    }

    fn has_enough(&self) -> bool {
        self.path.has_enough()
    }

    fn end_batch(&mut self, so_far: &SoFar) -> anyhow::Result<()> {
        if let Some(time) = so_far.silent_until {
            self.path.sink_mut().advance(time);
        }
        self.export.records_of(self.path.sink_mut())?;
        if self.is_live {
            self.export.writer.finish();
            self.export.send()?;
        }
        Ok(())
    }
}

/// From records to messages.
struct Export {
    writer: FlowWriter,
    outlet: Outlet,
    /// Of the digests by which packets are chosen.
    key_id: u32,
    records: u64,
    /// Records that could not be written.
    refused: u64,
    /// Messages since the selection was last announced; `None` if never.
    messages_since_selector: Option<u32>,
}

/// Datagrams may be lost: the selection is announced this often.
const SELECTOR_MESSAGES: u32 = 20;

impl Export {
    fn records_of(&mut self, metering: &mut Metering) -> anyhow::Result<()> {
        let Some(now) = metering.now else { return Ok(()) };
        metering.cache.advance(now);
        self.selector_again(metering)?;
        while let Some(record) = metering.cache.poll() {
            match self.writer.record(&record, now) {
                Ok(()) => self.records += 1,
                Err(_) => self.refused += 1,
            }
            self.send()?;
        }
        Ok(())
    }

    /// Before the first record, and again where messages may be lost: readers of records need
    /// to know what they stand for.
    fn selector_again(&mut self, metering: &Metering) -> anyhow::Result<()> {
        let is_due = match self.messages_since_selector {
            None => true,
            Some(messages) => self.outlet.may_lose() && messages >= SELECTOR_MESSAGES,
        };
        if is_due {
            self.selector_of(metering)?;
        }
        Ok(())
    }

    /// As achieved so far; last, when that is known for good.
    fn selector_of(&mut self, metering: &Metering) -> anyhow::Result<()> {
        if let (Some(notice), Some(now)) = (metering.notice(self.key_id), metering.now) {
            self.writer.selector(&notice, now)?;
            self.messages_since_selector = Some(0);
        }
        Ok(())
    }

    fn send(&mut self) -> anyhow::Result<()> {
        while let Some(message) = self.writer.poll() {
            self.outlet.send(&message)?;
            self.messages_since_selector = self.messages_since_selector.map(|sent| sent + 1);
        }
        Ok(())
    }

    /// Sends what is left. Returns how many records were written, and how many could not be.
    fn finish(mut self) -> anyhow::Result<(u64, u64)> {
        self.writer.finish();
        self.send()?;
        self.outlet.finish()?;
        Ok((self.records, self.refused))
    }
}
