//! The `twixt` command: parses arguments and configuration, calls the libraries, shows what they
//! conclude. Nothing is computed here that a library could.

mod args;
mod bundle;
mod command;
mod configuration;
mod exit;
mod flow_record_input;
mod frame_input;
mod interruption;
mod logging;
mod output;
mod plot;
mod progress;
mod remarks;
mod signals;

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A collector runs for months: what its threads free must go back to the system.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    exit::report(command::run(command::Cli::from_command_line()))
}
