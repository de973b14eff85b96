//! `twixt evaluate`: the published experiments, rerun.

mod page;
mod report;
mod trials;

use std::collections::BTreeSet;
use std::path::PathBuf;

use twixt_evaluate::{EXPERIMENTS, Experiment, Size, Summary, find};

use crate::exit::{Exit, usage};
use crate::output::{self, Format};

use self::report::Document;

/// Rerun the published experiments and compare the results
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Experiments to run
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// List the experiments
    #[arg(long, exclusive = true)]
    list: bool,
    /// Run all of them
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Less traffic and fewer seeds; all experiments unless some are named
    #[arg(long)]
    quick: bool,
    /// Seeds of each experiment [default: as the experiment requires]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: Option<u64>,
    /// Write a page, plots and the measured numbers here; an interrupted run resumes from there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Output format: human or json
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
}

/// An experiment and its trials.
struct Evaluated {
    experiment: &'static Experiment,
    seeds: u64,
    summary: Summary,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    if args.list {
        return output::text(&report::list()).map(|()| Exit::Done);
    }
    let size = if args.quick { Size::Quick } else { Size::Full };
    let chosen = args.chosen()?;
    let evaluated = trials::run(&chosen, size, args.seeds, args.out.as_deref())?;
    if let Some(folder) = &args.out {
        page::write(folder, size, args.seeds, &evaluated)?;
    }
    let document = Document::of(&evaluated);
    match args.format {
        Format::Human => output::text(&report::text(&evaluated))?,
        Format::Json => output::json(&document)?,
        Format::Jsonl => output::jsonl(&document.experiments)?,
        Format::Csv => output::csv(document.rows())?,
    }
    Ok(Exit::Done)
}

impl Args {
    fn chosen(&self) -> anyhow::Result<Vec<&'static Experiment>> {
        if self.names.is_empty() {
            return match self.all || self.quick {
                true => Ok(EXPERIMENTS.to_vec()),
                false => Err(usage("name experiments (see --list), or use --all or --quick")),
            };
        }
        let known = |name: &String| {
            find(name).ok_or_else(|| usage(format!("unknown experiment {name:?}; see --list")))
        };
        let mut names = self.names.clone();
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names.iter().map(known).collect()
    }
}
