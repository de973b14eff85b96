//! What the build and the tests need beside Rust: reports what is missing, and installs it where it
//! may.

use std::process::Command;

use anyhow::{Result, bail};

use crate::step::{self, cargo, program, works};

/// Something that other tasks call.
struct Tool {
    check: Check,
    source: Source,
    purpose: &'static str,
}

/// How to find out whether it is there.
enum Check {
    /// A program in the search path.
    Program(&'static str),
    /// A command of cargo.
    Cargo(&'static str),
    /// A module of the system's Python.
    SystemPython(&'static str),
    /// A module of Python, in our own environment.
    Python(&'static str),
    /// A program that Node.js runs, of the packages of the dashboard.
    Node(&'static str),
}

enum Source {
    /// A Debian package.
    Package(&'static str),
    /// A component of the Rust toolchain.
    Component(&'static str),
    /// A package of Python, in an environment of our own.
    Python(&'static str),
    /// The packages that the dashboard's lock file names.
    Node,
}

/// Where packages of Python are. Tests look there.
const PYTHON_FOLDER: &str = "target/python";
const PYTHON: &str = "target/python/bin/python";
/// Where the dashboard and its lock file are.
const DASHBOARD_FOLDER: &str = "dashboard";
const PIP: &str = "target/python/bin/pip";

const fn package(program: &'static str, package: &'static str, purpose: &'static str) -> Tool {
    Tool { check: Check::Program(program), source: Source::Package(package), purpose }
}

const fn component(command: &'static str, component: &'static str, purpose: &'static str) -> Tool {
    Tool { check: Check::Cargo(command), source: Source::Component(component), purpose }
}

const fn python(module: &'static str, package: &'static str, purpose: &'static str) -> Tool {
    Tool { check: Check::Python(module), source: Source::Python(package), purpose }
}

const fn node(program: &'static str, purpose: &'static str) -> Tool {
    Tool { check: Check::Node(program), source: Source::Node, purpose }
}

/// What `test` uses. A test that lacks something is skipped, or fails if nothing may be skipped.
const TEST_TOOLS: &[Tool] = &[
    package("cc", "gcc", "builds zstd"),
    package("c++", "g++", "builds libFuzzer"),
    component("fmt", "rustfmt", "checks the format"),
    component("clippy", "clippy", "lints"),
    package("ip", "iproute2", "makes networks"),
    package("tc", "iproute2", "makes queues"),
    package("ethtool", "ethtool", "switches offloads"),
    package("tcpdump", "tcpdump", "is the referee of live captures"),
    package("tshark", "tshark", "is the referee of flow records"),
    package("nfcapd", "nfdump", "reads our flow records"),
    package("softflowd", "softflowd", "sends flow records"),
    package("ptp4l", "linuxptp", "synchronises clocks"),
    package("promtool", "prometheus", "scrapes and checks our metrics"),
    Tool {
        check: Check::SystemPython("ensurepip"),
        source: Source::Package("python3-venv"),
        purpose: "makes an environment for packages of Python",
    },
    python("pyarrow", "pyarrow", "reads our Parquet files"),
    python("duckdb", "duckdb", "queries our Parquet files"),
    python("schemathesis", "schemathesis", "tests the query API against its description"),
    package("node", "nodejs", "builds the dashboard (20.19 or later)"),
    package("npm", "npm", "installs what builds the dashboard"),
    package("chromium", "chromium", "shows the dashboard"),
    node("vite", "builds the dashboard"),
    node("playwright", "drives the browser"),
    python("grafana_foundation_sdk", "grafana-foundation-sdk", "checks the dashboard"),
];

/// What other tasks use.
const OTHER_TOOLS: &[Tool] = &[package("valgrind", "valgrind", "counts instructions in `bench`")];

/// Installs everything that is missing.
pub(crate) fn install_all() -> Result<()> {
    let missing = missing(TEST_TOOLS.iter().chain(OTHER_TOOLS));
    let commands = commands_for(&missing);
    if commands.iter().any(|words| words[0] == "apt-get") && !is_root() {
        bail!("not root; run this as root:\n{}", shown(&commands));
    }
    commands.iter().try_for_each(|words| step::run(&mut command_of(words)))?;
    eprintln!("all is there");
    Ok(())
}

/// Installs what tests lack, as far as this user may. What is missing then, they say themselves.
pub(crate) fn install_for_tests() {
    let commands = commands_for(&missing(TEST_TOOLS));
    let may_run = |words: &&Vec<&str>| words[0] != "apt-get" || is_root();
    let (possible, impossible): (Vec<_>, Vec<_>) = commands.iter().partition(may_run);
    if !impossible.is_empty() {
        eprintln!("not root, so tests are skipped; to install what they need, run as root:");
        impossible.iter().for_each(|words| eprintln!("  {}", words.join(" ")));
    }
    for words in possible {
        eprintln!("installing: {}", words.join(" "));
        if let Err(error) = step::run(&mut command_of(words)) {
            eprintln!("warning: {error:#}");
        }
    }
}

/// Reports what tests lack, and installs nothing.
pub(crate) fn report_missing() {
    let commands = commands_for(&missing(TEST_TOOLS));
    if !commands.is_empty() {
        eprintln!("nothing is installed; this would do it:\n{}", shown(&commands));
    }
}

/// The tools that are not there. They are reported.
fn missing<'a>(wanted: impl IntoIterator<Item = &'a Tool>) -> Vec<&'a Tool> {
    let missing: Vec<&Tool> = wanted.into_iter().filter(|tool| !tool.check.succeeds()).collect();
    for tool in &missing {
        eprintln!("missing: {}, which {}", tool.check.name(), tool.purpose);
    }
    missing
}

impl Check {
    const fn name(&self) -> &'static str {
        match self {
            Self::Program(name)
            | Self::Cargo(name)
            | Self::SystemPython(name)
            | Self::Python(name)
            | Self::Node(name) => name,
        }
    }

    fn succeeds(&self) -> bool {
        match self {
            Self::Program(name) => works(program("sh").args(["-c", &format!("command -v {name}")])),
            Self::Cargo(command) => works(&mut cargo(&[command, "--version"])),
            Self::SystemPython(module) => imports("python3", module),
            Self::Python(module) => imports(PYTHON, module),
            Self::Node(name) => {
                let path = format!("{DASHBOARD_FOLDER}/node_modules/.bin/{name}");
                works(program("test").args(["-e", &path]))
            }
        }
    }
}

fn imports(python: &str, module: &str) -> bool {
    works(program(python).args(["-c", &format!("import {module}")]))
}

/// The commands that install the tools, in order.
fn commands_for(tools: &[&Tool]) -> Vec<Vec<&'static str>> {
    let mut packages = Vec::new();
    let mut components = Vec::new();
    let mut python = Vec::new();
    let mut needs_node = false;
    for tool in tools {
        match tool.source {
            Source::Package(name) => packages.push(name),
            Source::Component(name) => components.push(name),
            Source::Python(name) => python.push(name),
            Source::Node => needs_node = true,
        }
    }
    packages.dedup();
    let mut commands = Vec::new();
    if !packages.is_empty() {
        let install = ["apt-get", "install", "-y", "--no-install-recommends"];
        commands.push(vec!["apt-get", "update"]);
        commands.push([&install, packages.as_slice()].concat());
    }
    if !components.is_empty() {
        commands.push([&["rustup", "component", "add"], components.as_slice()].concat());
    }
    if !python.is_empty() {
        commands.push(vec!["python3", "-m", "venv", PYTHON_FOLDER]);
        commands.push([&[PIP, "install"], python.as_slice()].concat());
    }
    if needs_node {
        commands.push(vec!["npm", "ci", "--prefix", DASHBOARD_FOLDER]);
    }
    commands
}

fn shown(commands: &[Vec<&str>]) -> String {
    commands.iter().map(|words| words.join(" ")).collect::<Vec<_>>().join("\n")
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

    const INSTALL: &str = "apt-get install -y --no-install-recommends";

    #[track_caller]
    fn check(missing: &[&str], expected: &[&str]) {
        let tools: Vec<&Tool> = TEST_TOOLS
            .iter()
            .chain(OTHER_TOOLS)
            .filter(|tool| missing.contains(&tool.check.name()))
            .collect();
        let commands: Vec<String> =
            commands_for(&tools).iter().map(|words| words.join(" ")).collect();
        assert_eq!(commands, expected);
    }

    #[test]
    fn only_what_is_missing_is_installed() {
        check(&[], &[]);
        check(&["c++"], &["apt-get update", &format!("{INSTALL} g++")]);
        check(
            &["ip", "tc", "tcpdump"],
            &["apt-get update", &format!("{INSTALL} iproute2 tcpdump")],
        );
        check(
            &["schemathesis"],
            &["python3 -m venv target/python", "target/python/bin/pip install schemathesis"],
        );
        check(&["vite", "playwright"], &["npm ci --prefix dashboard"]);
        check(
            &["valgrind", "clippy", "cc"],
            &["apt-get update", &format!("{INSTALL} gcc valgrind"), "rustup component add clippy"],
        );
    }
}
