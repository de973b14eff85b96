//! The index of algorithms, generated from the registry, and the pages it leads to.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use twixt_synopsis::{ALGORITHMS, Algorithm};

pub(super) const FILE: &str = "README.md";

const HEAD: &str = "\
# Algorithms

Generated from the registry by `cargo xtask docs --write`; edit the pages it leads to instead.

| command | name | result | options | estimators, default first |
|---|---|---|---|---|
";

/// What is wrong in the folder of algorithms, one line each.
pub(super) fn problems(folder: &Path) -> Vec<String> {
    let mut problems: Vec<String> = ALGORITHMS
        .iter()
        .map(|algorithm| folder.join(file_of(algorithm)))
        .filter(|page| !page.is_file())
        .map(|page| format!("{}: no such page, but the algorithm exists", page.display()))
        .collect();
    let index = folder.join(FILE);
    if fs::read_to_string(&index).ok() != Some(page()) {
        problems.push(format!("{}: run `cargo xtask docs --write`", index.display()));
    }
    problems
}

/// The page as it should be.
pub(super) fn page() -> String {
    ALGORITHMS.iter().fold(HEAD.to_owned(), |page, algorithm| page + &row(algorithm))
}

fn row(algorithm: &Algorithm) -> String {
    let options: Vec<&str> = algorithm.options.iter().map(|option| option.name).collect();
    let Algorithm { purpose, name, summary, .. } = algorithm;
    let mut row = format!("| {} | [{name}]({}) | {summary} |", purpose.name(), file_of(algorithm));
    for names in [options.as_slice(), algorithm.estimators] {
        write!(row, " {} |", code_list(names)).expect("strings take everything");
    }
    row + "\n"
}

fn file_of(algorithm: &Algorithm) -> String {
    format!("{}.md", algorithm.page)
}

fn code_list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    if quoted.is_empty() { "–".to_owned() } else { quoted.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_has_a_row() {
        let page = page();
        for algorithm in ALGORITHMS {
            let Algorithm { name, page: file, .. } = algorithm;
            assert!(page.contains(&format!(" | [{name}]({file}.md) |")), "{page}");
        }
        assert_eq!(page.lines().filter(|line| line.contains(" | [")).count(), ALGORITHMS.len());
    }

    #[test]
    fn missing_pages_and_a_missing_index_are_problems() {
        let problems = problems(Path::new("no/such/folder"));
        assert_eq!(problems.len(), ALGORITHMS.len() + 1);
    }

    #[test]
    fn lists_of_names_are_code() {
        assert_eq!(code_list(&["banks", "rows"]), "`banks`, `rows`");
        assert_eq!(code_list(&[]), "–");
    }
}
