//! What a test needs of the machine, and what happens where it is not there.
//!
//! A test that returns early looks like one that passed. So every skip goes through here: it is
//! appended to the file that `TWIXT_SKIPS` names, from which `cargo xtask test` prints a table, and
//! it is a failure if `TWIXT_REQUIRE=all`.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::browser;

/// Skips the calling test unless the machine has something:
///
/// | requirement | value |
/// |---|---|
/// | `root` | |
/// | `namespaces`: network namespaces with interfaces in them | |
/// | `mounts`: file systems can be mounted | |
/// | `capabilities`: a process can give up capabilities | |
/// | `shared "traces/x"`: this file of the shared data | its path |
/// | `program "tshark"` | its path |
/// | `python "pyarrow"`: this module of Python | the path of the interpreter |
/// | `dashboard`: Node.js and the packages that build the dashboard | |
/// | `browser`: those, and Chromium | |
/// | `that works, "what it is"`: what the test tried itself | |
#[macro_export]
macro_rules! require {
    (root) => {{ $crate::require!(@ $crate::Requirement::Root); }};
    (namespaces) => {{ $crate::require!(@ $crate::Requirement::Namespaces); }};
    (mounts) => {{ $crate::require!(@ $crate::Requirement::Mounts); }};
    (capabilities) => {{ $crate::require!(@ $crate::Requirement::Capabilities); }};
    (dashboard) => {{ $crate::require!(@ $crate::Requirement::Dashboard); }};
    (browser) => {{ $crate::require!(@ $crate::Requirement::Browser); }};
    (that $works:expr, $what:expr) => {{
        $crate::require!(@ $crate::Requirement::Tried { works: $works, what: $what });
    }};
    (shared $path:expr) => { $crate::require!(@ $crate::Requirement::Shared($path.as_ref())) };
    (program $name:expr) => { $crate::require!(@ $crate::Requirement::Program($name)) };
    (python $module:expr) => { $crate::require!(@ $crate::Requirement::Python($module)) };
    (@ $requirement:expr) => {
        match $crate::obtain($requirement) {
            Some(found) => found,
            None => return,
        }
    };
}

/// Where `cargo xtask setup` installs packages of Python, below the root of the repository.
const PYTHON: &str = "target/python/bin/python";
/// The file to which skips are appended: package, test and reason, separated by tabs.
const RECORD: &str = "TWIXT_SKIPS";
/// `all`: no test may be skipped.
const STRICT: &str = "TWIXT_REQUIRE";

