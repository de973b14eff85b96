//! `twixt plan`: how much memory for how small an error, and where to begin. One file for each
//! thing to plan.

mod colate;
mod fridge;
mod lda;
mod lds;
mod picture;
mod upgrade;

use serde::Serialize;

use crate::exit::Exit;
use crate::output::{self, Format};

/// Size a synopsis for the expected traffic and loss; choose routers to upgrade
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

/// Prints a plan, or where a format has one row on each line, what is expected of it.
fn show<T: Serialize>(
    format: Format,
    document: &impl Serialize,
    report: &str,
    expected: &[T],
) -> anyhow::Result<Exit> {
    match format {
        Format::Human => output::text(report)?,
        Format::Json => output::json(document)?,
        Format::Jsonl => output::jsonl(expected)?,
        Format::Csv => output::csv(expected)?,
    }
    Ok(Exit::Done)
}
