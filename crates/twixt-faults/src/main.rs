//! `cargo xtask faults`: runs stories of faults.

use std::process::ExitCode;

use clap::Parser;
use twixt_faults::Outcome;
use twixt_faults::seeds::{Stories, StoryTotals, run_all};

/// Simulate faults of disks, networks, clocks and processes
#[derive(Parser)]
#[command(bin_name = "cargo xtask faults")]
struct Arguments {
    /// How many stories
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// Tell the story of this seed
    #[arg(long)]
    seed: Option<u64>,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// End each story after so many steps
    #[arg(long, default_value_t = u64::MAX)]
    steps: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.seed {
        Some(seed) => tell(seed, arguments.steps),
        None => run_many(&arguments),
    }
}

fn tell(seed: u64, steps_max: u64) -> ExitCode {
    let ended = twixt_faults::run(seed, steps_max, true);
    match ended {
        Ok(Outcome { trace, steps, stored, estimated, story }) => {
            story.iter().for_each(|line| println!("{line}"));
            println!(
                "seed {seed}: all holds; {steps} steps, {stored} epochs stored, {estimated} estimated, \
                 trace {trace:016x}"
            );
            ExitCode::SUCCESS
        }
        Err(failure) => {
            failure.story.iter().for_each(|line| println!("{line}"));
            println!("seed {seed}: {}", failure.problem);
            ExitCode::FAILURE
        }
    }
}

fn run_many(arguments: &Arguments) -> ExitCode {
    let Arguments { seeds: count, first, steps: steps_max, .. } = *arguments;
    let stories = Stories { first, count, steps_max, progress_every: (count / 20).max(100) };
    let summary = run_all(stories);
    let StoryTotals { stories, steps, stored, estimated, seconds, .. } = &summary;
    println!(
        "{stories} stories, {steps} steps, {stored} epochs stored, {estimated} estimated, \
         {seconds:.1} s"
    );
    let Some((seed, failure)) = &summary.failure else { return ExitCode::SUCCESS };
    failure.story.iter().for_each(|line| println!("{line}"));
    println!("seed {seed}: {}", failure.problem);
    println!("repeat with: cargo xtask faults --seed {seed}");
    ExitCode::FAILURE
}
