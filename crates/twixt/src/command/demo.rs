//! `twixt demo`: a whole small network in one process, without root, a capture or a configuration.

mod document;
mod report;
mod spark;

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;

use clap::ValueEnum;
use twixt_collector::StopRequest;
use twixt_demo::{InjectedIncidents, LiveDemo, LiveNews, run_once};

use crate::exit::{Exit, note, usage};
use crate::output::{self, Format};
use crate::signals::{SecondSignal, Signals};
use document::Document;

/// A first look: a simulated network, what goes wrong in it, and how twixt finds that
///
/// Six routers, three routes, three classes of traffic, observation points on every link, and a
/// collector, in one process. After a while a queue fills for one class, and a line loses packets. Without
/// --once, on a terminal, it goes on at the pace of the clock, with the collector's dashboard on a
/// loopback address, until Ctrl-C.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Simulate 60 seconds as fast as possible, in memory, and exit [default unless standard
    /// output is a terminal]
    #[arg(long)]
    once: bool,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// What goes wrong
    #[arg(long, value_enum, value_name = "WHICH", default_value_t)]
    incidents: IncidentsArg,
    /// Loopback address and port of the dashboard; goes on until Ctrl-C [default: 127.0.0.1, any port]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "once")]
    listen: Option<SocketAddr>,
    /// Output format
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
}

/// `--incidents`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum IncidentsArg {
    /// A queue fills for one class; later another line loses packets
    #[default]
    All,
    /// Only the queue
    Queue,
    /// Only the loss
    Loss,
    /// Nothing
    None,
}

impl From<IncidentsArg> for InjectedIncidents {
    fn from(argument: IncidentsArg) -> Self {
        match argument {
            IncidentsArg::All => Self::All,
            IncidentsArg::Queue => Self::Queue,
            IncidentsArg::Loss => Self::Loss,
            IncidentsArg::None => Self::None,
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let is_human = args.format == Format::Human;
    if args.listen.is_some() && !is_human {
        return Err(usage("with --listen, ask the API for data: omit -F"));
    }
    args.listen.map_or(Ok(()), check_loopback)?;
    let is_watched = is_human && io::stdout().is_terminal();
    // Scripts and pipes wait for the end of a command, people for what happens next.
    let goes_on = !args.once && (is_watched || args.listen.is_some());
    if goes_on { run_live(args) } else { show_once(args) }
}

/// Nothing that needs no token is served to other machines.
pub(super) fn check_loopback(listen: SocketAddr) -> anyhow::Result<()> {
    match listen.ip().to_canonical().is_loopback() {
        true => Ok(()),
        false => {
            Err(usage(format!("--listen {listen} is not a loopback address: use 127.0.0.1:PORT")))
        }
    }
}

fn show_once(args: &Args) -> anyhow::Result<Exit> {
    let summary = run_once(args.seed, args.incidents.into())?;
    let document = Document::of(&summary);
    match args.format {
        Format::Human => {
            output::text(&report::summary(&summary))?;
            output::text(report::NEXT)?;
        }
        Format::Json => output::json(&document)?,
        Format::Jsonl => output::jsonl(&document.segments)?,
        Format::Csv => output::csv(&document.segments)?,
    }
    Ok(Exit::Done)
}

fn run_live(args: &Args) -> anyhow::Result<Exit> {
    let (stop, signals) = (StopRequest::new(), Signals::watch(SecondSignal::Waits)?);
    signals.stop(stop.clone());
    let listen = args.listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
    let demo = LiveDemo::start(args.seed, args.incidents.into(), listen, &stop)?;
    note(format_args!("demo: dashboard on http://{}; Ctrl-C ends it", demo.address()));
    let (started, address) = (demo.started(), demo.address());
    demo.run(|news| {
        let text = match news {
            LiveNews::Summary(summary) => report::summary(&summary) + &report::how_to_ask(address),
            LiveNews::Incident(found) => report::news(&found, started),
        };
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    })?;
    Ok(if signals.was_interrupted() { Exit::Interrupted } else { Exit::Done })
}
