//! Attacks the program with hostile traffic, by `crates/twixt-attack`.

use anyhow::Result;

use crate::repository;
use crate::step::{self, cargo};

/// What `--page` writes.
const PAGE: &str = "docs/robustness.md";
/// Outcomes of the run that writes the page: if it is interrupted, the same command continues it.
const OUTCOMES: &str = "target/attack.jsonl";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run all cells and write docs/robustness.md; some three hours on two processors
    #[arg(long)]
    page: bool,
    /// Passed on, such as --cell 17, --cells 30, --seeds 5, --algorithm lds, --gate, --explore
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    passed_on: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    step::run(&mut cargo(&["build", "--release", "--package", "twixt", "--bin", "twixt"]))?;
    let root = repository::root();
    let mut attack = cargo(&["run", "--quiet", "--release", "--package", "twixt-attack", "--"]);
    attack.arg("--program").arg(root.join("target/release/twixt"));
    if arguments.page {
        attack.arg("--page").arg(root.join(PAGE)).arg("--outcomes").arg(root.join(OUTCOMES));
    }
    step::run(attack.args(&arguments.passed_on))
}
