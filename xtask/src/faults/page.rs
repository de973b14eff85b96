//! The page on reliability: what is promised, what is simulated, and what came of it.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use super::planted::{self, Found};
use crate::repository;
use crate::step::cargo;

const PAGE: &str = "docs/reliability.md";
/// The page without its figures.
const TEXT: &str = include_str!("page.md");
/// A planted fault must be found by so many stories.
const PLANTED_SEEDS: u64 = 1_000;

/// Runs so many stories and plants the known faults, and writes the page.
pub(super) fn write(seeds: u64) -> Result<()> {
    let mut command = cargo(&["run", "--quiet", "--release", "--package", "twixt-faults", "--"]);
    let output = command.arg(format!("--seeds={seeds}")).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "a story failed; the page is not written:\n{text}");
    write_with(&text)
}

/// The same with what an earlier run printed.
pub(super) fn write_from(file: &Path) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    write_with(&text)
}

fn write_with(printed: &str) -> Result<()> {
    let stories = printed.lines().find(|line| line.split(' ').nth(1) == Some("stories,"));
    let stories = stories.context("the simulation says nothing")?;
    ensure!(!printed.contains("repeat with: "), "a story failed; the page is not written");
    let planted = planted::run(PLANTED_SEEDS)?;
    let page = TEXT.replace("{stories}", stories).replace("{planted}", &table(&planted));
    let path = repository::root().join(PAGE);
    fs::write(&path, page).with_context(|| path.display().to_string())
}

fn table(planted: &[Found]) -> String {
    let mut rows = String::from("| planted fault | found by seed |\n|---|---|\n");
    for Found { what, failure, .. } in planted {
        let seed = failure.as_ref().map_or("none".to_owned(), |(seed, _)| seed.to_string());
        rows += &format!("| {what} | {seed} |\n");
    }
    rows
}
