//! Fuzzing with libFuzzer on stable Rust.
//!
//! `cargo fuzz` is not needed: the passes it asks of the compiler are stable options, and a target
//! is a program like any other. Without a sanitizer there is nothing that wants a nightly
//! toolchain, and little that one would find in code without `unsafe`.

mod libfuzzer;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::repository::{root, target_folder};
use crate::seeds::Seeds;
use crate::step::{self, Steps, cargo, program};

/// Counts edges and compares operands, so that libFuzzer learns from each input. Dead code is kept
/// because the linker would otherwise drop counters and their table of places unevenly.
const INSTRUMENTATION: [&str; 7] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Clink-dead-code",
];

/// Set when cargo calls this program in place of the compiler.
const IS_COMPILER: &str = "TWIXT_INSTRUMENT";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// One target only [default: each in turn]
    target: Option<String>,
    /// How long to run each
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

/// How long a target runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    Seconds(u32),
    /// So many inputs: the same ones on every machine, however fast it is.
    Inputs(u32),
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let steps = Steps::start();
    let length = Length::Seconds(arguments.seconds);
    let seeds = Seeds::Fixed;
    let Some(target) = &arguments.target else { return run_all(&steps, length, seeds) };
    let known = targets()?;
    if !known.contains(target) {
        bail!("no target {target:?}; known are: {}", known.join(", "));
    }
    let folder = build(&steps)?;
    run_target(&steps, &folder, target, length, seeds)
}

/// Builds every target and runs each for so long.
pub(crate) fn run_all(steps: &Steps, length: Length, seeds: Seeds) -> Result<()> {
    let folder = build(steps)?;
    targets()?.iter().try_for_each(|target| run_target(steps, &folder, target, length, seeds))
}

/// Every target is a file.
fn targets() -> Result<Vec<String>> {
    let folder = root().join("fuzz/fuzz_targets");
    let context = || format!("cannot list {}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(context)? {
        let path = entry.with_context(context)?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

/// Builds all targets and says where they are. Only code of our own is instrumented: dependencies are
/// those of every other build.
fn build(steps: &Steps) -> Result<PathBuf> {
    let mut command =
        cargo(&["build", "--package", "twixt-fuzz", "--features", "libfuzzer", "--bins"]);
    let this = std::env::current_exe().context("cannot find this program")?;
    command.env("RUSTC_WORKSPACE_WRAPPER", this).env(IS_COMPILER, "1");
    steps.run("build of the fuzz targets", &mut command)?;
    Ok(target_folder().join("debug"))
}

/// Compiles as cargo asks, with instrumentation; `None` if this is not asked for.
pub(crate) fn compile() -> Option<Result<()>> {
    std::env::var_os(IS_COMPILER)?;
    let mut asked = std::env::args_os().skip(1);
    let compiler = asked.next()?;
    Some(step::run(program(compiler).args(asked).args(INSTRUMENTATION)))
}

fn run_target(
    steps: &Steps,
    folder: &Path,
    target: &str,
    length: Length,
    seeds: Seeds,
) -> Result<()> {
    steps.announce(&match length {
        Length::Seconds(seconds) => format!("fuzz {target}, {seconds} s"),
        Length::Inputs(inputs) => format!("fuzz {target}, {inputs} inputs"),
    });
    libfuzzer::run(&folder.join(target), target, length, seeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_seeds() {
        let targets = targets().unwrap();
        assert!(targets.contains(&"frame".to_owned()), "{targets:?}");
        for target in targets {
            let seeds = root().join("fuzz/seeds").join(&target);
            assert!(fs::read_dir(&seeds).unwrap().count() > 0, "{target}");
        }
    }
}
