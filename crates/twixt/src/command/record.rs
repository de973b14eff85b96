//! `twixt record`: one point, one pass, into an epoch file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use twixt_capture::{BatchEnd, Frame};
use twixt_measure::{Cutting, FILE_HEADER, frame_record};
use twixt_model::{Delay, EpochRule, PointId, Prefix};
use twixt_synopsis::By;
use twixt_wire::{LinkType, Observer, PAYLOAD_BYTES_MAX, Skip, SkipCounts};

use crate::args::{AlgorithmArgs, Cut, DigestArgs, EpochLength, FlowList, Split, TrafficArgs};
use crate::exit::{Exit, no_answer, note, usage};
use crate::input::{self, Capture};
use crate::measure::{Meters, Plan, Setting, is_timeless, marker_in};
use crate::output::units;
use crate::progress::Progress;
use crate::settings::Settings;

/// One point, one pass: a capture into an epoch file, for `delay` and `info`
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Capture to read; - is standard input
    #[arg(short = 'r', long = "read", value_name = "FILE")]
    read: PathBuf,
    /// Epoch file to write; - is standard output
    #[arg(short = 'w', long = "write", value_name = "FILE")]
    write: PathBuf,
    /// Name of the observation point [default: the capture's name]
    #[arg(long, value_name = "NAME")]
    point: Option<String>,
    /// Within which point names are unique
    #[arg(long, value_name = "NAME", default_value = "")]
    domain: String,
    /// Cut time into epochs of this length [default: whole]
    #[arg(long, value_name = "DURATION")]
    epoch: Option<EpochLength>,
    /// What ends an epoch: time, or markers
    #[arg(long, value_enum, default_value_t)]
    cut: Cut,
    /// The point whose markers to follow
    #[arg(long, value_name = "NAME", default_value = "upstream")]
    markers_of: String,
    /// One synopsis for all traffic, or one per class: all, class
    #[arg(long, value_name = "SCOPE", default_value = "all")]
    by: Split,
    /// Keep whole observations this near to an epoch's boundary, beyond any delay [default: a tenth of an epoch]
    #[arg(long, value_name = "DURATION")]
    guard: Option<twixt_sim::quantity::Nanoseconds>,
    /// Stop after so many packets
    #[arg(short = 'c', long = "count", value_name = "COUNT")]
    count: Option<u64>,
    #[command(flatten)]
    traffic: TrafficArgs,
    #[command(flatten)]
    algorithm: AlgorithmArgs,
    #[command(flatten)]
    digest: DigestArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    if args.by.by() != By::All {
        return Err(usage(
            "record keeps one synopsis for all traffic or one per class: use --by all or --by class",
        ));
    }
    let rule = args.epoch.map_or(EpochRule::WHOLE, |epoch| epoch.0);
    let plan = Plan {
        traffic: &args.traffic,
        digest: &args.digest,
        algorithms: vec![args.algorithm.choose("lda")?],
        split: args.by,
        rule,
        cutting: args.cut.cutting(rule, args.by, &args.markers_of)?,
        flows: FlowList::none(),
    };
    let observer =
        args.traffic.observer(plan.wanted(), args.digest.digester(args.digest.recognition()))?;
    let setting = args.setting(&plan, &observer);
    let taking = Taking {
        meters: Meters::new(&setting, &plan.algorithms)?,
        observer,
        detailed: plan.wanted().detail,
        follows_markers: plan.cutting != Cutting::Timed,
        toward: args.traffic.toward,
        most: args.count.unwrap_or(u64::MAX),
        skipped: SkipCounts::default(),
        cut: 0,
    };
    let capture = Capture::open(&args.read)?;
    record(args, capture, taking, EpochWriter::create(&args.write)?)
}

impl Args {
    /// Takes from the configuration file what the command line left out.
    pub(crate) fn with(self, settings: &Settings) -> Self {
        let traffic = self.traffic.with(settings).weighed(self.algorithm.weights_file());
        Self {
            epoch: self.epoch.or_else(|| EpochLength::written(settings)),
            traffic,
            algorithm: self.algorithm.with(settings),
            digest: self.digest.with(settings),
            ..self
        }
    }

    fn setting(&self, plan: &Plan<'_>, observer: &Observer) -> Setting {
        let name = || {
            self.read.file_stem().unwrap_or(self.read.as_os_str()).to_string_lossy().into_owned()
        };
        Setting {
            domain: self.domain.clone(),
            point: PointId(self.point.clone().unwrap_or_else(name)),
            run: 0,
            rule: plan.rule,
            shift: Delay::ZERO,
            guard: self.guard.map(|guard| Delay::from_nanos(guard.0)),
            digest: observer.digester().identity(),
            cutting: plan.cutting.clone(),
            classes: Setting::classes_of(plan.split, observer.class_names().map(str::to_owned)),
        }
    }
}

