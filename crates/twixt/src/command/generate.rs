//! `twixt generate`: files that belong to the command but are made from it.

mod grafana;
mod man;
mod systemd;

use std::io;
use std::path::PathBuf;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;
use crate::exit::Exit;
use crate::output;
use systemd::Service;

/// Manual pages, shell completions, systemd units, a dashboard, and the description of the query
/// API
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    /// The manual page, or with --out one page per command into a directory
    Man {
        /// Directory to write to
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Completions for a shell, to standard output
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// The OpenAPI description of the collector's query API, to standard output
    Openapi,
    /// A Grafana dashboard of the collector's metrics, to standard output
    Grafana,
    /// A systemd unit, to standard output
    Systemd {
        /// Which service
        #[arg(value_enum, default_value = "agent")]
        service: Service,
        /// User that it runs as
        #[arg(long, value_name = "NAME", default_value = "twixt")]
        user: String,
        /// Its configuration [default: /etc/twixt/agent.toml or /etc/twixt/collector.toml]
        #[arg(long = "configuration", value_name = "FILE")]
        configuration: Option<String>,
        /// Path of the program
        #[arg(long, value_name = "FILE", default_value = "/usr/bin/twixt")]
        program: String,
    },
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let mut command = Cli::command();
    match args {
        Args::Man { out: None } => output::bytes(&man::page(&command, "twixt")?)?,
        Args::Man { out: Some(folder) } => {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
            man::write_all(&mut command, folder)?;
        }
        Args::Openapi => output::text(&twixt_collector::api::openapi())?,
        Args::Grafana => output::text(grafana::DASHBOARD)?,
        Args::Systemd { service, user, configuration, program } => {
            let default = match service {
                Service::Agent => "/etc/twixt/agent.toml",
                Service::Collector => "/etc/twixt/collector.toml",
            };
            let configuration = configuration.as_deref().unwrap_or(default);
            output::text(&systemd::unit(*service, program, configuration, user))?;
        }
        Args::Completions { shell } => {
            // Into memory first: a reader that has seen enough must not make this panic.
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut command, "twixt", &mut script);
            io::Write::write_all(&mut io::stdout().lock(), &script)?;
        }
    }
    Ok(Exit::Done)
}
