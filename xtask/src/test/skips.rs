//! Which tests could not run here, and why. They record it themselves; see `require!`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::repository::target_folder;

/// Where tests record skips.
pub(super) const VARIABLE: &str = "TWIXT_SKIPS";

fn record() -> PathBuf {
    target_folder().join("skips.tsv")
}

/// An empty record; returns where it is.
pub(super) fn start_record() -> Result<PathBuf> {
    let path = record();
    fs::write(&path, "").with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Prints the table of skips.
pub(super) fn print_table() -> Result<()> {
    let path = record();
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    eprint!("{}", table(&text));
    Ok(())
}

/// Lines of package, test and reason, by reason.
fn table(record: &str) -> String {
    let mut reasons: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for line in record.lines() {
        let fields: Vec<&str> = line.splitn(3, '\t').collect();
        let [package, test, reason] = fields[..] else { continue };
        reasons.entry(reason).or_default().insert(format!("{package} {test}"));
    }
    let tests: BTreeSet<&String> = reasons.values().flatten().collect();
    let mut table = match tests.len() {
        0 => "No test was skipped for want of anything.\n".to_owned(),
        count => format!("Counted as passed, but skipped: {count} tests\n"),
    };
    for (reason, tests) in &reasons {
        table += &format!("  {reason}: {}\n", tests.len());
        tests.iter().for_each(|test| table += &format!("    {test}\n"));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_are_listed_by_reason() {
        let record = "twixt\ta::b\tneeds root\ntwixt-store\tc\tneeds root\n\
                      twixt\ta::b\tneeds tshark\ntwixt\ta::b\tneeds root\n";
        let expected = "Counted as passed, but skipped: 2 tests\n  \
                        needs root: 2\n    twixt a::b\n    twixt-store c\n  \
                        needs tshark: 1\n    twixt a::b\n";
        assert_eq!(table(record), expected);
    }

    #[test]
    fn nothing_skipped_is_said_too() {
        assert_eq!(table(""), "No test was skipped for want of anything.\n");
    }
}
