//! Holds the architecture: who may depend on whom, and what pure crates must not touch.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A crate of the workspace, without `twixt-` before its name.
struct Rule {
    name: &'static str,
    /// The crates of the workspace it may depend on.
    may_use: &'static [&'static str],
    /// Opens no file or socket, starts no thread, reads no clock.
    pure: bool,
}

impl Rule {
    /// Its row in ARCHITECTURE.md.
    fn row(&self) -> String {
        let Self { name, may_use, pure } = self;
        let names: Vec<String> = may_use.iter().map(|name| format!("`{name}`")).collect();
        let may_use = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("| `{name}` | {may_use} | {} |\n", if *pure { "yes" } else { "no" })
    }
}

const RULES: &[Rule] = &[
    Rule { name: "model", may_use: &[], pure: true },
    Rule { name: "wire", may_use: &["model"], pure: true },
    Rule { name: "synopsis", may_use: &["model"], pure: true },
    Rule { name: "measure", may_use: &["model", "synopsis"], pure: true },
    Rule { name: "observe", may_use: &["model", "wire", "synopsis", "measure"], pure: true },
    Rule { name: "delivery", may_use: &["measure"], pure: true },
    Rule { name: "flow", may_use: &["model", "synopsis"], pure: true },
    Rule { name: "network", may_use: &["model"], pure: true },
    Rule { name: "engine", may_use: &["model", "synopsis", "measure"], pure: true },
    Rule { name: "detect", may_use: &["model"], pure: true },
    Rule { name: "top", may_use: &[], pure: true },
    Rule { name: "sim", may_use: &["model"], pure: true },
    Rule {
        name: "evaluate",
        may_use: &["model", "wire", "synopsis", "measure", "flow", "network", "sim"],
        pure: true,
    },
    Rule { name: "capture", may_use: &["model"], pure: false },
    Rule {
        name: "offline",
        may_use: &["model", "wire", "synopsis", "measure", "engine", "observe", "capture"],
        pure: false,
    },
    Rule { name: "store", may_use: &["model"], pure: false },
    Rule { name: "history", may_use: &["model", "store"], pure: false },
    Rule { name: "supervise", may_use: &[], pure: false },
    Rule {
        name: "agent",
        may_use: &[
            "model",
            "capture",
            "wire",
            "measure",
            "synopsis",
            "observe",
            "store",
            "delivery",
            "supervise",
        ],
        pure: false,
    },
    Rule {
        name: "collector",
        may_use: &[
            "model",
            "measure",
            "synopsis",
            "engine",
            "store",
            "history",
            "delivery",
            "supervise",
        ],
        pure: false,
    },
    // Simulates the two before: no row above has it.
    Rule {
        name: "faults",
        may_use: &[
            "model",
            "capture",
            "wire",
            "measure",
            "synopsis",
            "engine",
            "store",
            "history",
            "delivery",
            "agent",
            "collector",
        ],
        pure: false,
    },
    // The whole product in one process, on packets of `sim`: no row above has it.
    Rule {
        name: "demo",
        may_use: &[
            "model",
            "wire",
            "synopsis",
            "measure",
            "observe",
            "engine",
            "detect",
            "sim",
            "store",
            "history",
            "delivery",
            "collector",
        ],
        pure: false,
    },
    // Of `synopsis` it reads the list of algorithms: it must not share code with what it judges.
    Rule { name: "attack", may_use: &["synopsis"], pure: false },
    // For tests only: no row above has it.
    Rule { name: "testing", may_use: &[], pure: false },
];

/// The crate that has no dependencies at all.
const WITHOUT_DEPENDENCIES: &str = "model";
/// The only crate with `unsafe` code.
const WITH_UNSAFE: &str = "capture";
/// Crates that may depend on anything.
const UNBOUND: [&str; 3] = ["twixt", "twixt-fuzz", "xtask"];

/// What reaches for the world.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::thread",
    "TcpListener",
    "TcpStream",
    "UdpSocket",
    "UnixStream",
    "UnixListener",
    "UnixDatagram",
    "Instant::now",
    "SystemTime::now",
    "File::open",
    "File::create",
    "thread::spawn",
];

