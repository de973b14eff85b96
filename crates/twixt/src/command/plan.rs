//! `twixt plan`: how much memory for how small an error. One file for each thing to plan.

mod lda;
mod lds;

use crate::exit::Exit;

/// Size a synopsis for the traffic and the loss that you expect
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    Lda(lda::Args),
    Lds(lds::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match args {
        Args::Lda(args) => lda::run(args),
        Args::Lds(args) => lds::run(args),
    }
}
