//! What the build needs beside Rust: says what is missing, and installs it where it may.

use std::process::Command;

use anyhow::{Result, bail};

use crate::step::{self, cargo, program, works};

/// Something that other tasks call.
struct Tool {
    /// How to find out whether it is there.
    tried_by: &'static [&'static str],
    source: Source,
    purpose: &'static str,
    wanted_by: WantedBy,
}

/// Who cannot do without it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WantedBy {
    /// `test`.
    Test,
    /// `test`, if root runs it: tests that make networks are skipped for others.
    TestOfRoot,
    /// Another task.
    Other,
}

enum Source {
    /// A Debian package.
    Package(&'static str),
    /// A component of the Rust toolchain.
    Component(&'static str),
    /// A package of Python, in an environment of our own.
    Python(&'static str),
}

/// Where packages of Python are. Tests look there, and are skipped where nothing is.
const PYTHON_FOLDER: &str = "target/python";
const PIP: &str = "target/python/bin/pip";

const TOOLS: &[Tool] = &[
    Tool {
        tried_by: &["cc", "--version"],
        source: Source::Package("gcc"),
        purpose: "builds zstd",
        wanted_by: WantedBy::Test,
    },
    Tool {
        tried_by: &["c++", "--version"],
        source: Source::Package("g++"),
        purpose: "builds libFuzzer",
        wanted_by: WantedBy::Test,
    },
    Tool {
        tried_by: &["cargo", "fmt", "--version"],
        source: Source::Component("rustfmt"),
        purpose: "checks the format",
        wanted_by: WantedBy::Test,
    },
    Tool {
        tried_by: &["cargo", "clippy", "--version"],
        source: Source::Component("clippy"),
        purpose: "lints",
        wanted_by: WantedBy::Test,
    },
    Tool {
        tried_by: &["prometheus", "--version"],
        source: Source::Package("prometheus"),
        purpose: "scrapes a collector in tests",
        wanted_by: WantedBy::Other,
    },
    Tool {
        tried_by: &["ip", "-V"],
        source: Source::Package("iproute2"),
        purpose: "makes networks for tests",
        wanted_by: WantedBy::TestOfRoot,
    },
    Tool {
        tried_by: &["tc", "-V"],
        source: Source::Package("iproute2"),
        purpose: "makes queues for tests",
        wanted_by: WantedBy::TestOfRoot,
    },
    Tool {
        tried_by: &["ethtool", "--version"],
        source: Source::Package("ethtool"),
        purpose: "switches offloads for tests",
        wanted_by: WantedBy::TestOfRoot,
    },
    Tool {
        tried_by: &["tcpdump", "--version"],
        source: Source::Package("tcpdump"),
        purpose: "is the referee of tests",
        wanted_by: WantedBy::TestOfRoot,
    },
    Tool {
        tried_by: &["target/python/bin/python", "-c", "import pyarrow"],
        source: Source::Python("pyarrow"),
        purpose: "reads our Parquet files in tests",
        wanted_by: WantedBy::Other,
    },
    Tool {
        tried_by: &["target/python/bin/python", "-c", "import duckdb"],
        source: Source::Python("duckdb"),
        purpose: "asks our Parquet files in tests",
        wanted_by: WantedBy::Other,
    },
    Tool {
        tried_by: &["target/python/bin/schemathesis", "--version"],
        source: Source::Python("schemathesis"),
        purpose: "holds the query API to its description in tests",
        wanted_by: WantedBy::Other,
    },
    Tool {
        tried_by: &["target/python/bin/python", "-c", "import grafana_foundation_sdk"],
        source: Source::Python("grafana-foundation-sdk"),
        purpose: "holds the dashboard to Grafana's model in tests",
        wanted_by: WantedBy::Other,
    },
    Tool {
        tried_by: &["valgrind", "--version"],
        source: Source::Package("valgrind"),
        purpose: "counts instructions in `bench`",
        wanted_by: WantedBy::Other,
    },
];

/// Makes sure of everything, the optional included.
pub(crate) fn install_all() -> Result<()> {
    install(TOOLS.iter().collect())?;
    eprintln!("all is there");
    Ok(())
}

/// Makes sure of what `test` cannot do without. Touches nothing if all is there.
pub(crate) fn install_required() -> Result<()> {
    let is_wanted = |tool: &&Tool| match tool.wanted_by {
        WantedBy::Test => true,
        WantedBy::TestOfRoot => is_root(),
        WantedBy::Other => false,
    };
    install(TOOLS.iter().filter(is_wanted).collect())
}

fn install(wanted: Vec<&Tool>) -> Result<()> {
    let missing: Vec<&Tool> = wanted.into_iter().filter(|tool| !tool.is_there()).collect();
    for tool in &missing {
        eprintln!("missing: {}, which {}", tool.tried_by.join(" "), tool.purpose);
    }
    let commands = commands_for(&missing);
    if commands.iter().any(|words| words[0] == "apt-get") && !is_root() {
        let lines: Vec<String> = commands.iter().map(|words| words.join(" ")).collect();
        bail!("not root; run this as root:\n{}", lines.join("\n"));
    }
    commands.iter().try_for_each(|words| step::run(&mut command_of(words)))
}

impl Tool {
    fn is_there(&self) -> bool {
        match self.tried_by {
            ["cargo", arguments @ ..] => works(&mut cargo(arguments)),
            words => works(program(words[0]).args(&words[1..])),
        }
    }
}

/// The commands that install the tools, in order.
fn commands_for(tools: &[&Tool]) -> Vec<Vec<&'static str>> {
    let mut packages = Vec::new();
    let mut components = Vec::new();
    let mut python = Vec::new();
    for tool in tools {
        match tool.source {
            Source::Package(name) => packages.push(name),
            Source::Component(name) => components.push(name),
            Source::Python(name) => python.push(name),
        }
    }
    packages.dedup();
    let mut commands = Vec::new();
    if !packages.is_empty() {
        commands.push(vec!["apt-get", "update"]);
        commands.push([&["apt-get", "install", "-y"], packages.as_slice()].concat());
    }
    if !components.is_empty() {
        commands.push([&["rustup", "component", "add"], components.as_slice()].concat());
    }
    if !python.is_empty() {
        commands.push(vec!["python3", "-m", "venv", PYTHON_FOLDER]);
        commands.push([&[PIP, "install"], python.as_slice()].concat());
    }
    commands
}

fn command_of(words: &[&str]) -> Command {
    let mut command = program(words[0]);
    command.args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn is_root() -> bool {
    let output = program("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(missing: &[&str], expected: &[&str]) {
        let tools: Vec<&Tool> = TOOLS
            .iter()
            .filter(|tool| missing.contains(&tool.tried_by.join(" ").as_str()))
            .collect();
        let commands: Vec<String> =
            commands_for(&tools).iter().map(|words| words.join(" ")).collect();
        assert_eq!(commands, expected);
    }

    #[test]
    fn only_what_is_missing_is_installed() {
        check(&[], &[]);
        check(&["c++ --version"], &["apt-get update", "apt-get install -y g++"]);
        check(
            &["ip -V", "tc -V", "tcpdump --version"],
            &["apt-get update", "apt-get install -y iproute2 tcpdump"],
        );
        check(
            &["target/python/bin/schemathesis --version"],
            &["python3 -m venv target/python", "target/python/bin/pip install schemathesis"],
        );
        check(
            &["valgrind --version", "cargo clippy --version", "cc --version"],
            &["apt-get update", "apt-get install -y gcc valgrind", "rustup component add clippy"],
        );
    }
}
