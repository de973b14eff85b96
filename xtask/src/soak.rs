//! Runs the soak program, which is an example of the `twixt` crate, in a network namespace.

use anyhow::Result;

use crate::repository;
use crate::step::{self, cargo, program};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long
    #[arg(default_value_t = 120)]
    minutes: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    step::run(&mut cargo(&["build", "--release", "--package", "twixt", "--bin", "twixt"]))?;
    step::run(&mut cargo(&["build", "--release", "--package", "twixt", "--example", "soak"]))?;
    let soak = repository::target_folder().join("release/examples/soak");
    step::run(program("unshare").arg("--net").arg(soak).arg(arguments.minutes.to_string()))
}
