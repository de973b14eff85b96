//! `twixt plan`: how much memory for how small an error, and where to begin. One file for each
//! thing to plan.

mod colate;
mod fridge;
mod lda;
mod lds;
mod upgrade;

use crate::exit::Exit;

/// Size a synopsis for the traffic and the loss that you expect; choose routers to upgrade
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    Colate(colate::Args),
    Lda(lda::Args),
    Upgrade(upgrade::Args),
    Fridge(fridge::Args),
    Lds(lds::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match args {
        Args::Colate(args) => colate::run(args),
        Args::Lda(args) => lda::run(args),
        Args::Upgrade(args) => upgrade::run(args),
        Args::Fridge(args) => fridge::run(args),
        Args::Lds(args) => lds::run(args),
    }
}
