//! Runs the tests, and prints what was skipped before the summary, which ends the output.

use std::io::{BufRead, BufReader, IsTerminal};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::skips;
use crate::seeds::Seeds;
use crate::step::{StepFailed, cargo, show, works};

/// Examples have been linted, and those in the documentation have had their turn.
const TARGETS: [&str; 4] = ["--workspace", "--lib", "--bins", "--tests"];
/// Where daemons are, though the search path of a user who is not root may not lead there.
const SYSTEM_PROGRAMS: &str = "/usr/sbin:/sbin";

pub(crate) fn run(seeds: Seeds) -> Result<()> {
    let is_nextest = works(&mut cargo(&["nextest", "--version"]));
    let mut command = if is_nextest { nextest(seeds) } else { libtest(seeds) };
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:{SYSTEM_PROGRAMS}"));
    command.env(skips::VARIABLE, skips::start_record()?);
    seeds.pass_to(&mut command);
    if is_nextest { run_nextest(command) } else { run_libtest(command) }
}

fn nextest(seeds: Seeds) -> Command {
    let mut command = cargo(&["nextest", "run"]);
    command.args(TARGETS);
    if seeds.explores() {
        command.args(["--run-ignored", "all"]);
    }
    command
}

fn libtest(seeds: Seeds) -> Command {
    let mut command = cargo(&["test", "--no-fail-fast"]);
    command.args(TARGETS);
    if seeds.explores() {
        command.args(["--", "--include-ignored"]);
    }
    command
}

/// The summary is the last that nextest writes; it is held back for the table of skips.
fn run_nextest(mut command: Command) -> Result<()> {
    if std::io::stderr().is_terminal() {
        command.args(["--color", "always"]);
    }
    let shown = show(&command);
    let context = || format!("cannot run `{shown}`");
    let mut child = command.stderr(Stdio::piped()).spawn().with_context(context)?;
    let lines = BufReader::new(child.stderr.take().expect("it was asked for")).lines();
    let summary = pass_on(lines.map_while(Result::ok), |line| eprintln!("{line}"));
    let status = child.wait().with_context(context)?;
    skips::print_table()?;
    summary.iter().for_each(|line| eprintln!("{line}"));
    Ok(StepFailed::check(shown, status)?)
}

/// Hands lines to `print` up to the summary, which is returned.
fn pass_on(lines: impl Iterator<Item = String>, mut print: impl FnMut(&str)) -> Vec<String> {
    let mut summary = Vec::new();
    for line in lines {
        if line.contains("Summary") && line.contains(" tests run: ") || !summary.is_empty() {
            summary.push(line);
        } else {
            print(&line);
        }
    }
    summary
}

/// libtest writes a summary for each program; the sum of them ends the output.
fn run_libtest(mut command: Command) -> Result<()> {
    let shown = show(&command);
    let context = || format!("cannot run `{shown}`");
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(context)?;
    let mut sums = Sums::default();
    for line in BufReader::new(child.stdout.take().expect("it was asked for")).lines() {
        let line = line.with_context(context)?;
        sums.add(&line);
        println!("{line}");
    }
    let status = child.wait().with_context(context)?;
    skips::print_table()?;
    let Sums { passed, failed, ignored } = sums;
    println!("{passed} passed, {failed} failed, {ignored} skipped");
    Ok(StepFailed::check(shown, status)?)
}

/// Over all programs.
#[derive(Debug, Default, PartialEq)]
struct Sums {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Sums {
    /// Of `test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured; 3 filtered out; …`.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let words: Vec<&str> = result.split([' ', ';']).collect();
        for pair in words.windows(2) {
            let number = pair[0].parse().unwrap_or(0);
            match pair[1] {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_nextest_is_held_back() {
        let text = "  PASS [ 0.1s] a b\n-----\n  Summary [ 1.0s] 2 tests run: 1 passed, 1 failed\n  FAIL a c";
        let mut printed = Vec::new();
        let summary =
            pass_on(text.lines().map(str::to_owned), |line| printed.push(line.to_owned()));
        assert_eq!(printed, ["  PASS [ 0.1s] a b", "-----"]);
        assert_eq!(summary.len(), 2);
        assert!(summary[1].ends_with("FAIL a c"));
    }

    #[test]
    fn results_of_programs_are_summed() {
        let mut sums = Sums::default();
        sums.add("test result: ok. 12 passed; 0 failed; 2 ignored; 0 measured; 3 filtered out");
        sums.add("test result: FAILED. 1 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out");
        sums.add("test result_of_programs ... ok");
        assert_eq!(sums, Sums { passed: 13, failed: 4, ignored: 2 });
    }
}
