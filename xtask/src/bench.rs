//! Runs the benchmark program, which is an example of the `twixt` crate.

use anyhow::Result;

use crate::step::{self, cargo};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Passed on to the benchmark program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    passed_on: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    // Whole commands are measured too, so the binary itself must be there.
    step::run(&mut cargo(&["build", "--release", "--package", "twixt", "--bin", "twixt"]))?;
    let program = cargo(&["run", "--release", "--package", "twixt", "--example", "bench", "--"]);
    step::run({ program }.args(&arguments.passed_on))
}
