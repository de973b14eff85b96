//! `twixt flow`: flow records in and out.

mod document;
mod export;
mod import;
mod listen;
mod metering;
mod send;

use crate::exit::Exit;
use crate::settings::Settings;

/// Flow records: IPFIX, NetFlow v9 and v5
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    Export(Box<export::Args>),
    Import(import::Args),
}

pub(crate) fn run(args: Args, settings: &Settings) -> anyhow::Result<Exit> {
    match args {
        Args::Export(args) => export::run(&args.with(settings)),
        Args::Import(args) => import::run(&args),
    }
}
