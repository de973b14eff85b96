//! `twixt info`: what is in a capture, an epoch file, a store, a file of flow records or an incident
//! bundle, or passes an interface.

mod bundle;
mod capture;
mod epochs;
mod findings;
mod flow_records;
mod store;

use std::path::PathBuf;

use twixt_collector::bundle::is_bundle;
use twixt_offline::{is_epoch_file, is_read_once};

use crate::args::TrafficArgs;
use crate::exit::{Exit, usage};
use crate::flow_record_input;
use crate::frame_input::{FrameSource, LiveArgs};
use crate::output::Format;

/// Describe a capture, an epoch file, a store, a file of flow records, an incident bundle, or the
/// traffic of an interface
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file, or the directory of a store; - is standard input
    #[arg(value_name = "FILE", required_unless_present_any = ["read", "interface"])]
    file: Option<PathBuf>,
    /// The file (like tcpdump's -r)
    #[arg(short = 'r', long = "read", value_name = "FILE", conflicts_with_all = ["file", "interface"])]
    read: Option<PathBuf>,
    /// Stop after this many frames
    #[arg(short = 'c', long = "count", value_name = "COUNT")]
    count: Option<u64>,
    /// Output format: human or json
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    traffic: TrafficArgs,
    #[command(flatten)]
    live: LiveArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    if matches!(args.format, Format::Jsonl | Format::Csv) {
        return Err(usage("info supports -F human or -F json"));
    }
    if args.live.is_given() {
        // What would be the file is the first word of the filter.
        let traffic = args.traffic.clone().with_first_word(args.file.as_deref());
        return capture::run(FrameSource::interface(&args.live)?, &traffic, args);
    }
    args.live.check_unused()?;
    let path = args.file.as_ref().or(args.read.as_ref()).expect("clap requires one of the two");
    if path.is_dir() {
        return store::run(path, args.format);
    }
    match path {
        path if is_read_once(path) => {
            capture::run(FrameSource::capture(path)?, &args.traffic, args)
        }
        path if is_bundle(path) => bundle::run(path, args.format),
        path if is_epoch_file(path) => epochs::run(path, args.format),
        path if flow_record_input::is_ipfix_file(path) => flow_records::run(path, args.format),
        path => capture::run(FrameSource::capture(path)?, &args.traffic, args),
    }
}
