//! `twixt rtt`: round-trip times at one point.

mod watching;

use std::path::PathBuf;

use twixt_capture::BatchEnd;
use twixt_model::EpochRule;
use twixt_synopsis::Estimator;
use twixt_wire::Wanted;

use crate::args::{AlgorithmArgs, DigestArgs, EpochLength, RoundTrips, TrafficArgs};
use crate::exit::{Exit, no_answer, note, usage};
use crate::input::Capture;
use crate::output::{self, Format, ROWS_DEFAULT, RoundTripDocument, round_trip_report, units};
use crate::progress::Progress;
use crate::settings::Settings;
pub(crate) use watching::Watched;
use watching::Watching;

/// Round-trip times at one point, from one capture
///
/// Both directions of the traffic must have been captured. Kinds of round trip are measured and
/// reported apart: tcp-handshake, tcp-sequence, tcp-timestamp, tcp-duration, dns, ntp, icmp,
/// quic-handshake, quic-spin.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Capture to read; - is standard input
    #[arg(short = 'r', long = "read", value_name = "FILE")]
    read: PathBuf,
    /// Print every round trip as it is found; needs -F jsonl or csv
    #[arg(long)]
    samples: bool,
    /// Cut time into epochs of this length, for a series [default: whole]
    #[arg(long, value_name = "DURATION")]
    epoch: Option<EpochLength>,
    /// Stop after so many packets
    #[arg(short = 'c', long = "count", value_name = "COUNT")]
    count: Option<u64>,
    /// How to print
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
    /// Rows of the table for people, largest first
    #[arg(long, value_name = "N", default_value_t = ROWS_DEFAULT)]
    rows_shown: usize,
    #[command(flatten)]
    traffic: TrafficArgs,
    /// [default algorithm: exact, for what fits into memory]
    #[command(flatten)]
    algorithm: AlgorithmArgs<RoundTrips>,
    #[command(flatten)]
    digest: DigestArgs,
}

/// For captures: every round trip, since a file has an end.
const DEFAULT_ALGORITHM: &str = "exact";

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    args.check()?;
    let chosen = args.algorithm.choose(DEFAULT_ALGORITHM)?;
    let Estimator::RoundTrip { conclude, samples } = &chosen.algorithm.estimator else {
        unreachable!("the registry lists algorithms for round trips under this purpose only");
    };
    let wanted = Wanted { digest: false, flow: false, detail: true, group: false };
    let digester = args.digest.digester(args.digest.recognition());
    let mut watching = Watching::new(
        args.traffic.observer(wanted, digester)?,
        chosen.prototype.duplicate(),
        conclude,
        args.epoch.map_or(EpochRule::WHOLE, |epoch| epoch.0),
        args.count.unwrap_or(u64::MAX),
    );
    if args.samples {
        watching.print_samples(*samples, args.format)?;
    }
    let partial = read_frames(args, &mut watching)?;
    let watched = watching.finish()?;
    show(args, &RoundTripDocument::new(chosen.algorithm.name, &chosen, &watched), &watched)?;
    Ok(Exit::Done.or_partial(partial))
}

impl Args {
    /// Takes from the configuration file what the command line left out.
    pub(crate) fn with(self, settings: &Settings) -> Self {
        Self {
            epoch: self.epoch.or_else(|| EpochLength::written(settings)),
            traffic: self.traffic.with(settings),
            algorithm: self.algorithm.with(settings),
            digest: self.digest.with(settings),
            ..self
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        if self.traffic.toward.is_some() {
            return Err(usage(
                "round trips need both directions: use a filter that keeps both, or --by prefix/24",
            ));
        }
        if self.samples && !matches!(self.format, Format::Jsonl | Format::Csv) {
            return Err(usage("--samples needs -F jsonl or -F csv"));
        }
        Ok(())
    }
}

/// Hands over all frames of the capture; whether a part of it was unusable.
fn read_frames(args: &Args, watching: &mut Watching<'_>) -> anyhow::Result<bool> {
    let mut capture = Capture::open(&args.read)?;
    let progress = Progress::new(capture.size_bytes());
    while capture.read_batch(&progress, |frame| watching.take(&frame)) != BatchEnd::End {
        watching.flush()?;
        if watching.has_enough() {
            break;
        }
    }
    drop(progress);
    let counts = capture.file().counts();
    watching.count_unread(counts.skipped(), counts.dropped);
    Ok(capture.note_ending(&args.read))
}

fn show(args: &Args, document: &RoundTripDocument, watched: &Watched) -> anyhow::Result<()> {
    if !document.has_round_trips() {
        let packets = units::count(watched.counts.packets);
        return Err(no_answer(format!(
            "{}: no round trip in {packets} packets; are both directions captured?",
            args.read.display()
        )));
    }
    if args.samples {
        return Ok(());
    }
    for line in document.warnings() {
        note(line);
    }
    match args.format {
        Format::Human => {
            let name = args.read.display().to_string();
            output::text(&round_trip_report(&name, document, args.rows_shown))
        }
        Format::Json => output::json(document),
        Format::Jsonl => output::jsonl(document.rows()),
        Format::Csv => output::csv(document.rows()),
    }
}
