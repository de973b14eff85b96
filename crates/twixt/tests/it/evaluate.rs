//! `twixt evaluate`: the committed table of the quick run still says what the code measures.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn twixt(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_twixt"))
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn docs() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"))
}

/// Claims of all experiments, by experiment and claim.
fn claims(folder: &Path) -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(folder.join("accuracy-quick.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let experiments = document["experiments"].as_array().unwrap();
    let named = |experiment: &Value| {
        let name = experiment["name"].as_str().unwrap().to_owned();
        let claims = experiment["claims"].as_array().unwrap().clone();
        claims
            .into_iter()
            .map(move |claim| (format!("{name}: {}", claim["claim"].as_str().unwrap()), claim))
    };
    experiments.iter().flat_map(named).collect()
}

/// Trials follow from their seeds, so that equal code measures equal numbers; what is left to
/// differ is the rounding of the machine's mathematical functions, far below the spread of seeds.
/// `TWIXT_BLESS=1` writes the table anew.
#[test]
fn the_committed_quick_table_is_what_the_code_measures() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let (code, _, problems) = twixt(&["evaluate", "--quick", "--out", out, "-F", "json"]);
    assert_eq!(code, 0, "{problems}");
    if std::env::var_os("TWIXT_BLESS").is_some() {
        for file in ["accuracy-quick.md", "accuracy-quick.json"] {
            std::fs::copy(folder.path().join(file), docs().join(file)).unwrap();
        }
    }
    let (found, committed) = (claims(folder.path()), claims(&docs()));
    let names = |claims: &[(String, Value)]| -> Vec<String> {
        claims.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&found), names(&committed), "TWIXT_BLESS=1 writes the table anew");
    for ((name, found), (_, committed)) in found.iter().zip(&committed) {
        let (Some(ours), Some(theirs)) =
            (found["measured"].as_f64(), committed["measured"].as_f64())
        else {
            if found["measured"].is_null() && committed["measured"].is_f64() {
                println!("skipped: {name} needs files of others, which are not here");
            }
            continue;
        };
        let spread = committed["spread"].as_f64().unwrap_or(0.0);
        let tolerance = 0.01 * spread + 1e-6 * theirs.abs() + 1e-9;
        assert!((ours - theirs).abs() <= tolerance, "{name}: {ours} is not {theirs}");
        assert_eq!(found["verdict"], committed["verdict"], "{name}");
    }
}

#[test]
fn every_claim_that_does_not_hold_has_a_reason() {
    for (name, claim) in claims(&docs()) {
        let explained = claim["verdict"] == "pass" || claim["note"] != "";
        assert!(explained, "{name}: {}", claim["verdict"]);
    }
}

#[test]
fn experiments_are_listed_and_unknown_ones_refused() {
    let (code, listed, _) = twixt(&["evaluate", "--list"]);
    assert_eq!(code, 0);
    assert!(listed.contains("lda-loss") && listed.contains("mplane-upgrade"), "{listed}");
    assert!(listed.lines().all(|line| line.chars().count() <= 100), "{listed}");
    let (code, _, problem) = twixt(&["evaluate", "no-such"]);
    assert_eq!(code, 2, "{problem}");
    assert!(problem.contains("no-such"), "{problem}");
    assert_eq!(twixt(&["evaluate"]).0, 2);
}

#[test]
fn an_experiment_named_twice_runs_once() {
    let command = ["evaluate", "lda-sampling", "lda-sampling", "--quick", "-F", "json"];
    let (code, printed, _) = twixt(&command);
    let document: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, document["experiments"].as_array().unwrap().len()), (0, 1));
}
