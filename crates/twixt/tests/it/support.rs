//! What the tests of the command share: running it, making captures, finding real ones.

mod captures;
pub(crate) mod collector;
pub(crate) mod dice;
mod frames;
#[cfg(target_os = "linux")]
pub(crate) mod live;
#[cfg(target_os = "linux")]
pub(crate) mod testbed;

pub(crate) use captures::{Capture, Crossing, MILLISECOND, SECOND, START, Scene};
pub(crate) use frames::Packet;

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// How a run of the command ended, and its output.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the command, in an environment without settings of its user.
pub(crate) fn twixt<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Run {
    run(command().args(arguments).stdin(Stdio::null()))
}

/// Runs the command with arguments separated by spaces in a folder, for paths without any.
pub(crate) fn twixt_in(folder: &Path, arguments: &str) -> Run {
    run(command().args(arguments.split_whitespace()).current_dir(folder).stdin(Stdio::null()))
}

/// As [`twixt_in`], with `input` on standard input.
pub(crate) fn twixt_fed(folder: &Path, arguments: &str, input: &[u8]) -> Run {
    let mut child = command()
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // Whether it reads all of it is the command's affair.
    let _ = child.stdin.take().expect("it was asked for").write_all(input);
    ended(&child.wait_with_output().expect("the command ends"))
}

/// The command, not yet started.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_twixt"));
    command.env_remove("TWIXT_CONFIG").env_remove("TWIXT_KEY");
    command
}

fn run(command: &mut Command) -> Run {
    ended(&command.output().expect("the command starts"))
}

fn ended(output: &std::process::Output) -> Run {
    // What `record` writes is not text.
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Run { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

impl Run {
    /// Checks the exit code, and that nothing panicked.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// Checks that standard error says all of `parts`.
    #[track_caller]
    pub(crate) fn says(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not said in: {}", self.stderr);
        }
        self
    }

    /// Checks that standard error is empty.
    #[track_caller]
    pub(crate) fn silent(self) -> Self {
        assert_eq!(self.stderr, "");
        self
    }

    /// Standard output as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", self.stdout, self.stderr))
    }

    /// Standard output as one JSON document per line.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let read = |line| serde_json::from_str(line).expect("every line is JSON");
        self.stdout.lines().map(read).collect()
    }
}

/// The number at a JSON pointer.
#[track_caller]
pub(crate) fn number(document: &Value, pointer: &str) -> i64 {
    let value = document.pointer(pointer);
    value
        .and_then(Value::as_i64)
        .unwrap_or_else(|| panic!("{pointer} is {value:?}, not a whole number, in {document}"))
}

/// Of a document's only estimate: packets, used, lost.
#[track_caller]
pub(crate) fn evidence(document: &Value) -> [i64; 3] {
    assert_eq!(document["estimates"].as_array().map(Vec::len), Some(1), "in {document}");
    ["packets", "used", "lost"].map(|key| number(document, &format!("/estimates/0/{key}")))
}

/// A folder that goes away with the value.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder can be made")
}
