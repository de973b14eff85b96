//! `twixt info`: what is in a capture, an epoch file, or a file of flow records.

mod capture;
mod epochs;
mod flow_records;

use std::path::PathBuf;

use crate::args::TrafficArgs;
use crate::exit::{Exit, usage};
use crate::input;
use crate::output::Format;
use crate::records;

/// What is in a capture, an epoch file, or a file of flow records
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "read")]
    file: Option<PathBuf>,
    /// The file, as tcpdump users write it
    #[arg(short = 'r', long = "read", value_name = "FILE", conflicts_with = "file")]
    read: Option<PathBuf>,
    /// Stop after so many frames
    #[arg(short = 'c', long = "count", value_name = "COUNT")]
    count: Option<u64>,
    /// How to print: human or json
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    traffic: TrafficArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    if matches!(args.format, Format::Jsonl | Format::Csv) {
        return Err(usage("info prints -F human or -F json"));
    }
    let path = args.file.as_ref().or(args.read.as_ref()).expect("clap requires one of the two");
    match path {
        path if input::is_stdin(path) => capture::run(path, args),
        path if input::is_epoch_file(path) => epochs::run(path, args.format),
        path if records::is_ipfix_file(path) => flow_records::run(path, args.format),
        path => capture::run(path, args),
    }
}
