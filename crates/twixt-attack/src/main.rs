//! `cargo xtask attack`: attacks the program with hostile traffic.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use anyhow::{Context, ensure};
use clap::Parser;
use twixt_attack::{
    Attack, AttackReport, Campaign, DESIGN_SEED, GridCell, covering_design, delay_questions, gate,
    write_cell,
};

/// Attack twixt with hostile traffic, and judge its answers
#[derive(Parser)]
#[command(bin_name = "cargo xtask attack")]
struct Arguments {
    /// The program to attack
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// Run the first so many cells of the design [default: all]
    #[arg(long, value_name = "N")]
    cells: Option<usize>,
    /// Run this cell only, and print what is wrong in it
    #[arg(long, value_name = "N", conflicts_with = "cells")]
    cell: Option<usize>,
    /// Seeds of each cell
    #[arg(long, value_name = "N", default_value_t = 20)]
    seeds: u64,
    /// Run this seed only
    #[arg(long, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Ask this algorithm only
    #[arg(long, value_name = "NAME")]
    algorithm: Option<String>,
    /// Draw another design and other seeds
    #[arg(long)]
    explore: bool,
    /// Use the design of this seed
    #[arg(long, value_name = "SEED", conflicts_with = "explore", default_value_t = DESIGN_SEED)]
    design: u64,
    /// Run the fixed cells of the gate only
    #[arg(long, conflicts_with_all = ["cell", "cells", "explore"])]
    gate: bool,
    /// How many programs run at a time [default: one for each processor]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Append outcomes to this file, and do not run again what it has
    #[arg(long, value_name = "FILE")]
    outcomes: Option<PathBuf>,
    /// Write the page
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cell", "gate", "algorithm"])]
    page: Option<PathBuf>,
    /// With --cell and --seed: write the two captures into this directory
    #[arg(long, value_name = "DIRECTORY", requires_all = ["cell", "seed"])]
    keep: Option<PathBuf>,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let questions = delay_questions(arguments.algorithm.as_deref());
    ensure!(!questions.is_empty(), "there is no such algorithm");
    let attack = Attack { program: arguments.program.clone(), questions };
    if arguments.gate {
        return run_gate(&attack, arguments.threads());
    }
    let design = if arguments.explore { drawn_seed()? } else { arguments.design };
    println!("design {design}");
    let cells = covering_design(design);
    if let (Some(folder), Some(seed)) = (&arguments.keep, arguments.seed) {
        write_cell(cells[arguments.chosen(&cells)?[0]], seed, folder)?;
    }
    let campaign = Campaign {
        attack: &attack,
        cells: &cells,
        chosen: arguments.chosen(&cells)?,
        seeds: arguments.seed.map_or(0..arguments.seeds, |seed| seed..seed + 1),
        threads: arguments.threads(),
    };
    let outcomes = campaign.run(arguments.outcomes.as_deref())?;
    let report = AttackReport::new(&cells, &attack.questions, &outcomes);
    match arguments.cell {
        Some(cell) => print!("{}", report.cell(cell)),
        None => print_summary(&report),
    }
    if let Some(path) = arguments.page {
        fs::write(&path, report.page()).with_context(|| path.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
    }

    /// The numbers of the cells to run.
    fn chosen(&self, cells: &[GridCell]) -> anyhow::Result<Vec<usize>> {
        let range = match (self.cell, self.cells) {
            (Some(cell), _) => cell..cell + 1,
            (None, Some(count)) => 0..count,
            (None, None) => 0..cells.len(),
        };
        ensure!(range.end <= cells.len(), "the design has {} cells", cells.len());
        Ok(range.collect())
    }
}

fn run_gate(attack: &Attack, threads: usize) -> anyhow::Result<ExitCode> {
    let problems = gate(attack, threads)?;
    problems.iter().for_each(|problem| println!("{problem}"));
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_summary(report: &AttackReport<'_>) {
    print!("{}", report.question_table());
    for class in report.red_classes() {
        let (cell, figures) = &class.cells[0];
        println!(
            "{}, {}: {} cells, such as {cell}: {figures}",
            class.question,
            class.kind.name(),
            class.cells.len()
        );
    }
}

/// A new seed. It is printed, so that the run can be repeated with `--design`.
fn drawn_seed() -> anyhow::Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
}
