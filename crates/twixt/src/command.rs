//! The subcommands, one file each.

mod agent;
mod algorithm_help;
mod check;
mod collector;
mod config;
mod delay;
mod demo;
mod doctor;
mod evaluate;
mod examples;
mod flow;
mod generate;
mod heavy;
mod info;
mod one_point;
mod path;
mod plan;
mod query;
mod record;
mod reorder;
mod rtt;
mod simulate;
mod top;
mod verify;
mod view;

pub(crate) use rtt::{Watched, WatchedEpoch};

use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::configuration::Configuration;
use crate::exit::Exit;

/// What happens to your packets betwixt two points of your network: how late, how variable, how
/// many lost, for every flow, from kilobytes of state, with no probe packets and no change to any
/// packet.
#[derive(Parser)]
#[command(name = "twixt", version, about, max_term_width = 100)]
pub(crate) struct Cli {
    /// Configuration file with your own defaults; see `twixt config init`
    #[arg(long, global = true, value_name = "FILE", env = "TWIXT_CONFIG")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Delay(delay::Args),
    Path(path::Args),
    Verify(verify::Args),
    Heavy(heavy::Args),
    Reorder(reorder::Args),
    Record(record::Args),
    Agent(agent::Args),
    Query(query::Args),
    Top(top::Args),
    Check(check::Args),
    Rtt(rtt::Args),
    Info(info::Args),
    #[command(subcommand)]
    Flow(flow::Args),
    Simulate(simulate::Args),
    View(view::Args),
    Demo(demo::Args),
    Doctor(doctor::Args),
    Evaluate(evaluate::Args),
    Collector(collector::Args),
    #[command(subcommand)]
    Plan(plan::Args),
    #[command(subcommand)]
    Config(config::Args),
    #[command(subcommand)]
    Generate(generate::Args),
}

impl Cli {
    /// Reads the command line, or ends with help or what is wrong with it.
    pub(crate) fn from_command_line() -> Self {
        let command = Self::command();
        if let Some(help) = algorithm_help::asked(command.clone(), std::env::args_os()) {
            // Whoever closed the pipe has read enough.
            let _ = crate::output::text(&help);
            std::process::exit(0);
        }
        let matches = examples::with_examples(algorithm_help::hidden(command)).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// Runs what was asked for.
pub(crate) fn run(cli: Cli) -> anyhow::Result<Exit> {
    let config = cli.config.as_deref();
    let configuration = match &cli.command {
        // The files of services are of other kinds.
        Command::Agent(_) | Command::Collector(_) => Configuration::default(),
        _ => Configuration::load(cli.config.as_ref())?,
    };
    match cli.command {
        Command::Agent(args) => agent::run(args, config),
        Command::Delay(args) => delay::run(&args.with(&configuration)),
        Command::Path(args) => path::run(&args.with(&configuration)),
        Command::Verify(args) => verify::run(&args.with(&configuration)),
        Command::Heavy(args) => heavy::run(&args.with(&configuration)),
        Command::Reorder(args) => reorder::run(&args.with(&configuration)),
        Command::Record(args) => record::run(&args.with(&configuration)),
        Command::Query(args) => query::run(&args.with(&configuration)),
        Command::Top(args) => top::run(args),
        Command::Check(args) => check::run(&args),
        Command::Rtt(args) => rtt::run(&args.with(&configuration)),
        Command::Info(args) => info::run(&args),
        Command::Flow(args) => flow::run(args, &configuration),
        Command::Simulate(args) => simulate::run(&args),
        Command::View(args) => view::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Evaluate(args) => evaluate::run(&args),
        Command::Collector(args) => collector::run(&args, config),
        Command::Plan(args) => plan::run(&args),
        Command::Config(args) => config::run(&args, &configuration),
        Command::Generate(args) => generate::run(&args),
    }
}
