use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

fn files_in(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_str().unwrap().to_owned()
}

/// Runs the harness over its seeds; their names start with what shall become of them.
#[track_caller]
fn check(name: &str) {
    let (_, harness) = HARNESSES.iter().find(|(known, _)| *known == name).unwrap();
    let mut verdicts = Vec::new();
    for path in files_in(&format!("seeds/{name}")) {
        let verdict = harness(&fs::read(&path).unwrap());
        let expected = format!("{verdict:?}-").to_lowercase();
        assert!(stem(&path).starts_with(&expected), "{path:?} is {verdict:?}");
        verdicts.push(verdict);
    }
    assert!(verdicts.contains(&FuzzResult::Accepted), "no seed of {name} gets through");
}

#[test]
fn bundle_seeds() {
    check("bundle");
}

#[test]
fn capture_seeds() {
    check("capture");
}

#[test]
fn filter_seeds() {
    check("filter");
}

#[test]
fn frame_seeds() {
    check("frame");
}

#[test]
fn log_seeds() {
    check("log");
}

#[test]
fn message_seeds() {
    check("message");
}

#[test]
fn records_seeds() {
    check("records");
}

#[test]
fn synopsis_seeds() {
    check("synopsis");
}

#[test]
fn topology_seeds() {
    check("topology");
}

#[test]
fn harnesses_survive_cut_and_changed_seeds() {
    for (name, harness) in HARNESSES {
        for path in files_in(&format!("seeds/{name}")) {
            let seed = fs::read(&path).unwrap();
            for at in 0..seed.len().min(512) {
                let _ = harness(&seed[..at]);
                let mut changed = seed.clone();
                changed[at] ^= 0xff;
                let _ = harness(&changed);
            }
        }
    }
}

#[test]
fn every_harness_has_a_target_and_seeds() {
    let names: BTreeSet<String> = HARNESSES.iter().map(|(name, _)| (*name).to_owned()).collect();
    for folder in ["fuzz_targets", "seeds"] {
        assert_eq!(files_in(folder).iter().map(|path| stem(path)).collect::<BTreeSet<_>>(), names);
    }
}
