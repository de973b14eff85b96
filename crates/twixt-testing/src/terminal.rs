//! A program on a terminal, as its user sees it.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// The terminal: a script in Python. The test needs `require!(program "python3")`.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/terminal/terminal.py");

/// A program on a pseudo-terminal; it ends with the value.
#[derive(Debug)]
pub struct OnTerminal {
    child: Child,
    steps: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl OnTerminal {
    /// Starts a program on a terminal of so many columns and rows.
    #[must_use]
    pub fn start<S: AsRef<OsStr>>(
        size: (u16, u16),
        program: &Path,
        arguments: impl IntoIterator<Item = S>,
        variables: &[(&str, &str)],
    ) -> Self {
        let mut child = Command::new("python3")
            .args([SCRIPT, &size.0.to_string(), &size.1.to_string()])
            .arg(program)
            .args(arguments)
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 was required");
        let steps = child.stdin.take().expect("it was asked for");
        let answers = BufReader::new(child.stdout.take().expect("it was asked for"));
        Self { child, steps, answers }
    }

    /// Has the script take a step, which its documentation lists.
    #[track_caller]
    pub fn step(&mut self, step: &Value) -> Value {
        writeln!(self.steps, "{step}").expect("the script reads");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("the script writes text");
        assert!(!answer.is_empty(), "{step} failed: standard error says why");
        serde_json::from_str(&answer).expect("the script writes JSON")
    }

    /// The screen, once it shows something.
    #[track_caller]
    pub fn wait(&mut self, text: &str) -> String {
        self.screen(&json!({ "wait": text }))
    }

    /// The screen, once it does not show something any more.
    #[track_caller]
    pub fn gone(&mut self, text: &str) -> String {
        self.screen(&json!({ "gone": text }))
    }

    /// The screen as it is now.
    #[track_caller]
    pub fn shown(&mut self) -> String {
        self.screen(&json!({ "show": true }))
    }

    #[track_caller]
    fn screen(&mut self, step: &Value) -> String {
        self.step(step)["screen"].as_str().expect("it is a text").to_owned()
    }

    /// Types keys.
    #[track_caller]
    pub fn keys(&mut self, keys: &str) {
        self.step(&json!({ "keys": keys }));
    }

    /// Checks that the program ends with this code and leaves the terminal as it was; what it wrote
    /// after that.
    ///
    /// # Panics
    ///
    /// If it does not.
    #[track_caller]
    pub fn ends(mut self, code: i32) -> String {
        let end = self.step(&json!({ "end": true }));
        assert_eq!(end["code"], code, "{end}");
        assert_eq!(end["before"], end["after"], "settings of the terminal: {end}");
        assert_eq!(end["shown"], true, "the cursor, and the screen before: {end}");
        // The script goes on until nobody has a step for it.
        let Self { mut child, steps, .. } = self;
        drop(steps);
        assert!(child.wait().expect("it is a child").success());
        end["rest"].as_str().expect("it is a text").to_owned()
    }
}
