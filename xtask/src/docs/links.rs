//! Relative links between the pages of the repository.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::markdown::links;

/// Directories to ignore.
const FOREIGN_FOLDERS: &[&str] = &["artifacts", "corpus", "node_modules", "target"];

/// Links that lead nowhere, one line each.
pub(super) fn problems(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for page in pages_under(root)? {
        let text =
            fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
        let folder = page.parent().expect("a file lies in a folder");
        let lost = links(&text).into_iter().filter(|link| !leads_somewhere(root, folder, link));
        problems.extend(lost.map(|link| format!("{}: link to {link}", page.display())));
    }
    Ok(problems)
}

/// Links into the web and within a page are not looked at.
fn leads_somewhere(root: &Path, folder: &Path, link: &str) -> bool {
    let path = link.split(['#', '?']).next().unwrap_or_default();
    if path.is_empty() || path.contains(':') {
        return true;
    }
    match path.strip_prefix('/') {
        Some(from_root) => root.join(from_root).exists(),
        None => folder.join(path).exists(),
    }
}

/// Every Markdown file, hidden and foreign folders left out.
fn pages_under(folder: &Path) -> Result<Vec<PathBuf>> {
    let context = || format!("cannot list {}", folder.display());
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).with_context(context)? {
        let entry = entry.with_context(context)?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let is_folder = entry.file_type().with_context(context)?.is_dir();
        if is_folder && !name.starts_with('.') && !FOREIGN_FOLDERS.contains(&&*name) {
            pages.extend(pages_under(&path)?);
        } else if !is_folder && name.ends_with(".md") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::root;

    #[track_caller]
    fn check(link: &str, expected: bool) {
        assert_eq!(leads_somewhere(root(), &root().join("xtask/src"), link), expected, "{link}");
    }

    #[test]
    fn only_links_within_the_repository_can_be_lost() {
        check("main.rs", true);
        check("../Cargo.toml#L3", true);
        check("/Cargo.toml", true);
        check("#heading", true);
        check("https://example.org/nowhere.md", true);
        check("mailto:someone@example.org", true);
        check("nowhere.md", false);
        check("nowhere.md#heading", false);
        check("/nowhere.md", false);
    }

    #[test]
    fn pages_are_found_and_foreign_ones_left_out() {
        let pages = pages_under(root()).unwrap();
        assert!(pages.contains(&root().join("CONTRIBUTING.md")), "{pages:?}");
        assert!(pages.iter().all(|page| !page.starts_with(root().join("target"))));
    }
}
