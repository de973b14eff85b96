//! Simulates faults with `crates/twixt-faults`.

use anyhow::Result;

use crate::step::{self, cargo};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Passed on to the simulation (`cargo xtask faults -- --help`)
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    passed_on: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut simulation = cargo(&["run", "--quiet", "--package", "twixt-faults", "--"]);
    step::run(simulation.args(&arguments.passed_on))
}
