//! Committed texts that the code must still produce.

use std::fs;
use std::path::Path;

/// Compares with a committed file, which `TWIXT_BLESS=1` renews.
///
/// # Panics
///
/// If they differ, with the lines that do.
#[track_caller]
pub fn check_snapshot(path: impl AsRef<Path>, found: &str) {
    let path = path.as_ref();
    let committed = fs::read_to_string(path).unwrap_or_default();
    if committed == found {
        return;
    }
    if std::env::var_os("TWIXT_BLESS").is_some() {
        let folder = path.parent().expect("a snapshot is a file in a directory");
        fs::create_dir_all(folder).expect("the directory can be created");
        return fs::write(path, found).expect("the snapshot can be written");
    }
    panic!(
        "{} is out of date; TWIXT_BLESS=1 renews it\n{}",
        path.display(),
        differences(&committed, found)
    );
}

/// Words that texts for users do not contain; CONTRIBUTING.md says what to write instead.
const DIALECT: [&str; 10] = [
    "told",
    "said",
    "somebody",
    "anybody",
    "nobody",
    "whoever",
    "stretch",
    "strangers",
    "of ours",
    "is no",
];

/// Compares texts that users read with `testdata/wording/NAME.txt`, and looks for dialect.
///
/// # Panics
///
/// If they differ, with the lines that do, or if one contains a word of dialect.
#[track_caller]
pub fn check_wording(name: &str, found: &str) {
    if let Some((line, word)) = found.lines().find_map(|line| Some((line, dialect(line)?))) {
        panic!("{word:?} is not plain English, see CONTRIBUTING.md: {line}");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    check_snapshot(root.join(format!("testdata/wording/{name}.txt")), found);
}

/// A word of [`DIALECT`] in this line.
fn dialect(line: &str) -> Option<&'static str> {
    let words: Vec<&str> = line.split(|letter: char| !letter.is_alphabetic()).collect();
    let words = format!(" {} ", words.join(" ").to_lowercase()).replace(" is no longer ", " ");
    DIALECT.into_iter().find(|word| words.contains(&format!(" {word} ")))
}

/// Lines that are not the same, from the first to the last that differ.
fn differences(committed: &str, found: &str) -> String {
    let (committed, found) = (lines(committed), lines(found));
    let equal = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| {
        pairs.take_while(|(one, other)| one == other).count()
    };
    let before = equal(&mut committed.iter().zip(&found));
    let after = equal(&mut committed[before..].iter().rev().zip(found[before..].iter().rev()));
    let marked = |sign: char, lines: &[&str]| -> String {
        lines[before..lines.len() - after].iter().map(|line| format!("{sign}{line}\n")).collect()
    };
    format!("from line {}:\n{}{}", before + 1, marked('-', &committed), marked('+', &found))
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialect_is_found_by_whole_words() {
        assert_eq!(dialect("whoever answers is not a collector"), Some("whoever"));
        assert_eq!(dialect("\"x\" Is no time"), Some("is no"));
        assert_eq!(dialect("it is no longer stored, outstretched"), None);
    }

    #[test]
    fn differences_leave_out_equal_lines() {
        assert_eq!(differences("a\nb\nc\nd\n", "a\nx\nd\n"), "from line 2:\n-b\n-c\n+x\n");
        assert_eq!(differences("a\n", "a\nb\n"), "from line 2:\n+b\n");
    }
}
