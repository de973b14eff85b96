//! The `twixt` command: parses arguments and configuration, calls the libraries, shows what they
//! conclude. Nothing is computed here that a library could.

mod args;
mod command;
mod exit;
mod input;
mod log;
mod measure;
mod output;
mod plot;
mod progress;
mod records;
mod settings;
mod source;
mod store;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = command::Cli::parse();
    exit::report(command::run(cli))
}