/// What a test may need; see [`require!`].
#[derive(Clone, Copy, Debug)]
pub enum Requirement<'a> {
    /// The user is root.
    Root,
    /// Network namespaces can be made, and virtual interfaces in them.
    Namespaces,
    /// File systems can be mounted.
    Mounts,
    /// Capabilities can be given up.
    Capabilities,
    /// A file or folder of the shared data, by its path there.
    Shared(&'a Path),
    /// A program in the search path.
    Program(&'a str),
    /// A module of Python.
    Python(&'a str),
    /// Node.js, with the packages that the dashboard is built with.
    Dashboard,
    /// The same, and Chromium.
    Browser,
    /// Something that the test tried itself.
    Tried {
        /// Whether it works.
        works: bool,
        /// What it is.
        what: &'a str,
    },
}

/// What is required, if it is there. Otherwise the skip is recorded, and the caller returns.
///
/// # Panics
///
/// Where nothing may be skipped: with `TWIXT_REQUIRE=all`.
#[track_caller]
pub fn obtain(requirement: Requirement<'_>) -> Option<PathBuf> {
    let found = requirement.find();
    if found.is_none() {
        assert!(
            std::env::var(STRICT).as_deref() != Ok("all"),
            "this test must not be skipped ({STRICT}=all), but it {requirement}"
        );
        println!("skipped: {requirement}");
        record(requirement);
    }
    found
}

fn record(requirement: Requirement<'_>) {
    let Some(path) = std::env::var_os(RECORD) else { return };
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    // Both runners name the thread of a test after it.
    let thread = std::thread::current();
    let line = format!("{package}\t{}\t{requirement}\n", thread.name().unwrap_or("?"));
    let file = OpenOptions::new().create(true).append(true).open(path);
    // One write, so that lines of tests that run at the same time do not mix.
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("skips can be recorded");
}

impl Requirement<'_> {
    /// Whether it is there. Skips nothing.
    pub(crate) fn is_met(self) -> bool {
        self.find().is_some()
    }

    fn find(self) -> Option<PathBuf> {
        let when = |is_there: bool| is_there.then(PathBuf::new);
        match self {
            Self::Root => when(is_root()),
            Self::Namespaces => {
                when(works("unshare --net ip link add left type veth peer name right"))
            }
            Self::Mounts => {
                when(works("unshare --mount --propagation private mount -t tmpfs none /tmp"))
            }
            Self::Capabilities => {
                when(works("setpriv --bounding-set=-net_raw --inh-caps=-net_raw true"))
            }
            Self::Shared(path) => Some(shared().join(path)).filter(|path| path.exists()),
            Self::Program(name) => program(name),
            Self::Python(module) => {
                let python = repository().join(PYTHON);
                let import = format!("import {module}");
                succeeds(Command::new(&python).args(["-c", &import])).then_some(python)
            }
            Self::Tried { works, .. } => when(works),
            Self::Dashboard => when(program("node").is_some() && browser::has_packages()),
            Self::Browser => when(Self::Dashboard.is_met() && program("chromium").is_some()),
        }
    }
}

impl fmt::Display for Requirement<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => write!(formatter, "needs root"),
            Self::Namespaces => {
                write!(formatter, "needs network namespaces: root, unshare and ip")
            }
            Self::Mounts => write!(formatter, "needs to mount file systems: root and unshare"),
            Self::Capabilities => write!(formatter, "needs to drop capabilities: root and setpriv"),
            Self::Tried { what, .. } => write!(formatter, "needs {what}"),
            Self::Shared(path) => {
                write!(formatter, "needs {} in the shared data (TWIXT_SHARED)", path.display())
            }
            Self::Program(name) => write!(formatter, "needs {name} (cargo xtask setup)"),
            Self::Python(module) => {
                write!(formatter, "needs Python with {module} (cargo xtask setup)")
            }
            Self::Dashboard => {
                write!(
                    formatter,
                    "needs Node.js with packages of the dashboard (cargo xtask setup)"
                )
            }
            Self::Browser => {
                write!(formatter, "needs chromium, and Node.js with packages (cargo xtask setup)")
            }
        }
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn works(line: &str) -> bool {
    let mut words = line.split(' ');
    let program = words.next().expect("a line has a word");
    succeeds(Command::new(program).args(words))
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of data that is not part of the repository.
fn shared() -> PathBuf {
    std::env::var_os("TWIXT_SHARED").map_or_else(|| repository().join("../shared"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found() {
        let shell = obtain(Requirement::Program("sh")).unwrap();
        assert!(shell.ends_with("sh") && shell.is_file(), "{}", shell.display());
    }

    #[test]
    fn reasons_name_what_is_missing() {
        let check = |requirement: Requirement<'_>, part: &str| {
            assert!(requirement.to_string().contains(part), "{requirement}");
        };
        check(Requirement::Program("tshark"), "tshark");
        check(Requirement::Python("pyarrow"), "pyarrow");
        check(Requirement::Shared(Path::new("traces/x")), "traces/x");
    }

    /// Runs a test of this program alone, that skips, and returns its output and its record.
    fn skip(strict: &str) -> (bool, String) {
        let record = std::env::temp_dir().join(format!("skips-{strict}-{}", std::process::id()));
        let program = std::env::current_exe().unwrap();
        let ended = Command::new(program)
            .args(["--exact", "requirement::tests::a_skip", "--ignored"])
            .envs([(STRICT, strict), (RECORD, record.to_str().unwrap())])
            .output()
            .unwrap();
        let recorded = std::fs::read_to_string(&record).unwrap_or_default();
        let _ = std::fs::remove_file(record);
        (ended.status.success(), recorded)
    }

    #[test]
    #[ignore = "started by the test below"]
    fn a_skip() {
        require!(program "twixt-has-no-such-program");
        panic!("there is no such program");
    }

    #[test]
    fn a_skip_is_recorded_and_fails_where_nothing_may_be_skipped() {
        let expected = "twixt-testing\trequirement::tests::a_skip\t\
                        needs twixt-has-no-such-program (cargo xtask setup)\n";
        assert_eq!(skip("some"), (true, expected.to_owned()));
        assert_eq!(skip("all"), (false, String::new()));
    }
}
