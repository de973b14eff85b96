//! Every check, in order of speed; the tests come last, so that the output ends in their summary.

mod runner;
mod skips;

use anyhow::Result;

use crate::seeds::Seeds;
use crate::step::{Steps, cargo};
use crate::{docs, fuzz, setup};

/// Of each fuzz target.
const FUZZ_LENGTH: fuzz::Length = fuzz::Length::Inputs(10_000);

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Install nothing; tests that lack something are skipped
    #[arg(long)]
    no_setup: bool,
    /// Draw new seeds (or take SEED, to repeat a run), and also run the tests that take minutes
    #[arg(long, value_name = "SEED", num_args = 0..=1, require_equals = true)]
    explore: Option<Option<u64>>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let steps = Steps::start();
    let seeds = Seeds::of(arguments.explore);
    steps.announce(&format!("set-up; {seeds}"));
    match arguments.no_setup {
        true => setup::report_missing(),
        false => setup::install_for_tests(),
    }
    steps.run("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    let lint = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    steps.run("lint", &mut cargo(&lint))?;
    docs::check(&steps)?;
    fuzz::run_all(&steps, FUZZ_LENGTH, seeds)?;
    let examples = ["test", "--doc", "--workspace"];
    steps.run("examples in the documentation", &mut cargo(&examples))?;
    steps.announce("tests");
    runner::run(seeds)
}
