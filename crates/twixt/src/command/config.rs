//! `twixt config`: the configuration file.

use std::path::PathBuf;

use crate::exit::{Exit, note};
use crate::output;
use crate::settings::{self, Settings};

/// The configuration file: make one, check one, show what is in effect
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    /// Print a file to start from, with every key explained
    Init,
    /// Check a file; exit code 2 and a message if something is wrong
    Check {
        /// The file
        file: PathBuf,
    },
    /// Print what is in effect: the file of --config, without its key
    Dump,
}

pub(crate) fn run(args: &Args, settings: &Settings) -> anyhow::Result<Exit> {
    match args {
        Args::Init => output::text(&settings::template())?,
        Args::Check { file } => {
            Settings::load(Some(file))?;
            note(format_args!("{} is fine", file.display()));
        }
        Args::Dump => output::text(&toml::to_string(&settings.in_effect())?)?,
    }
    Ok(Exit::Done)
}
