//! `twixt plan`: how much memory for how small an error, and where to begin. One file for each
//! thing to plan.

mod lda;
mod upgrade;

use crate::exit::Exit;

/// Size a synopsis for the traffic and the loss that you expect; choose routers to upgrade
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    Lda(lda::Args),
    Upgrade(upgrade::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match args {
        Args::Lda(args) => lda::run(args),
        Args::Upgrade(args) => upgrade::run(args),
    }
}
