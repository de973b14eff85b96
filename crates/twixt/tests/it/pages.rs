//! Console blocks of the pages show what the commands print: each page is run and compared.
//!
//! A page has a directory of its own, in which the commands of its `console` blocks run in page
//! order. In the output that a page shows, a line `…` stands for any lines. A block that follows
//! `<!-- not run: REASON -->` is left alone. Pictures that a page shows and its commands draw are
//! compared as well. `TWIXT_BLESS=1` writes what the commands print into
//! the pages.

mod inputs;

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use twixt_testing::{check_snapshot, require};

use inputs::Input;

const NOT_RUN: &str = "<!-- not run: ";
const FENCE: &str = "```";
const CONSOLE: &str = "```console";
/// Stands for any lines of output.
const ELISION: &str = "…";

#[test]
fn readme() {
    check("README.md", &[]);
}

#[test]
fn tutorial() {
    check("docs/tutorial.md", &[inputs::BEFORE, inputs::AFTER]);
}

#[test]
fn answers() {
    let inputs = [inputs::BEFORE, inputs::AFTER, inputs::EDGE, inputs::DNS];
    check("docs/howto/answers.md", &[&inputs[..], &[inputs::OFFICE, inputs::PROVIDER]].concat());
}

#[test]
fn captures() {
    let inputs = [inputs::BEFORE, inputs::AFTER, inputs::SHORT, inputs::NATTED];
    check("docs/howto/captures.md", &[&inputs[..], &[inputs::LEFT, inputs::RIGHT]].concat());
}

#[test]
fn certificates() {
    check("docs/howto/certificates.md", &[]);
}

#[test]
fn choose() {
    check("docs/howto/choose.md", &[inputs::BEFORE, inputs::AFTER]);
}

#[test]
fn doctor() {
    check("docs/howto/doctor.md", &[]);
}

#[test]
fn flow_records() {
    check("docs/howto/flow-records.md", &[inputs::BEFORE, inputs::AFTER]);
}

#[test]
fn look() {
    check("docs/howto/look.md", &[inputs::BEFORE, inputs::AFTER, inputs::EDGE]);
}

#[test]
fn path() {
    check("docs/howto/path.md", &[]);
}

#[test]
fn round_trips() {
    check("docs/howto/round-trips.md", &[inputs::DNS, inputs::EDGE]);
}

#[test]
fn share() {
    check("docs/howto/share.md", &[inputs::INCIDENT]);
}

#[test]
fn store() {
    check("docs/howto/store.md", &[]);
}

#[test]
fn upgrade() {
    check("docs/howto/upgrade.md", &[inputs::GEANT]);
}

#[test]
fn cnf() {
    check("docs/algorithms/cnf.md", &[]);
}

#[test]
fn colate() {
    check("docs/algorithms/colate.md", &[]);
}

#[test]
fn exact() {
    check("docs/algorithms/exact.md", &[]);
}

#[test]
fn lda() {
    check("docs/algorithms/lda.md", &[inputs::BEFORE, inputs::AFTER]);
}

#[test]
fn sample() {
    check("docs/algorithms/sample.md", &[inputs::BEFORE, inputs::AFTER]);
}

#[test]
fn sds() {
    check("docs/algorithms/sds.md", &[]);
}

#[test]
fn clocks() {
    check("docs/explanation/clocks.md", &[]);
}

#[test]
fn direction_and_overlap() {
    check("docs/explanation/direction-and-overlap.md", &[]);
}

#[test]
fn epochs() {
    check("docs/explanation/epochs.md", &[inputs::BEFORE, inputs::AFTER]);
}

#[test]
fn upgrade_planning() {
    check("docs/explanation/upgrade-planning.md", &[inputs::SPRINT]);
}

#[test]
fn configuration() {
    check("docs/reference/configuration.md", &[]);
}

#[test]
fn filters() {
    check("docs/reference/filters.md", &[inputs::BEFORE]);
}

/// A page that is missing above would show outdated output.
#[test]
fn every_page_with_a_console_block_is_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut unseen = vec![root.join("docs")];
    let mut pages = vec![root.join("README.md")];
    while let Some(path) = unseen.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("documents are in directories");
            unseen.extend(entries.map(|entry| entry.expect("it is listed").path()));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("pages are text");
        let name = page.strip_prefix(&root).expect("it was found there").display();
        let is_run = include_str!("pages.rs").contains(&format!("check(\"{name}\""));
        assert_eq!(text.lines().any(|line| line == CONSOLE), is_run, "{name}");
    }
}

