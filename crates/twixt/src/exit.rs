//! How the command ends, and what it says when it fails.

use std::fmt;
use std::io;
use std::process::ExitCode;

use twixt_offline::{ErrorKind, OfflineError};

use crate::interruption;
use crate::remarks::advice;

/// How the command ends; the numbers are part of the contract with users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// Failed.
    Failed = 1,
    /// The command line or the configuration makes no sense.
    Usage = 2,
    /// Done, but a part of the input was unusable.
    Partial = 3,
    /// Not enough data to answer.
    NoAnswer = 4,
    /// A threshold was broken.
    Broken = 10,
    /// The user interrupted; what was measured before that was written.
    Interrupted = 130,
}

impl Exit {
    fn of(error: &OfflineError) -> Self {
        match error.kind() {
            ErrorKind::Usage => Self::Usage,
            ErrorKind::NoAnswer => Self::NoAnswer,
            ErrorKind::Failure => Self::Failed,
            ErrorKind::Interrupted => Self::Interrupted,
        }
    }

    /// The worse of two.
    pub(crate) fn or_partial(self, partial: bool) -> Self {
        if self == Self::Done && partial { Self::Partial } else { self }
    }

    /// The same, unless the user interrupted.
    pub(crate) fn or_interrupted(self) -> Self {
        if interruption::is_requested() { Self::Interrupted } else { self }
    }

    /// There is not enough data to answer: an error, unless the user did not want to wait for it.
    pub(crate) fn without_answer(self, message: impl Into<String>) -> anyhow::Result<Self> {
        if self != Self::Interrupted {
            return Err(no_answer(message));
        }
        note(message.into());
        Ok(self)
    }
}

/// An error that ends the command in a particular way.
#[derive(Debug)]
struct Failure {
    exit: Exit,
    message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The command line makes no sense.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Failure { exit: Exit::Usage, message: message.into() })
}

/// There is not enough data to answer.
pub(crate) fn no_answer(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Failure { exit: Exit::NoAnswer, message: message.into() })
}

/// The user interrupted, and so the command has nothing to show.
pub(crate) fn interrupted(message: &str) -> anyhow::Error {
    anyhow::Error::new(Failure {
        exit: Exit::Interrupted,
        message: format!("interrupted: {message}"),
    })
}

/// Says on standard error what the user should know but did not ask for.
pub(crate) fn note(message: impl fmt::Display) {
    eprintln!("twixt: {message}");
}

/// The process's exit code; errors are reported on standard error.
pub(crate) fn report(result: anyhow::Result<Exit>) -> ExitCode {
    let exit = match result {
        Ok(exit) => exit,
        Err(error) if is_broken_pipe(&error) => Exit::Done,
        Err(error) => {
            let offline = error.downcast_ref::<OfflineError>();
            match offline.and_then(advice) {
                Some(advice) => note(format_args!("{}: {advice}", explained(&error))),
                None => note(explained(&error)),
            }
            let failure = error.downcast_ref::<Failure>().map(|failure| failure.exit);
            failure.or(offline.map(Exit::of)).unwrap_or(Exit::Failed)
        }
    };
    ExitCode::from(exit as u8)
}

/// An error and its causes. Many an error names its cause already.
pub(crate) fn explained(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// The reader of our output has closed it: that is not an error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}
