//! `twixt flow export`: a capture into flow records.

use std::path::PathBuf;

use clap::ValueEnum;
use twixt_capture::BatchEnd;
use twixt_flow::{EXAMPLE_ENTERPRISE, FlowWriter, TimeUnit, WriterConfig};
use twixt_sim::quantity::Nanoseconds;
use twixt_synopsis::{FlowCache, FlowCacheConfig};
use twixt_wire::{SelectionCounts, SelectionFunction, Selector, SelectorInput, SkipCounts, Wanted};

use super::metering::{Metering, Select};
use super::send::Outlet;
use crate::args::{DigestArgs, TrafficArgs};
use crate::exit::{Exit, no_answer, note, usage};
use crate::input::Capture;
use crate::output::units;
use crate::progress::Progress;
use crate::settings::Settings;

/// Meter a capture into flow records, and write or send them as IPFIX
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Capture to read; - is standard input
    #[arg(short = 'r', long = "read", value_name = "FILE")]
    read: PathBuf,
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
    /// Stop after so many packets
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
}

/// What is metered, and when records end.
#[derive(clap::Args)]
#[command(next_help_heading = "Metering")]
struct MeterArgs {
    /// Meter this part of the packets or flows, chosen by a hash: the same ones at every point
    #[arg(long, value_name = "RATE", default_value_t = 1.0)]
    sampling: f64,
    /// What is chosen: packet or flow
    #[arg(long, value_enum, default_value_t)]
    select: Select,
    /// The hash that chooses: keyed, or bob, ipsx, crc32 as other meters have them
    #[arg(long, value_name = "NAME", default_value = "keyed")]
    select_hash: SelectionFunction,
    /// Where the hash starts
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    select_initialiser: u32,
    /// Close records that are this old
    #[arg(long, value_name = "DURATION", default_value = "30m")]
    active_timeout: Nanoseconds,
    /// Close records without a packet for so long
    #[arg(long, value_name = "DURATION", default_value = "15s")]
    inactive_timeout: Nanoseconds,
    /// Flows that are open at once; the idlest makes room
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
    times: Times,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Times {
    #[default]
    Nano,
    Micro,
    Milli,
}

impl Args {
    /// Takes from the configuration file what the command line left out.
    pub(super) fn with(self, settings: &Settings) -> Self {
        Self { traffic: self.traffic.with(settings), digest: self.digest.with(settings), ..self }
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
            time_unit: match self.format.times {
                Times::Nano => None,
                Times::Micro => Some(TimeUnit::Microseconds),
                Times::Milli => Some(TimeUnit::Milliseconds),
            },
            ..carrier
        };
        Ok(FlowWriter::new(config)?)
    }

    fn metering(&self) -> anyhow::Result<Metering> {
        let MeterArgs { sampling, select, select_hash, select_initialiser, .. } = self.meter;
        let input = SelectorInput { initialiser: select_initialiser, ..SelectorInput::default() };
        let selector = Selector::at_rate(select_hash, sampling, input)
            .map_err(|error| usage(error.to_string()))?;
        if select == Select::Flow && select_hash == SelectionFunction::Ipsx {
            return Err(usage("ipsx chooses packets only: use --select-hash bob or keyed"));
        }
        let wanted = Wanted { digest: true, flow: select == Select::Flow, detail: true };
        let digester = self.digest.digester(self.digest.recognition());
        let timeout = |length: Nanoseconds| length.0.max(1) as u64;
        Ok(Metering {
            observer: self.traffic.observer(wanted, digester)?,
            cache: FlowCache::new(FlowCacheConfig {
                active_timeout_ns: timeout(self.meter.active_timeout),
                inactive_timeout_ns: timeout(self.meter.inactive_timeout),
                entries_max: self.meter.entries,
            }),
            selector,
            select,
            selection: SelectionCounts::default(),
            toward: self.traffic.toward,
            most: self.count.unwrap_or(u64::MAX),
            skipped: SkipCounts::default(),
            now: None,
        })
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let mut metering = args.metering()?;
    let mut capture = Capture::open(&args.read)?;
    let mut export = Export {
        writer: args.writer(metering.observer.class_names().count() > 1)?,
        outlet: args.outlet()?,
        records: 0,
        refused: 0,
    };
    let progress = Progress::new(capture.size_bytes());
    loop {
        let end = capture.read_batch(&progress, |frame| metering.take(&frame));
        export.records_of(&mut metering)?;
        if end == BatchEnd::End || metering.most == 0 {
            break;
        }
    }
    drop(progress);
    metering.cache.finish();
    export.records_of(&mut metering)?;
    export.selector_of(&metering)?;
    let (records, refused) = export.finish()?;
    let partial = capture.note_ending(&args.read);
    conclude(args, &metering, records, refused)?;
    Ok(Exit::Done.or_partial(partial || refused > 0))
}

fn conclude(args: &Args, metering: &Metering, records: u64, refused: u64) -> anyhow::Result<()> {
    if records == 0 {
        return Err(no_answer(format!("{}: no flow to export", args.read.display())));
    }
    let selection = &metering.selection;
    if let Some(rate) = selection.achieved_rate()
        && metering.selector.rate() < 1.0
    {
        let (asked, achieved) = (units::percent(metering.selector.rate()), units::percent(rate));
        note(format_args!("{achieved} of packets were metered, {asked} were asked for"));
    }
    if selection.undefined > 0 {
        let packets = units::count(selection.undefined);
        let function = metering.selector.function();
        note(format_args!("{packets} packets have no {function} hash and were not metered"));
    }
    let skipped: Vec<String> = metering
        .skipped
        .iter()
        .map(|(skip, frames)| format!("{} {skip}", units::count(frames)))
        .collect();
    if !skipped.is_empty() {
        note(format_args!("skipped: {}", skipped.join(", ")));
    }
    let counts = metering.cache.counts();
    if counts.evicted > 0 {
        let flows = units::count(counts.evicted);
        note(format_args!("{flows} records ended early for want of room: use --entries"));
    }
    if refused > 0 {
        let records = units::count(refused);
        note(format_args!("{records} records have times that IPFIX cannot say; they are left out"));
    }
    let (packets, records) = (units::count(counts.packets), units::count(records));
    note(format_args!("{packets} packets in {records} records"));
    Ok(())
}

/// From records to messages.
struct Export {
    writer: FlowWriter,
    outlet: Outlet,
    records: u64,
    /// Records that could not be written.
    refused: u64,
}

impl Export {
    fn records_of(&mut self, metering: &mut Metering) -> anyhow::Result<()> {
        let Some(now) = metering.now else { return Ok(()) };
        metering.cache.advance(now);
        while let Some(record) = metering.cache.poll() {
            match self.writer.record(&record, now) {
                Ok(()) => self.records += 1,
                Err(_) => self.refused += 1,
            }
            self.send()?;
        }
        Ok(())
    }

    /// Last, when the achieved rate is known.
    fn selector_of(&mut self, metering: &Metering) -> anyhow::Result<()> {
        if let (Some(notice), Some(now)) = (metering.notice(), metering.now) {
            self.writer.selector(&notice, now)?;
        }
        Ok(())
    }

    fn send(&mut self) -> anyhow::Result<()> {
        while let Some(message) = self.writer.poll() {
            self.outlet.send(&message)?;
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