/// Runs a page in a directory with `inputs`, and compares.
#[track_caller]
fn check(page: &str, inputs: &[Input]) {
    let folder = tempfile::tempdir().expect("a temporary directory can be created");
    for input in inputs {
        if let Some(bytes) = input.own() {
            std::fs::write(folder.path().join(input.name), bytes).expect("it can be written");
            continue;
        }
        input.write(&require!(shared input.source), folder.path());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = std::fs::read_to_string(&path).expect("the page exists");
    check_snapshot(&path, &run_page(&text, folder.path()));
    check_pictures(&path, &text, folder.path());
}

/// Compares the pictures that a page shows with those that its commands drew. Others are drawn elsewhere.
#[track_caller]
fn check_pictures(page: &Path, text: &str, folder: &Path) {
    let shown = text.split("](").skip(1).filter_map(|rest| rest.split_once(".svg)"));
    for (link, _) in shown {
        let link = format!("{link}.svg");
        let drawn = folder.join(link.rsplit('/').next().expect("a path has a last part"));
        if let Ok(picture) = std::fs::read_to_string(drawn) {
            check_snapshot(page.parent().expect("a page is in a directory").join(link), &picture);
        }
    }
}

/// The page, with what its commands print now where it shows something else.
fn run_page(text: &str, folder: &Path) -> String {
    let mut page = String::new();
    let mut lines = text.lines();
    let mut is_run = true;
    while let Some(line) = lines.next() {
        writeln!(page, "{line}").expect("memory can be written to");
        if line.starts_with(NOT_RUN) {
            is_run = false;
        } else if line.starts_with(FENCE) {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != FENCE).collect();
            let runs = is_run && line == CONSOLE;
            page += &if runs { run_block(&block, folder) } else { block.join("\n") + "\n" };
            page += "```\n";
            is_run = true;
        }
    }
    page
}

fn run_block(block: &[&str], folder: &Path) -> String {
    let steps = block.chunk_by(|line, next| line.ends_with('\\') || !next.starts_with("$ "));
    let mut shown = String::new();
    for step in steps {
        let length = 1 + step.iter().take_while(|line| line.ends_with('\\')).count();
        let (command, expected) = step.split_at(length);
        let text = command.join("\n");
        let script = text.strip_prefix("$ ").expect("a block begins with a command");
        let blank = expected.iter().rev().take_while(|line| line.is_empty()).count();
        let output = run(script, folder);
        let found: Vec<&str> = output.trim_end().lines().collect();
        let kept = &expected[..expected.len() - blank];
        let printed = if agree(kept, &found) { kept } else { &found };
        for line in command.iter().chain(printed).chain(&expected[expected.len() - blank..]) {
            writeln!(shown, "{line}").expect("memory can be written to");
        }
    }
    shown
}

/// What a command prints on a terminal: both streams, in the order in which they are written.
fn run(script: &str, folder: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_twixt"));
    let programs = std::env::var_os("PATH").unwrap_or_default();
    let search = [program.parent().expect("a program is in a directory").to_owned()]
        .into_iter()
        .chain(std::env::split_paths(&programs));
    let output = Command::new("sh")
        .args(["-c", &format!("{{ {script}\n}} 2>&1")])
        .current_dir(folder)
        .env("PATH", std::env::join_paths(search).expect("paths without colons"))
        .env("TZ", "UTC")
        .env_remove("TWIXT_CONFIG")
        .env_remove("TWIXT_KEY")
        .stdin(Stdio::null())
        .output()
        .expect("sh starts");
    String::from_utf8(output.stdout).expect("commands of pages print text")
}

/// Whether the output is the expected one; a line `…` stands for any lines.
fn agree(expected: &[&str], found: &[&str]) -> bool {
    match expected.split_first() {
        None => found.is_empty(),
        Some((&ELISION, rest)) => (0..=found.len()).any(|skipped| agree(rest, &found[skipped..])),
        Some((line, rest)) => {
            found.split_first().is_some_and(|(first, others)| first == line && agree(rest, others))
        }
    }
}

#[test]
fn an_elision_stands_for_any_lines() {
    assert!(agree(&["a", ELISION, "d"], &["a", "b", "c", "d"]));
    assert!(agree(&[ELISION], &[]));
    assert!(!agree(&["a", ELISION, "d"], &["a", "b"]));
    assert!(!agree(&["a"], &["a", "b"]));
}
