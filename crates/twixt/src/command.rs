//! The subcommands, one file each.

mod delay;

use clap::{Parser, Subcommand};

use crate::exit::Exit;

/// What happens to your packets betwixt two points of your network: how late, how variable, how
/// many lost, for every flow, from kilobytes of state, with no probe packets and no change to any
/// packet.
#[derive(Parser)]
#[command(name = "twixt", version, about, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Delay(delay::Args),
}

/// Runs what was asked for.
pub(crate) fn run(cli: Cli) -> anyhow::Result<Exit> {
    match cli.command {
        Command::Delay(args) => delay::run(&args),
    }
}