#[test]
fn crates_depend_only_downwards() {
    let mut problems = Vec::new();
    for package in packages() {
        let Some(rule) = package.rule() else { continue };
        for dependency in &package.dependencies {
            let allowed = match dependency.strip_prefix("twixt-") {
                Some(ours) => rule.may_use.contains(&ours),
                None => {
                    rule.name != WITHOUT_DEPENDENCIES && !UNBOUND.contains(&dependency.as_str())
                }
            };
            if !allowed {
                problems.push(format!("{} must not depend on {dependency}", package.name));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_crate_has_a_rule() {
    for package in packages() {
        let known = package.rule().is_some() || UNBOUND.contains(&package.name.as_str());
        assert!(known, "{} is in no row of the table", package.name);
    }
}

/// The page that newcomers read shows the table that holds.
#[test]
fn the_page_shows_the_table() {
    let page = page();
    let table: String = RULES.iter().map(Rule::row).collect();
    assert!(page.contains(&table), "ARCHITECTURE.md lacks these rows:\n{table}");
}

/// A bound that was renamed or moved is found again by those who meet it.
#[test]
fn the_page_names_bounds_that_exist() {
    let page = page();
    let (_, bounds) = page.split_once("| constant | where |").expect("the page lists bounds");
    let rows = bounds.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut missing = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').collect();
        let sources = sources_named(cells[2]);
        let names = quoted(cells[1]).filter(|name| !declares(&sources, name));
        missing.extend(names.map(|name| format!("{name} is not in {}", cells[2])));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Every row of the table leads downwards, so no crate can come to depend on itself.
#[test]
fn the_table_has_no_cycles() {
    let mut settled = BTreeSet::new();
    while settled.len() < RULES.len() {
        let ready = |rule: &&Rule| {
            !settled.contains(rule.name) && rule.may_use.iter().all(|name| settled.contains(name))
        };
        let next = RULES.iter().find(ready).map(|rule| rule.name);
        settled.insert(next.expect("some row uses settled rows only"));
    }
}

#[test]
fn pure_crates_do_not_touch_the_world() {
    let found = offences(|package| package.rule().is_some_and(|rule| rule.pure), IMPURE);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn unsafe_code_is_in_one_crate() {
    let elsewhere = |package: &Package| package.rule().is_none_or(|rule| rule.name != WITH_UNSAFE);
    let found = offences(elsewhere, &["unsafe {", "unsafe fn", "unsafe impl", "unsafe trait"]);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A word means one thing in the whole house: a reader should not need the crate to know which.
#[test]
fn a_public_name_is_declared_in_one_crate() {
    let mut declared: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages() {
        for path in sources_under(&package.folder.join("src")) {
            let source = fs::read_to_string(&path).expect("sources can be read");
            for name in source.lines().filter_map(declared_name) {
                declared.entry(name.to_owned()).or_default().insert(package.name.clone());
            }
        }
    }
    assert!(declared.len() > 300, "the scan finds the types: {}", declared.len());
    declared.retain(|_, crates| crates.len() > 1);
    assert!(declared.is_empty(), "declared in several crates: {declared:#?}");
}

#[test]
fn the_scan_for_names_sees_public_types() {
    assert_eq!(declared_name("pub struct Epoch(pub i64);"), Some("Epoch"));
    assert_eq!(declared_name("pub trait Synopsis: Sized {"), Some("Synopsis"));
    assert_eq!(declared_name("pub enum Kind<'a> {"), Some("Kind"));
    assert_eq!(declared_name("struct Private;"), None);
    assert_eq!(declared_name("pub fn structure() {"), None);
}

/// A length of time is too short on a busy machine: tests wait for a state, or set a pace.
#[test]
fn tests_do_not_sleep() {
    let mut found = Vec::new();
    for package in packages().iter().filter(|package| package.name != "twixt-testing") {
        let tests = package.folder.join("tests");
        for path in tests.is_dir().then(|| sources_under(&tests)).into_iter().flatten() {
            let source = fs::read_to_string(&path).expect("sources can be read");
            let lines = lines_with(&source, &["thread::sleep", "time::sleep"]);
            found.extend(lines.map(|(number, _)| format!("{}:{number}", path.display())));
        }
    }
    // What this file has is the words to look for.
    found.retain(|place| !place.contains("architecture.rs"));
    assert_eq!(found, [""; 0], "use twixt_testing::wait_until, wait_for or pace");
}

#[test]
fn the_scan_sees_code_and_nothing_else() {
    #[track_caller]
    fn check(source: &str, expected: &[usize]) {
        let lines: Vec<usize> = lines_with(source, IMPURE).map(|(number, _)| number).collect();
        assert_eq!(lines, expected, "{source}");
    }
    check("use std::fs;", &[1]);
    check("fn now() {\n    Instant::now()\n}", &[2]);
    check("/// Not std::fs.\n//! Nor Instant::now.\nlet a = 1; // std::thread", &[]);
    check("let text = \"std::net::IpAddr\";\nuse std::net::IpAddr;", &[]);
    check("fn a() {}\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}", &[]);
}

fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    fs::read_to_string(page).expect("the page can be read")
}

/// What stands between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The sources that a cell of the page names, such as `wire/cuts.rs`, or a folder; of a second file
/// in the same folder it has the name alone.
fn sources_named(cell: &str) -> String {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut folder, mut sources) = (PathBuf::new(), String::new());
    for name in quoted(cell) {
        let path = match name.split_once('/') {
            Some(("twixt", rest)) => crates.join("twixt/src").join(rest),
            Some((package, rest)) => crates.join(format!("twixt-{package}/src")).join(rest),
            None => folder.join(name),
        };
        folder = path.parent().expect("a file lies in a folder").to_owned();
        let files = if path.is_dir() { sources_under(&path) } else { vec![path] };
        for file in files {
            let source = fs::read_to_string(&file);
            sources += &source.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        }
    }
    sources
}

/// Whether a constant, a type or a field has this name.
fn declares(sources: &str, name: &str) -> bool {
    [format!("const {name}:"), format!("struct {name} "), format!(" {name}: ")]
        .iter()
        .any(|declaration| sources.contains(declaration.as_str()))
}

struct Package {
    name: String,
    folder: PathBuf,
    /// Names, without those that only tests and build scripts use.
    dependencies: Vec<String>,
}

impl Package {
    fn rule(&self) -> Option<&'static Rule> {
        let name = self.name.strip_prefix("twixt-")?;
        RULES.iter().find(|rule| rule.name == name)
    }
}

/// The members of the workspace, by what cargo says of them.
fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let packages: Vec<Package> = list(&metadata["packages"]).iter().map(package_of).collect();
    assert!(packages.len() > 2, "the workspace has members");
    packages
}

fn package_of(package: &Value) -> Package {
    let manifest = Path::new(text(&package["manifest_path"]));
    let dependencies = list(&package["dependencies"]).iter();
    Package {
        name: text(&package["name"]).to_owned(),
        folder: manifest.parent().expect("a manifest lies in a folder").to_owned(),
        dependencies: dependencies
            .filter(|dependency| dependency["kind"].is_null())
            .map(|dependency| text(&dependency["name"]).to_owned())
            .collect(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("cargo writes a text here")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("cargo writes a list here")
}

/// The name of the public type that the line declares.
fn declared_name(line: &str) -> Option<&str> {
    let item = line.strip_prefix("pub ")?;
    let name = ["struct ", "enum ", "trait "].iter().find_map(|kind| item.strip_prefix(kind))?;
    name.split(|letter: char| !letter.is_alphanumeric()).next()
}

/// Lines with one of `words` in the sources of the selected crates.
fn offences(selects: impl Fn(&Package) -> bool, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for package in packages().iter().filter(|package| selects(package)) {
        let sources = sources_under(&package.folder.join("src"));
        assert!(!sources.is_empty(), "{} has sources", package.name);
        for path in sources {
            let source = fs::read_to_string(&path).expect("sources can be read");
            let lines = lines_with(&source, words);
            found
                .extend(lines.map(|(number, line)| format!("{}:{number}: {line}", path.display())));
        }
    }
    found
}

/// Rust files, without those that hold tests only.
fn sources_under(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("folders can be listed") {
        let path = entry.expect("folders can be listed").path();
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
        if path.is_dir() && !is_test {
            files.extend(sources_under(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
            files.push(path);
        }
    }
    files
}

/// Numbered lines that use one of `words` before the tests at the end of the file. Comments do
/// not count.
fn lines_with<'a>(source: &'a str, words: &[&str]) -> impl Iterator<Item = (usize, &'a str)> {
    let code = source.lines().take_while(|line| line.trim_start() != "#[cfg(test)]");
    code.enumerate().map(|(index, line)| (index + 1, line)).filter(move |(_, line)| {
        let code = line.split("//").next().unwrap_or_default();
        words.iter().any(|word| code.contains(word))
    })
}
