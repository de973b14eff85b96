//! `twixt doctor`: what works here, what does not, and the command that mends it.
//!
//! Looks only. Nothing is changed, and no frame is read.

mod clock;
mod finding;
mod interfaces;
mod kernel;
mod privileges;
mod reach;

use std::path::PathBuf;

use crate::exit::{Exit, usage};
use crate::output::{self, Format};
use finding::{Document, Finding, Status, report};
use reach::Collector;

/// Check this machine: capabilities, interfaces and their offloads, timestamps, clocks, disks
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this interface; repeatable [default: all]
    #[arg(short = 'i', long = "interface", value_name = "INTERFACE")]
    interfaces: Vec<String>,
    /// Directory where an agent keeps epochs until a collector has stored them
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// Directory of a store
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Collector to connect to, such as https://collector:9443; nothing is sent
    #[arg(long, value_name = "URL")]
    collector: Option<Collector>,
    /// Certificates of the authority that signed the collector's, as PEM
    #[arg(long, value_name = "FILE", requires = "collector")]
    ca: Option<PathBuf>,
    /// Output format
    #[arg(short = 'F', long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    if !matches!(args.format, Format::Human | Format::Json) {
        return Err(usage("doctor supports -F human or -F json"));
    }
    let findings = examine(args);
    let fails = findings.iter().any(|finding| finding.status == Status::Fail);
    match args.format {
        Format::Json => output::json(&Document::new(&findings))?,
        _ => output::text(&report(&findings))?,
    }
    Ok(if fails { Exit::Failed } else { Exit::Done })
}

fn examine(args: &Args) -> Vec<Finding> {
    let mut findings = privileges::examine();
    findings.extend(kernel::examine(&args.interfaces));
    findings.extend(interfaces::examine(&args.interfaces));
    findings.extend(clock::examine());
    let folders = [("spool", &args.spool), ("store", &args.store)];
    for (name, folder) in folders {
        findings.extend(folder.as_deref().map(|folder| reach::examine_folder(name, folder)));
    }
    let collector = args.collector.as_ref();
    findings.extend(collector.map(|collector| collector.examine(args.ca.as_deref())));
    findings
}
