//! The documentation: builds what is generated, and checks what is written.

mod index;
mod links;
mod markdown;

use std::fs;

use anyhow::{Context, Result, bail};

use crate::repository::root;
use crate::step::{Steps, cargo};

const ALGORITHMS_FOLDER: &str = "docs/algorithms";
/// Pictures of the pages of the dashboard and of `top`, in folders of their own.
const PICTURES_FOLDER: &str = "docs/images";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Rewrite the generated pages and the pictures of the dashboard and of `top` instead of checking them
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let steps = Steps::start();
    if arguments.write {
        write_index()?;
        draw_screens(&steps)?;
    }
    check(&steps)
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

/// Takes pictures of what the demo looks like in a browser and on a terminal, and of the page that the demo has no
/// data for. Without a browser, or without Python, the old ones stay, and the tests say so.
fn draw_screens(steps: &Steps) -> Result<()> {
    let folder = root().join(PICTURES_FOLDER);
    let draw = |what: &str, package: &str, tests: &[&str]| {
        let mut test = cargo(&["test", "--package", package, "--test", "it", "--"]);
        steps.run(what, test.args(tests).arg("--nocapture").env("TWIXT_PICTURES", &folder))
    };
    draw("pictures of the demo", "twixt", &["dashboard::", "top::pictures::"])?;
    draw("pictures of round trips", "twixt-collector", &["what_single_points_measure"])
}

fn write_index() -> Result<()> {
    let folder = root().join(ALGORITHMS_FOLDER);
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join(index::FILE), index::page()))
        .with_context(|| format!("cannot write {}/{}", folder.display(), index::FILE))
}
