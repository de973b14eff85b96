//! `twixt collector`: takes epochs from agents, stores them, pairs them.

mod alert;
mod ca;
mod file;
mod follow;
mod rows;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use twixt_collector::{Collector, CollectorError, EventSink, StopRequest};
use twixt_engine::SegmentConfig;
use twixt_model::quantity::Nanoseconds;
use twixt_model::{PointId, Segment};

use crate::exit::{Exit, note, usage};
use crate::logging;
use crate::output::Format;
use crate::signals::{SecondSignal, Signals};
use file::Written;
use follow::Following;

/// Receive epochs from agents, store them, and pair them into estimates
///
/// Everything can be set in a file (--config FILE); options override it.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    ca: Option<Ca>,
    /// Address and port for agents [default: 127.0.0.1:9443]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Directory for all persistent state
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// A segment to estimate: names of its points; repeatable
    #[arg(long = "segment", value_name = "UPSTREAM:DOWNSTREAM", value_parser = segment)]
    segments: Vec<Segment>,
    /// Find segments: pairs of points that see the same packets
    #[arg(long)]
    discover: bool,
    /// How long to wait for both halves of an epoch [default: 5s]
    #[arg(long, value_name = "DURATION")]
    patience: Option<Nanoseconds>,
    /// File with a token that agents must send; it allows every point
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Address and port for /metrics and /healthz [default: none]
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Print estimates as they come
    #[arg(long)]
    follow: bool,
    /// Their format: human, jsonl
    #[arg(short = 'F', long, value_enum, default_value_t, requires = "follow")]
    format: Format,
    /// Check the configuration, keys and directory, and exit
    #[arg(long)]
    check: bool,
}

#[derive(clap::Subcommand)]
enum Ca {
    /// A certificate authority for collector and agents
    #[command(subcommand)]
    Ca(ca::Args),
}

pub(crate) fn run(args: &Args, config: Option<&Path>) -> anyhow::Result<Exit> {
    if let Some(Ca::Ca(args)) = &args.ca {
        return ca::run(args);
    }
    if !matches!(args.format, Format::Human | Format::Jsonl) {
        return Err(usage("estimates are printed one by one: use -F human or -F jsonl"));
    }
    let written = config.map(Written::load).transpose()?.unwrap_or_default();
    let config = args.over(written).config()?;
    let collector = Collector::new(config).map_err(|error| usage(error.to_string()))?;
    if args.check {
        collector.check().map_err(failure)?;
        note("the configuration is valid");
        return Ok(Exit::Done);
    }
    logging::start();
    let (stop, signals) = (StopRequest::new(), Signals::watch(SecondSignal::Ends)?);
    signals.stop(stop.clone());
    let sink: Box<dyn EventSink> = match args.follow {
        true => Box::new(Following::new(args.format)),
        false => Box::new(std::io::sink()),
    };
    let ready = |addresses: twixt_collector::Addresses| {
        // For people who wait, and for scripts that start agents now.
        note(format_args!("collector: listening on {}", addresses.listen));
        if let Some(metrics) = addresses.metrics {
            note(format_args!("collector: metrics on {metrics}"));
        }
    };
    collector.run(sink, &stop, ready).map_err(failure)?;
    Ok(if signals.was_interrupted() { Exit::Interrupted } else { Exit::Done })
}

impl Args {
    /// What the file says, unless an option says otherwise.
    fn over(&self, mut written: Written) -> Written {
        written.listen = self.listen.or(written.listen);
        written.directory = self.directory.clone().or(written.directory);
        written.discover |= self.discover;
        if let Some(patience) = self.patience {
            written.patience = Some(patience.to_string());
        }
        if let Some(listen) = self.metrics {
            written.metrics = Some(file::Metrics { listen });
        }
        if let Some(path) = &self.token_file {
            written.token.push(file::Token::of_file(path));
        }
        written.segment.extend(self.segments.iter().cloned().map(file::SegmentEntry::from));
        written
    }
}

fn segment(text: &str) -> Result<Segment, String> {
    let (upstream, downstream) =
        text.split_once(':').ok_or("write it as UPSTREAM:DOWNSTREAM, such as r-in:r-out")?;
    if upstream.is_empty() || downstream.is_empty() || upstream == downstream {
        return Err("a segment has two points".to_owned());
    }
    let point = |name: &str| PointId(name.to_owned());
    Ok(Segment { upstream: point(upstream), downstream: point(downstream) })
}

/// Mistakes of configuration end the command as such; others as failures.
fn failure(error: CollectorError) -> anyhow::Error {
    match error {
        CollectorError::Config(_) | CollectorError::Tls(_) => usage(error.to_string()),
        error => error.into(),
    }
}

impl From<Segment> for file::SegmentEntry {
    fn from(segment: Segment) -> Self {
        Self { upstream: segment.upstream.0, downstream: segment.downstream.0, class: None }
    }
}

impl From<&file::SegmentEntry> for SegmentConfig {
    fn from(entry: &file::SegmentEntry) -> Self {
        let point = |name: &str| PointId(name.to_owned());
        let segment =
            Segment { upstream: point(&entry.upstream), downstream: point(&entry.downstream) };
        Self { segment, class: entry.class.clone() }
    }
}
