//! Simulates faults with `crates/twixt-faults`, and proves with planted faults that it finds them.

mod page;
mod planted;

use std::path::PathBuf;

use anyhow::Result;

use crate::step::{self, cargo};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many stories; each follows from its seed
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Tell the story of this seed
    #[arg(long)]
    seed: Option<u64>,
    /// End each story after so many steps
    #[arg(long)]
    steps: Option<u64>,
    /// Plant each known fault in a copy of the source, and require that it is found
    #[arg(long, conflicts_with = "seed")]
    planted: bool,
    /// Run the stories, then plant the known faults, and write docs/reliability.md
    #[arg(long, conflicts_with_all = ["seed", "planted"])]
    page: bool,
    /// With --page: take what an earlier run of the stories printed, instead of running them
    #[arg(long, value_name = "FILE", requires = "page")]
    stories: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match arguments {
        Arguments { page: true, stories: Some(file), .. } => page::write_from(file),
        Arguments { page: true, .. } => page::write(arguments.seeds),
        Arguments { planted: true, .. } => planted::run(arguments.seeds).map(drop),
        _ => step::run(
            cargo(&["run", "--quiet", "--package", "twixt-faults", "--"]).args(words(arguments)),
        ),
    }
}

/// What the simulation is told.
fn words(arguments: &Arguments) -> Vec<String> {
    let Arguments { seeds, first, seed, steps, .. } = arguments;
    let mut words = vec![format!("--seeds={seeds}"), format!("--first={first}")];
    words.extend(seed.map(|seed| format!("--seed={seed}")));
    words.extend(steps.map(|steps| format!("--steps={steps}")));
    words
}
