//! `twixt collector ca`: certificates without openssl.

use std::path::PathBuf;

use twixt_collector::access::PointPattern;
use twixt_collector::authority::{self, AuthorityError, CERTIFICATE_DAYS, Issued};

use crate::exit::{Exit, note, usage};

/// A certificate authority for collector and agents
#[derive(clap::Subcommand)]
pub(crate) enum Args {
    /// Create an authority, and the collector's certificate
    Init {
        /// Directory for them, created if missing
        directory: PathBuf,
        /// Name or address under which agents reach the collector; repeatable
        #[arg(long = "name", value_name = "HOST", required = true, num_args = 1..)]
        names: Vec<String>,
        /// Lifetime of the collector's certificate
        #[arg(long, value_name = "DAYS", default_value_t = CERTIFICATE_DAYS,
              value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: u32,
    },
    /// Sign a certificate for an agent
    Issue {
        /// Directory of the authority
        directory: PathBuf,
        /// Name of the agent, and of its files
        name: String,
        /// A point that the agent may write, or a prefix and *; repeatable
        #[arg(long = "point", value_name = "POINT", required = true)]
        points: Vec<PointPattern>,
        /// Lifetime of the certificate
        #[arg(long, value_name = "DAYS", default_value_t = CERTIFICATE_DAYS,
              value_parser = clap::value_parser!(u32).range(1..=36_500))]
        days: u32,
    },
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let issued = match args {
        Args::Init { directory, names, days } => {
            authority::init(directory, names, *days).map(Vec::from)
        }
        Args::Issue { directory, name, points, days } => {
            authority::issue(directory, name, points, *days).map(|issued| vec![issued])
        }
    };
    for Issued { certificate, key, days } in issued.map_err(failure)? {
        note(format_args!(
            "{} and its key {}, for {days} days",
            certificate.display(),
            key.display()
        ));
    }
    Ok(Exit::Done)
}

fn failure(error: AuthorityError) -> anyhow::Error {
    match error {
        AuthorityError::File { .. } | AuthorityError::Make(_) => error.into(),
        mistake => usage(mistake.to_string()),
    }
}
