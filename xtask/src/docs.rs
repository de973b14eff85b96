//! The documentation: builds what is generated, and checks what is written.

mod index;
mod links;
mod markdown;

use std::fs;

use anyhow::{Context, Result, bail};

use crate::repository::root;
use crate::step::{Steps, cargo};

const ALGORITHMS_FOLDER: &str = "docs/algorithms";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Rewrite the generated pages instead of checking them
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.write {
        write_index()?;
    }
    check(&Steps::start())
}

/// Checks the book, then builds the API documentation.
pub(crate) fn check(steps: &Steps) -> Result<()> {
    steps.announce("documentation");
    let mut problems = index::problems(&root().join(ALGORITHMS_FOLDER));
    problems.extend(links::problems(root())?);
    if !problems.is_empty() {
        bail!("the documentation is not in order:\n{}", problems.join("\n"));
    }
    let mut build = cargo(&["doc", "--workspace", "--no-deps"]);
    steps.run("API documentation", build.env("RUSTDOCFLAGS", "-D warnings"))
}

fn write_index() -> Result<()> {
    let folder = root().join(ALGORITHMS_FOLDER);
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join(index::FILE), index::page()))
        .with_context(|| format!("cannot write {}/{}", folder.display(), index::FILE))
}
