//! Running one target, which is a program with libFuzzer in it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::Length;
use crate::repository::root;
use crate::seeds::Seeds;
use crate::step::{StepFailed, program};

/// What no input of a few kilobytes may make us take, in seconds.
const TIME_LIMIT: &str = "-timeout=10";
/// What no input of a few kilobytes may make us reserve, used or not: 2 GiB, in KiB. libFuzzer's
/// own limit sees memory only once it is used.
const WITHIN_MEMORY: &str = "ulimit -v 2097152 && exec \"$0\" \"$@\"";

/// How libFuzzer says that it will learn from what it tries.
const INSTRUMENTED: &str = "inline 8-bit counters";
/// Lines that say nothing to people.
const NOISE: &[&str] = &[
    "NEW_FUNC[",
    "\tNEW ",
    "\tREDUCE ",
    "\tRELOAD ",
    "# Uses: ",
    "ecommended dictionary",
    "Failed to find function \"__sanitizer",
    "INFO: ",
];

/// Runs a target for so long. What it finds lies in `fuzz/artifacts` afterwards.
pub(super) fn run(program_path: &Path, target: &str, length: Length, random: Seeds) -> Result<()> {
    let mut command = command(program_path, target, length, random)?;
    let shown = format!("fuzz target {target}");
    let mut child = command.spawn().with_context(|| format!("cannot run {shown}"))?;
    let output = child.stderr.take().expect("it was asked for");
    let instrumented = pass_on(BufReader::new(output));
    let status = child.wait().with_context(|| format!("cannot wait for {shown}"))?;
    StepFailed::check(shown, status)?;
    ensure!(instrumented, "{target} was built without instrumentation, so it fuzzed blindly");
    Ok(())
}

fn command(program_path: &Path, target: &str, length: Length, random: Seeds) -> Result<Command> {
    let folder = |kind: &str| root().join("fuzz").join(kind).join(target);
    // libFuzzer writes what it learns into the first folder; the seeds are only read.
    let (corpus, seeds, artifacts) = (folder("corpus"), folder("seeds"), folder("artifacts"));
    for folder in [&corpus, &artifacts] {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    let mut command = program("sh");
    command
        .args(["-c", WITHIN_MEMORY])
        .arg(program_path)
        .arg(format!("-seed={}", random.of_fuzzer()))
        .arg(TIME_LIMIT)
        .arg(match length {
            Length::Seconds(seconds) => format!("-max_total_time={seconds}"),
            Length::Inputs(inputs) => format!("-runs={inputs}"),
        })
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args([corpus, seeds])
        .stderr(Stdio::piped());
    Ok(command)
}

/// Passes on all lines but noise. Says whether the target is instrumented.
fn pass_on(output: impl BufRead) -> bool {
    let mut instrumented = false;
    for line in output.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        instrumented |= line.contains(INSTRUMENTED);
        if !NOISE.iter().any(|noise| line.contains(noise)) {
            eprintln!("{line}");
        }
    }
    instrumented
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_without_instrumentation_is_found_out() {
        assert!(pass_on(&b"INFO: Loaded 1 modules   (7 inline 8-bit counters): 7 [0, 7),\n"[..]));
        assert!(!pass_on(&b"INFO: Running with entropic power schedule\n#2\tINITED\n"[..]));
    }
}
