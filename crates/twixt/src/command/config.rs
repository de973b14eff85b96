//! `twixt config`: the configuration file.

use std::path::PathBuf;

use crate::configuration::{self, Configuration};
use crate::exit::{Exit, note};
use crate::output;

/// Create, check or show the configuration file
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    /// Print a file to start from, with every key explained
    Init,
    /// Check a file; exit code 2 and a message if something is wrong
    Check {
        /// The file
        file: PathBuf,
    },
    /// Print the effective configuration, without its key
    Dump,
}

pub(crate) fn run(args: &Args, configuration: &Configuration) -> anyhow::Result<Exit> {
    match args {
        Args::Init => output::text(&configuration::template())?,
        Args::Check { file } => {
            Configuration::load(Some(file))?;
            note(format_args!("{} is valid", file.display()));
        }
        Args::Dump => output::text(&toml::to_string(&configuration.in_effect())?)?,
    }
    Ok(Exit::Done)
}
