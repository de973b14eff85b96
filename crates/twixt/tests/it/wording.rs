//! Texts that users read, in files under `testdata/wording`: a change of wording is seen in review.
//! Metrics and the query API have their tests in the crates that make these texts.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use twixt_testing::check_wording;

use crate::support::twixt;

#[test]
fn help() {
    let mut texts = String::new();
    gather_help(&mut Vec::new(), &mut texts);
    check_wording("help", &texts);
}

/// Adds the help of a command, and of all commands below it.
fn gather_help(command: &mut Vec<String>, texts: &mut String) {
    let run = twixt(command.iter().map(String::as_str).chain(["--help"])).expect(0);
    let names = [&["twixt".to_owned()], command.as_slice()].concat().join(" ");
    let _ = writeln!(texts, "$ {names} --help\n{}", run.stdout);
    if run.stdout.contains("--help-algorithms") {
        let words = command.iter().map(String::as_str).chain(["--help-algorithms"]);
        let _ = writeln!(texts, "$ {names} --help-algorithms\n{}", twixt(words).expect(0).stdout);
    }
    for name in subcommands(&run.stdout) {
        command.push(name);
        gather_help(command, texts);
        command.pop();
    }
}

fn subcommands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = listed.take_while(|line| !line.is_empty());
    names
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next().map(str::to_owned))
        .filter(|name| !name.is_empty() && name != "help")
        .collect()
}

/// The messages of all error types, with their placeholders, by crate.
#[test]
fn errors() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut texts = String::new();
    let folders = fs::read_dir(crates).expect("crates are in a directory");
    let folders: BTreeSet<_> = folders.map(|entry| entry.expect("it is listed").path()).collect();
    for folder in folders {
        let mut messages = BTreeSet::new();
        gather_errors(&folder.join("src"), &mut messages);
        let name = folder.file_name().expect("a crate has a name").display();
        if !messages.is_empty() {
            let _ = writeln!(texts, "{name}");
        }
        for message in messages {
            let _ = writeln!(texts, "  {message}");
        }
    }
    check_wording("errors", &texts);
}

fn gather_errors(folder: &Path, messages: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("sources are in directories") {
        let path = entry.expect("it is listed").path();
        if path.is_dir() {
            gather_errors(&path, messages);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).expect("sources are text");
            messages.extend(source.split("#[error(").skip(1).filter_map(message));
        }
    }
}

/// The message at the start of what follows `#[error(`, on one line.
fn message(source: &str) -> Option<String> {
    let text = source.trim_start().strip_prefix('"')?;
    let mut escaped = false;
    let end = text.find(|character| {
        let ends = character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        ends
    })?;
    let lines = text[..end].lines().map(|line| line.trim_start().trim_end_matches('\\'));
    Some(lines.collect())
}
