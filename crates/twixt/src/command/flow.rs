//! `twixt flow`: flow records in and out.

mod direction;
mod document;
mod export;
mod import;
mod listen;
mod metering;
mod pair;
mod point_records;
mod results;
mod send;
mod streams;

use crate::configuration::Configuration;
use crate::exit::Exit;

/// Flow records: IPFIX, NetFlow v9 and v5
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    Export(Box<export::Args>),
    Import(import::Args),
    Pair(Box<pair::Args>),
}

pub(crate) fn run(args: Args, configuration: &Configuration) -> anyhow::Result<Exit> {
    match args {
        Args::Export(args) => export::run(&args.with(configuration)),
        Args::Import(args) => import::run(&args),
        Args::Pair(args) => pair::run(&args),
    }
}
