//! Commands run one after the other, each with a heading; the first that fails ends it.

use std::ffi::OsString;
use std::fmt;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

use crate::repository;

/// A sequence of steps.
pub(crate) struct Steps {
    started: Instant,
}

impl Steps {
    /// The clock starts now.
    pub(crate) fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// Says what comes next, and how long it took to get here.
    pub(crate) fn announce(&self, title: &str) {
        eprintln!("=== {title} ({:.1} s since start)", self.started.elapsed().as_secs_f64());
    }

    /// Announces a command and runs it.
    pub(crate) fn run(&self, title: &str, command: &mut Command) -> Result<()> {
        self.announce(title);
        run(command)
    }
}

/// A command failed. Its own output says why.
#[derive(Debug)]
pub(crate) struct StepFailed {
    command: String,
    /// `None` if a signal ended it.
    code: Option<i32>,
}

impl StepFailed {
    /// Success is not a failure.
    pub(crate) fn check(command: String, status: ExitStatus) -> Result<(), Self> {
        if status.success() { Ok(()) } else { Err(Self { command, code: status.code() }) }
    }

    /// The code of the command, for our own exit.
    pub(crate) fn exit_code(&self) -> ExitCode {
        let code = self.code.and_then(|code| u8::try_from(code).ok());
        code.filter(|&code| code != 0).map_or(ExitCode::FAILURE, ExitCode::from)
    }
}

impl fmt::Display for StepFailed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(formatter, "`{}` failed with code {code}", self.command),
            None => write!(formatter, "`{}` was ended by a signal", self.command),
        }
    }
}

impl std::error::Error for StepFailed {}

/// A program, to be run in the repository's root without standard input.
pub(crate) fn program(name: impl Into<OsString>) -> Command {
    let mut command = Command::new(name.into());
    command.current_dir(repository::root()).stdin(Stdio::null());
    command
}

/// The cargo that runs us.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

/// Runs a command to its end; its output is ours.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command.status().with_context(|| format!("cannot run `{shown}`"))?;
    Ok(StepFailed::check(shown, status)?)
}

/// Whether a command exists and works; its output is discarded.
pub(crate) fn works(command: &mut Command) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// The command as one would type it.
pub(crate) fn show(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(script: &str, expected: Option<i32>) {
        let outcome = run(program("sh").args(["-c", script]));
        let code = outcome.err().map(|error| error.downcast::<StepFailed>().unwrap().code.unwrap());
        assert_eq!(code, expected, "{script}");
    }

    #[test]
    fn the_code_of_a_failed_command_is_kept() {
        check("exit 0", None);
        check("exit 101", Some(101));
        check("read line", Some(1)); // no standard input
    }

    #[test]
    fn commands_are_shown_as_typed() {
        assert_eq!(show(program("/usr/bin/echo").args(["a", "b"])), "echo a b");
    }

    #[test]
    fn a_program_that_is_not_there_does_not_work() {
        assert!(!works(&mut program("twixt-has-no-such-program")));
        assert!(works(program("sh").args(["-c", "exit 0"])));
    }
}
