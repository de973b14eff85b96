//! Automation of twixt, and the only place for it: `cargo xtask <what>`.
//!
//! Everything that runs in continuous integration runs here, so that it runs the same at home.

mod attack;
mod bench;
mod docs;
mod faults;
mod fuzz;
mod repository;
mod seeds;
mod setup;
mod soak;
mod step;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::step::StepFailed;

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "Automation of twixt")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what is missing, or say how
    Setup,
    /// Run every check; the tests come last
    Test(test::Arguments),
    /// Run the benchmark program
    Bench(bench::Arguments),
    /// Run agents and a collector for hours, and see whether they stay as they are; needs root
    Soak(soak::Arguments),
    /// Feed hostile bytes to the parsers
    Fuzz(fuzz::Arguments),
    /// Simulate faults of disks, networks, clocks and processes
    Faults(faults::Arguments),
    /// Attack the program with hostile traffic, and judge its answers
    Attack(attack::Arguments),
    /// Build the API documentation and check the book
    Docs(docs::Arguments),
}

fn main() -> ExitCode {
    if let Some(compiled) = fuzz::compile() {
        return report(compiled);
    }
    report(match Arguments::parse().task {
        Task::Setup => setup::install_all(),
        Task::Test(arguments) => test::run(&arguments),
        Task::Bench(arguments) => bench::run(&arguments),
        Task::Soak(arguments) => soak::run(&arguments),
        Task::Fuzz(arguments) => fuzz::run(&arguments),
        Task::Faults(arguments) => faults::run(&arguments),
        Task::Attack(arguments) => attack::run(&arguments),
        Task::Docs(arguments) => docs::run(&arguments),
    })
}

fn report(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            error.downcast_ref().map_or(ExitCode::FAILURE, StepFailed::exit_code)
        }
    }
}
