//! Plants known faults in a copy of the source, one after the other: the simulation must find each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::repository;
use crate::step::{cargo, program, show};

/// Where the faults are described.
const FOLDER: &str = "crates/twixt-faults/planted";
/// The copy, and what is built of it: shared by all faults.
const COPY: &str = "target/planted/source";
const BUILD: &str = "target/planted/build";

/// A fault: some text of a file that is replaced.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Planted {
    #[serde(skip)]
    name: String,
    /// What is wrong with it.
    what: String,
    file: PathBuf,
    before: String,
    after: String,
}

/// How a fault was found.
pub(crate) struct Found {
    pub(crate) what: String,
    /// The first seed whose story fails, and how; `None` if none does.
    pub(crate) failure: Option<(u64, String)>,
}

/// Plants every fault, and runs up to so many stories with it. Prints a table.
pub(crate) fn run(seeds: u64) -> Result<Vec<Found>> {
    let planted = read_all()?;
    let copy = copy_source()?;
    let mut found = Vec::new();
    for fault in planted {
        let started = Instant::now();
        let failure = run_with(&copy, &fault, seeds)?;
        let seconds = started.elapsed().as_secs_f64();
        match &failure {
            Some((seed, problem)) => {
                println!("{}: found by seed {seed} ({seconds:.0} s): {problem}", fault.name);
            }
            None => println!("{}: NOT FOUND by {seeds} seeds ({seconds:.0} s)", fault.name),
        }
        found.push(Found { what: fault.what, failure });
    }
    let missed = found.iter().filter(|found| found.failure.is_none()).count();
    ensure!(missed == 0, "{missed} of {} planted faults were not found", found.len());
    Ok(found)
}

/// The faults, by name. Each can be planted in the source as it is.
fn read_all() -> Result<Vec<Planted>> {
    let folder = repository::root().join(FOLDER);
    let mut all = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {FOLDER}"))? {
        let path = entry?.path();
        let text = fs::read_to_string(&path)?;
        let fault: Planted = toml::from_str(&text).with_context(|| path.display().to_string())?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let source = fs::read_to_string(repository::root().join(&fault.file))?;
        let places = source.matches(&fault.before).count();
        ensure!(places == 1, "{name}: its text is at {places} places of {}", fault.file.display());
        all.push(Planted { name, ..fault });
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

/// Copies what git knows of, and what it would.
fn copy_source() -> Result<PathBuf> {
    let root = repository::root();
    let copy = root.join(COPY);
    let listed = program("git").args(["ls-files", "-co", "--exclude-standard"]).output()?;
    ensure!(listed.status.success(), "git cannot list the source");
    for name in String::from_utf8(listed.stdout)?.lines() {
        let (from, to) = (root.join(name), copy.join(name));
        // A file that was deleted is still listed.
        let Ok(content) = fs::read(&from) else { continue };
        // What is unchanged need not be built again.
        if fs::read(&to).is_ok_and(|before| before == content) {
            continue;
        }
        fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
        fs::write(&to, content).with_context(|| to.display().to_string())?;
    }
    Ok(copy)
}

/// The first failure with a fault planted; the copy is as it was afterwards.
fn run_with(copy: &Path, fault: &Planted, seeds: u64) -> Result<Option<(u64, String)>> {
    let path = copy.join(&fault.file);
    let source = fs::read_to_string(&path)?;
    fs::write(&path, source.replace(&fault.before, &fault.after))?;
    let outcome = build(copy).and_then(|()| simulate(copy, seeds));
    fs::write(&path, source)?;
    outcome.with_context(|| fault.name.clone())
}

fn build(copy: &Path) -> Result<()> {
    let mut command = cargo(&["build", "--quiet", "--package", "twixt-faults"]);
    let build = repository::root().join(BUILD);
    // A planted fault may leave something unused: what the compiler says of that is of no interest.
    let output = command.current_dir(copy).env("CARGO_TARGET_DIR", build).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{}` failed:\n{said}", show(&command));
    Ok(())
}

fn simulate(copy: &Path, seeds: u64) -> Result<Option<(u64, String)>> {
    let binary = repository::root().join(BUILD).join("debug/twixt-faults");
    let output =
        Command::new(binary).args(["--seeds", &seeds.to_string()]).current_dir(copy).output()?;
    if output.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().rev().find_map(|line| line.strip_prefix("seed "));
    let Some((seed, problem)) = line.and_then(|line| line.split_once(": ")) else {
        bail!("the simulation failed, and does not say why");
    };
    Ok(Some((seed.parse()?, problem.chars().take(160).collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fault whose text is no longer there would be planted in vain.
    #[test]
    fn every_fault_can_be_planted() {
        let planted = read_all().unwrap();
        assert!(planted.len() >= 10, "{} faults", planted.len());
        for fault in planted {
            assert_ne!(fault.before, fault.after, "{}", fault.name);
        }
    }
}
