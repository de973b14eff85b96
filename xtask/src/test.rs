//! Every check, in order of speed; the tests come last, so that the output ends in their summary.

use anyhow::Result;

use crate::step::{Steps, cargo, works};
use crate::{docs, fuzz, setup};

/// Of each fuzz target.
const FUZZ_LENGTH: fuzz::Length = fuzz::Length::Inputs(10_000);
const FUZZ_MANIFEST: &[&str] = &["--manifest-path", "fuzz/Cargo.toml"];

pub(crate) fn run() -> Result<()> {
    let steps = Steps::start();
    steps.announce("set-up");
    setup::install_required()?;
    steps.run("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    steps.run("format of the fuzz targets", cargo(&["fmt", "--check"]).args(FUZZ_MANIFEST))?;
    steps.run(
        "lint",
        &mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    )?;
    fuzz::replay_seeds(&steps)?;
    fuzz::run_all(&steps, FUZZ_LENGTH)?;
    steps.run("examples in the documentation", &mut cargo(&["test", "--doc", "--workspace"]))?;
    docs::check(&steps)?;
    run_tests(&steps)
}

fn run_tests(steps: &Steps) -> Result<()> {
    if works(&mut cargo(&["nextest", "--version"])) {
        return steps.run("tests", &mut cargo(&["nextest", "run", "--workspace"]));
    }
    // Examples in the documentation had their turn.
    steps.run("tests", &mut cargo(&["test", "--workspace", "--lib", "--bins", "--tests"]))
}
