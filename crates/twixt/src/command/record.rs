//! `twixt record`: one point, one pass, into an epoch file or a store.

mod sink;

use std::path::PathBuf;

use twixt_capture::{Frame, SourceCounts};
use twixt_measure::Cutting;
use twixt_model::{Delay, Detail, EpochRule, PointId, Prefix, TimeSource};
use twixt_synopsis::{By, DetailsOf};
use twixt_wire::{LinkType, Observer, PAYLOAD_BYTES_MAX, Skip, SkipCounts};

use crate::args::{AlgorithmArgs, Cut, DigestArgs, EpochLength, FlowList, Split, TrafficArgs};
use crate::exit::{Exit, no_answer, note, usage};
use crate::measure::{Meters, Plan, Setting, is_timeless, marker_in};
use crate::output::units;
use crate::settings::Settings;
use crate::source::{OnePass, SoFar, Source, SourceArgs};
use sink::{Sink, Target};

/// One point, one pass: a capture or an interface into an epoch file or a store
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Epoch file to write; - is standard output
    #[arg(short = 'w', long = "write", value_name = "FILE", required_unless_present = "store")]
    write: Option<PathBuf>,
    /// Store to append to, for `query`: a folder, made if it is not there
    #[arg(long, value_name = "DIR", conflicts_with = "write")]
    store: Option<PathBuf>,
    /// Name of the observation point [default: that of the capture or interface]
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
    #[command(flatten)]
    source: SourceArgs,
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
    let source = args.source.open()?;
    let setting = args.setting(&plan, &observer, source.time_source());
    let taking = Taking {
        meters: Meters::new(&setting, &plan.algorithms)?,
        observer,
        detailed: plan.wanted().detail,
        details_of: plan.details_of(),
        follows_markers: plan.cutting != Cutting::Timed,
        toward: args.traffic.toward,
        most: args.count.unwrap_or(u64::MAX),
        skipped: SkipCounts::default(),
        told: SourceCounts::default(),
        cut: 0,
    };
    let out = Sink::open(args.target(), &setting.point)?;
    record(args, source, Recording { taking, out })
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

    /// Where epochs go.
    fn target(&self) -> Target<'_> {
        match (&self.write, &self.store) {
            (Some(path), _) => Target::File(path),
            (None, store) => Target::Store(store.as_ref().expect("clap requires one of the two")),
        }
    }

    fn setting(&self, plan: &Plan<'_>, observer: &Observer, time_source: TimeSource) -> Setting {
        Setting {
            domain: self.domain.clone(),
            point: PointId(self.point.clone().unwrap_or_else(|| self.source.point())),
            run: 0,
            rule: plan.rule,
            shift: Delay::ZERO,
            guard: self.guard.map(|guard| Delay::from_nanos(guard.0)),
            digest: observer.digester().identity(),
            time_source,
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
    details_of: DetailsOf,
    follows_markers: bool,
    toward: Option<Prefix>,
    /// Packets still wanted.
    most: u64,
    /// Frames skipped since the meters were told.
    skipped: SkipCounts,
    /// What the meters know of the source.
    told: SourceCounts,
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

    /// Tells the meters what was skipped and dropped since the last time.
    fn tell_counts(&mut self, now: SourceCounts) {
        self.skipped.add(Skip::NoTime, now.skipped() - self.told.skipped());
        self.meters.count_skipped(&std::mem::take(&mut self.skipped));
        let dropped = |counts: &SourceCounts| counts.dropped.unwrap_or(0);
        self.meters.count_dropped(dropped(&now).saturating_sub(dropped(&self.told)));
        self.told = now;
    }

    fn measure_packet(&mut self, frame: &Frame<'_>) -> Result<(), Skip> {
        let link = LinkType(frame.link_type);
        let (observation, packet) =
            self.observer.observe_packet(link, frame.bytes, frame.wire_length, frame.time)?;
        if self.toward.is_some_and(|prefix| !prefix.contains(packet.destination())) {
            return Err(Skip::WrongDirection);
        }
        match self.detailed {
            true if self.details_of.includes(&observation) => {
                self.meters.push_detailed(observation, packet.detail(frame.bytes));
            }
            true => self.meters.push_detailed(observation, Detail::default()),
            false => self.meters.push(observation),
        }
        self.most -= 1;
        Ok(())
    }
}

/// From frames to epochs on disk.
struct Recording {
    taking: Taking,
    out: Sink,
}

impl OnePass for Recording {
    #[inline]
    fn take(&mut self, frame: &Frame<'_>) {
        self.taking.take(frame);
    }

    fn has_enough(&self) -> bool {
        self.taking.most == 0
    }

    fn end_batch(&mut self, so_far: &SoFar) -> anyhow::Result<()> {
        self.taking.tell_counts(so_far.counts);
        if let Some(now) = so_far.silent_until {
            self.taking.meters.advance(now);
        }
        self.out.write_sealed(&mut self.taking.meters)
    }
}

fn record(args: &Args, mut source: Source, mut recording: Recording) -> anyhow::Result<Exit> {
    source.read(&mut recording)?;
    let Recording { mut taking, mut out } = recording;
    taking.meters.finish();
    out.write_sealed(&mut taking.meters)?;
    conclude(args, &taking, &out.finish()?, source)
}

fn conclude(args: &Args, taking: &Taking, recorded: &str, source: Source) -> anyhow::Result<Exit> {
    let packets = taking.meters.packets();
    if packets == 0 && !source.was_interrupted() {
        return Err(no_answer(format!("{}: no packet to record", source.name())));
    }
    if !args.traffic.tells_direction() && !args.source.live.tells_direction() {
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
    note(format_args!("{} packets recorded in {recorded}", units::count(packets)));
    Ok(source.conclude(Exit::Done))
}
