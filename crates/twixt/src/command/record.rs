//! `twixt record`: one point, one pass, into an epoch file or a store.

mod retention;
mod sink;

use std::path::PathBuf;

use twixt_capture::Frame;
use twixt_measure::Cutting;
use twixt_model::{Delay, EpochRule, PointId, TimeSource};
use twixt_observe::{Meters, MetersConfig, PacketPath};
use twixt_offline::{Beside, FlowList, Plan, Split};
use twixt_synopsis::By;
use twixt_wire::Observer;

use crate::args::{AlgorithmArgs, Cut, DigestArgs, EpochLength, TrafficArgs};
use crate::configuration::Configuration;
use crate::exit::{Exit, no_answer, note, usage};
use crate::frame_input::{FrameSource, OnePass, SoFar, SourceArgs};
use crate::interruption;
use crate::output::units;
use crate::remarks::late_packets;
use retention::Retention;
use sink::{Sink, Target};

/// One point, one pass: a capture or an interface into an epoch file or a store
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Epoch file to write; - is standard output
    #[arg(short = 'w', long = "write", value_name = "FILE", required_unless_present = "store")]
    write: Option<PathBuf>,
    /// Store to append to, for `query`: a directory, created if missing
    #[arg(long, value_name = "DIR", conflicts_with = "write")]
    store: Option<PathBuf>,
    #[command(flatten)]
    retention: Retention,
    /// Name of the observation point [default: the capture or interface]
    #[arg(long, value_name = "NAME")]
    point: Option<String>,
    /// Domain within which point names are unique
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
    /// Keep whole observations this close to an epoch's boundary; must exceed any delay [default: a
    /// tenth of an epoch]
    #[arg(long, value_name = "DURATION")]
    guard: Option<twixt_model::quantity::Nanoseconds>,
    /// Stop after this many packets
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
    if args.store.is_none() && args.retention.is_asked_for() {
        return Err(usage("--keep-days and --keep-bytes are for a store: use them with --store"));
    }
    let rule = args.rule();
    let plan = Plan {
        traffic: args.traffic.traffic()?,
        digest: args.digest.plan(),
        algorithms: vec![args.algorithm.choose("lda")?],
        split: args.by,
        rule,
        auto_epochs: false,
        cutting: args.cut.cutting(rule, args.by, &args.markers_of)?,
        flows: FlowList::none(),
        beside: Beside::default(),
    };
    let observer = args.traffic.observer(plan.needs(), args.digest.digester())?;
    let source = args.source.open()?;
    let config = args.meters_config(&plan, &observer, source.time_source());
    let mut meters =
        Meters::new(&config, &plan.prototypes()).map_err(|error| usage(error.to_string()))?;
    meters.expect_missing(source.dropped_ahead(rule)?);
    let path = PacketPath::new(observer, meters)
        .following_markers(plan.cutting != Cutting::Timed)
        .toward(args.traffic.toward)
        .within(args.traffic.within()?)
        .at_most(args.count);
    let out = Sink::open(args.target(), &config.point)?;
    record(args, source, Recording { path, out })
}

impl Args {
    /// Takes from the configuration file what the command line left out.
    pub(crate) fn with(self, configuration: &Configuration) -> Self {
        let traffic = self.traffic.with(configuration).weighed(self.algorithm.weights_file());
        Self {
            epoch: self.epoch.or_else(|| EpochLength::written(configuration)),
            traffic,
            algorithm: self.algorithm.with(configuration),
            digest: self.digest.with(configuration),
            ..self
        }
    }

    fn rule(&self) -> EpochRule {
        self.epoch.map_or(EpochRule::WHOLE, |epoch| epoch.0)
    }

    /// Where epochs go.
    fn target(&self) -> Target<'_> {
        match (&self.write, &self.store) {
            (Some(path), _) => Target::File(path),
            (None, store) => {
                let store = store.as_ref().expect("clap requires one of the two");
                Target::Store(store, self.retention)
            }
        }
    }

    fn meters_config(
        &self,
        plan: &Plan,
        observer: &Observer,
        time_source: TimeSource,
    ) -> MetersConfig {
        let point = PointId(self.point.clone().unwrap_or_else(|| self.source.point()));
        MetersConfig {
            domain: self.domain.clone(),
            guard: self.guard.map(|guard| Delay::from_nanos(guard.0)),
            time_source,
            cutting: plan.cutting.clone(),
            classes: plan.class_names(observer),
            ..MetersConfig::new(point, plan.rule, observer.digester().identity())
        }
    }
}

/// From frames to epochs on disk.
struct Recording {
    path: PacketPath<Meters>,
    out: Sink,
}

impl OnePass for Recording {
    #[inline(always)]
    fn take(&mut self, frame: &Frame<'_>) {
        self.path.take(frame);
    }

    fn has_enough(&self) -> bool {
        self.path.has_enough()
    }

    fn end_batch(&mut self, so_far: &SoFar) -> anyhow::Result<()> {
        self.path.report_counts(so_far.counts, so_far.read);
        match so_far.silent_until {
            Some(now) => self.path.sink_mut().advance(now),
            None => self.path.sink_mut().keep_in_step(),
        }
        self.out.write_sealed(self.path.sink_mut())
    }
}

fn record(args: &Args, mut source: FrameSource, mut recording: Recording) -> anyhow::Result<Exit> {
    source.read(&mut recording)?;
    let Recording { mut path, mut out } = recording;
    path.sink_mut().finish();
    out.write_sealed(path.sink_mut())?;
    conclude(args, &path, &out.finish()?, source)
}

fn conclude(
    args: &Args,
    path: &PacketPath<Meters>,
    recorded: &str,
    source: FrameSource,
) -> anyhow::Result<Exit> {
    let packets = path.packets();
    if packets == 0 && !interruption::is_requested() {
        return Err(no_answer(format!("{}: no packet to record", source.name())));
    }
    if !args.traffic.has_direction() && !args.source.live.has_direction() {
        note(
            "packets of both directions are recorded, if present; select one with --toward or a \
             filter",
        );
    }
    if path.cut() > 0 {
        note(format_args!(
            "{} packets were truncated by the snap length: use the same one at the other point, \
             or --digest headers at both",
            units::count(path.cut())
        ));
    }
    let dropped = source.dropped_too_late(args.rule());
    if dropped > 0 {
        note(format_args!(
            "{} packets were dropped while capturing, which only the last epochs record: loss of \
             the others may include them; record a file instead of a pipe",
            units::count(dropped)
        ));
    }
    let late = path.sink().late_packets();
    if late > 0 && args.rule() != EpochRule::WHOLE {
        note(late_packets(&source.name(), late));
    }
    note(format_args!("{} packets recorded in {recorded}", units::count(packets)));
    Ok(source.conclude(Exit::Done))
}
