//! `twixt rtt`: round-trip times at one point.

mod judging;
mod picture;
mod showing;
mod watching;

use twixt_model::{EpochRule, Needs};
use twixt_observe::PacketPath;
use twixt_synopsis::{Estimator, TakeSamples};

use twixt_wire::Observer;

use crate::args::{AlgorithmArgs, DigestArgs, EpochLength, FailAbove, RoundTrips, TrafficArgs};
use crate::configuration::Configuration;
use crate::exit::{Exit, note, usage};
use crate::frame_input::SourceArgs;
use crate::output::{
    self, ROWS_DEFAULT, RoundTripDocument, RowWriter, SortKey, TableFormat, round_trip_report,
    round_trip_rows, units,
};
use crate::plot::PlotFile;
use showing::{Show, Showing};
pub(in crate::command) use watching::Watching;
pub(crate) use watching::{Watched, WatchedEpoch};

/// Round-trip times at one point, from a capture or an interface
///
/// The point must see both directions of the traffic. Kinds of round trip are measured and reported
/// separately: tcp-handshake and its two legs, tcp-handshake-server and tcp-handshake-client;
/// tcp-sequence and tcp-timestamp, toward servers and toward clients; server-response, by protocol;
/// tcp-duration, dns, ntp, icmp, quic-handshake, quic-spin.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print every round trip as it is found; needs -F jsonl, csv or parquet
    #[arg(long)]
    samples: bool,
    /// Cut time into epochs of this length, for a series; with an interface, each is shown as it
    /// ends [default: whole]
    #[arg(long, value_name = "DURATION")]
    epoch: Option<EpochLength>,
    /// Stop after this many packets
    #[arg(short = 'c', long = "count", value_name = "COUNT")]
    count: Option<u64>,
    /// Output format
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: TableFormat,
    /// Order of the groups of a kind, largest first: mean, p95 or packets [default: packets]
    #[arg(long, value_enum, value_name = "KEY")]
    sort: Option<SortKey>,
    /// End with exit code 10 if a kind or group exceeds a limit, such as p99=80ms, or share:50ms=5%
    /// if more than 5 % take longer than 50 ms
    #[arg(long, value_name = "LIMITS")]
    fail_above: Option<FailAbove>,
    /// Draw distributions by kind, side and group into a file: .svg, .png or .html
    #[arg(long, value_name = "FILE")]
    plot: Option<PlotFile>,
    /// Rows of the table to show, largest first
    #[arg(long, value_name = "N", default_value_t = ROWS_DEFAULT)]
    rows_shown: usize,
    /// Classes are code points.
    #[arg(skip)]
    by_dscp: bool,
    #[command(flatten)]
    traffic: TrafficArgs,
    #[command(flatten)]
    algorithm: AlgorithmArgs<RoundTrips>,
    #[command(flatten)]
    digest: DigestArgs,
    #[command(flatten)]
    source: SourceArgs,
}

/// For captures: every round trip, since a file has an end.
pub(in crate::command) const DEFAULT_ALGORITHM: &str = "exact";
/// For interfaces, which have none: fixed memory.
pub(in crate::command) const DEFAULT_LIVE_ALGORITHM: &str = "fridge";

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    args.check()?;
    let is_live = args.source.live.is_given();
    let default = if is_live { DEFAULT_LIVE_ALGORITHM } else { DEFAULT_ALGORITHM };
    let chosen = args.algorithm.choose(default)?;
    let Estimator::RoundTrip { conclude, samples } = &chosen.algorithm.estimator else {
        unreachable!("the registry lists algorithms for round trips under this purpose only");
    };
    let observer = args.observer()?;
    let class_names = observer.class_names().map(str::to_owned).collect();
    let watching = Watching::new(chosen.prototype.duplicate(), conclude, args.rule(), class_names);
    let path = PacketPath::new(observer, watching).within(args.traffic.within()?);
    let path = path.at_most(args.count);
    let mut showing = Showing::new(path, args.show(*samples))?;
    let mut source = args.source.open()?;
    source.read(&mut showing)?;
    let (path, epochs) = showing.finish()?;
    let mut watched = Watched::of(&path, source.counts())?;
    if let Some(key) = args.sort {
        judging::sort(&mut watched.whole, key);
    }
    let document = RoundTripDocument::new(&chosen, &watched, &epochs);
    let name = source.name();
    let exit = source.conclude(Exit::Done);
    if !document.has_round_trips() {
        let packets = units::count(watched.counts.packets);
        return exit.without_answer(format!(
            "{name}: no round trip in {packets} packets; are both directions captured?"
        ));
    }
    if let Some(file) = &args.plot {
        file.write_any(picture::picture(&name, &watched, &epochs))?;
    }
    args.print(&name, &document, &watched)?;
    Ok(judging::conclude(args.fail_above.as_ref(), &watched.whole, exit))
}

impl Args {
    /// Takes from the configuration file what the command line left out.
    pub(crate) fn with(mut self, configuration: &Configuration) -> Self {
        Self {
            by_dscp: self.algorithm.dscp_by_class(),
            epoch: self.epoch.or_else(|| EpochLength::written(configuration)),
            traffic: self.traffic.with(configuration),
            algorithm: self.algorithm.with(configuration),
            digest: self.digest.with(configuration),
            ..self
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        if self.traffic.toward.is_some() {
            return Err(usage(
                "round trips need both directions: use a filter that passes both, or --by \
                 prefix/24",
            ));
        }
        judging::check(self.fail_above.as_ref(), self.sort)?;
        if self.samples && self.format.rows().is_none() {
            return Err(usage("--samples needs -F jsonl, -F csv or -F parquet"));
        }
        Ok(())
    }

    fn observer(&self) -> anyhow::Result<Observer> {
        let needs = Needs { detail: true, exchange: true, ..Needs::default() };
        let traffic = self.traffic.traffic_by(self.by_dscp)?;
        traffic.observer(needs, self.digest.digester()).map_err(|error| usage(error.to_string()))
    }

    fn rule(&self) -> EpochRule {
        self.epoch.map_or(EpochRule::WHOLE, |epoch| epoch.0)
    }

    /// What is shown while frames come.
    fn show(&self, take: TakeSamples) -> Show {
        match (self.format.rows(), self.format) {
            (Some(format), _) if self.samples => {
                Show::Samples { take, rows: RowWriter::new(format) }
            }
            (Some(format), _) => Show::EpochRows(RowWriter::new(format)),
            (None, TableFormat::Human) if self.source.live.is_given() => {
                Show::EpochTables(self.rows_shown)
            }
            (None, _) => Show::Nothing,
        }
    }

    /// Prints what was not shown while frames came.
    fn print(
        &self,
        name: &str,
        document: &RoundTripDocument,
        watched: &Watched,
    ) -> anyhow::Result<()> {
        if self.samples {
            return Ok(());
        }
        for line in document.warnings() {
            note(line);
        }
        let whole = watched.span.filter(|_| self.rule() == EpochRule::WHOLE);
        let rows = whole.map(|span| round_trip_rows(span, &watched.whole)).into_iter().flatten();
        match (self.format.rows(), self.format) {
            (Some(format), _) => output::rows(format, rows),
            (None, TableFormat::Json) => output::json(document),
            (None, _) => output::text(&round_trip_report(name, document, self.rows_shown)),
        }
    }
}