/// What happens to frames.
struct Taking {
    observer: Observer,
    meters: Meters,
    detailed: bool,
    follows_markers: bool,
    toward: Option<Prefix>,
    /// Packets still wanted.
    most: u64,
    /// Frames skipped since the meters were told.
    skipped: SkipCounts,
    /// Frames that the snap length cut where a digest might have looked.
    cut: u64,
}

/// Link, network and transport headers without options, and the payload that a digest covers:
/// frames cut beyond this have all of it, as a rule.
const DIGEST_REACH_BYTES: usize = 14 + 40 + 32 + PAYLOAD_BYTES_MAX as usize;

impl Taking {
    #[inline]
    fn take(&mut self, frame: &Frame<'_>) {
        if let Err(skip) = self.measure(frame) {
            self.skipped.count(skip);
        }
    }

    #[inline]
    fn measure(&mut self, frame: &Frame<'_>) -> Result<(), Skip> {
        if self.most == 0 {
            return Ok(());
        }
        if is_timeless(frame.time) {
            return Err(Skip::NoTime);
        }
        if self.follows_markers
            && let Some(marker) = marker_in(frame)
        {
            self.meters.observe_marker(&marker);
            return Err(Skip::Marker);
        }
        let (link, bytes) = (LinkType(frame.link_type), frame.bytes);
        let wire_length = frame.wire_length;
        if bytes.len() < DIGEST_REACH_BYTES && bytes.len() < wire_length as usize {
            self.cut += 1;
        }
        if self.detailed || self.toward.is_some() {
            return self.measure_packet(frame);
        }
        let observation = self.observer.observe(link, bytes, wire_length, frame.time)?;
        self.meters.push(observation);
        self.most -= 1;
        Ok(())
    }

    fn measure_packet(&mut self, frame: &Frame<'_>) -> Result<(), Skip> {
        let link = LinkType(frame.link_type);
        let (observation, packet) =
            self.observer.observe_packet(link, frame.bytes, frame.wire_length, frame.time)?;
        if self.toward.is_some_and(|prefix| !prefix.contains(packet.destination())) {
            return Err(Skip::WrongDirection);
        }
        match self.detailed {
            true => self.meters.push_detailed(observation, packet.detail(frame.bytes)),
            false => self.meters.push(observation),
        }
        self.most -= 1;
        Ok(())
    }
}

fn record(
    args: &Args,
    mut capture: Capture,
    mut taking: Taking,
    mut out: EpochWriter,
) -> anyhow::Result<Exit> {
    let progress = Progress::new(capture.size_bytes());
    loop {
        let end = capture.read_batch(&progress, |frame| taking.take(&frame));
        taking.meters.count_skipped(&std::mem::take(&mut taking.skipped));
        out.write_sealed(&mut taking.meters)?;
        if end == BatchEnd::End || taking.most == 0 {
            break;
        }
    }
    drop(progress);
    let counts = capture.file().counts();
    let mut unread = SkipCounts::default();
    unread.add(Skip::NoTime, counts.skipped());
    taking.meters.count_skipped(&unread);
    taking.meters.count_dropped(counts.dropped.unwrap_or(0));
    taking.meters.finish();
    out.write_sealed(&mut taking.meters)?;
    out.finish()?;
    let partial = capture.note_ending(&args.read);
    conclude(args, &taking, partial)
}

fn conclude(args: &Args, taking: &Taking, partial: bool) -> anyhow::Result<Exit> {
    let packets = taking.meters.packets();
    if packets == 0 {
        return Err(no_answer(format!("{}: no packet to record", args.read.display())));
    }
    if !args.traffic.tells_direction() {
        note(
            "packets of both directions were recorded, if there are such; --toward or a filter picks one",
        );
    }
    if taking.cut > 0 {
        note(format_args!(
            "{} packets were cut short by the snap length: record the other point with the same one, \
             or both with --digest headers",
            units::count(taking.cut)
        ));
    }
    note(format_args!("{} packets recorded in {}", units::count(packets), args.write.display()));
    Ok(Exit::Done.or_partial(partial))
}

/// Appends sealed epochs to a file or to standard output.
struct EpochWriter {
    out: BufWriter<Box<dyn Write>>,
    name: String,
}

impl EpochWriter {
    fn create(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let out: Box<dyn Write> = match input::is_stdin(path) {
            true => Box::new(io::stdout().lock()),
            false => Box::new(File::create(path).with_context(|| format!("cannot write {name}"))?),
        };
        let mut writer = Self { out: BufWriter::new(out), name };
        writer.write(&FILE_HEADER)?;
        Ok(writer)
    }

    fn write_sealed(&mut self, meters: &mut Meters) -> anyhow::Result<()> {
        while let Some((_, sealed)) = meters.poll() {
            let record = frame_record(&sealed.to_bytes()).map_err(|error| {
                usage(format!("{}: {error}; use --epoch for shorter epochs", self.name))
            })?;
            self.write(&record)?;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.out.write_all(bytes).with_context(|| format!("cannot write {}", self.name))
    }

    fn finish(mut self) -> anyhow::Result<()> {
        self.out.flush().with_context(|| format!("cannot write {}", self.name))
    }
}
