//! `twixt evaluate`: the committed table of the quick run still says what the code measures.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use twixt_testing::{Requirement, obtain};

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

/// Claims of all experiments in a file, by experiment and claim.
fn claims(file: &Path) -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(file).unwrap();
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
/// `TWIXT_BLESS=1` rewrites the table.
#[test]
fn the_committed_quick_table_is_what_the_code_measures() {
    let topologies = obtain(Requirement::Shared(Path::new("topologies")));
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let (code, _, problems) = twixt(&["evaluate", "--quick", "--out", out, "-F", "json"]);
    assert_eq!(code, 0, "{problems}");
    if std::env::var_os("TWIXT_BLESS").is_some() {
        for file in ["accuracy-quick.md", "accuracy-quick.json"] {
            std::fs::copy(folder.path().join(file), docs().join(file)).unwrap();
        }
    }
    let [found, committed] =
        [folder.path(), &docs()].map(|folder| claims(&folder.join("accuracy-quick.json")));
    let names = |claims: &[(String, Value)]| -> Vec<String> {
        claims.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&found), names(&committed), "TWIXT_BLESS=1 writes the table anew");
    for ((name, found), (_, committed)) in found.iter().zip(&committed) {
        let numbers = [found, committed].map(|claim| claim["measured"].as_f64());
        let (ours, theirs) = match numbers {
            [Some(ours), Some(theirs)] => (ours, theirs),
            [None, None] => continue,
            // Experiments with real topologies have no number without them.
            [None, Some(_)] if topologies.is_none() => continue,
            _ => panic!("{name}: {found} is not {committed}"),
        };
        let spread = committed["spread"].as_f64().unwrap_or(0.0);
        let tolerance = 0.01 * spread + 1e-6 * theirs.abs() + 1e-9;
        assert!((ours - theirs).abs() <= tolerance, "{name}: {ours} is not {theirs}");
        assert_eq!(found["verdict"], committed["verdict"], "{name}");
    }
}

/// What cannot be measured without these traces.
const WITHOUT_NUMBER: [&str; 2] = [
    "cnf-deviation: WISC-R1 to R3",
    "fridge-percentiles: traffic of an Internet provider: the CDF follows the truth",
];

#[test]
fn every_claim_has_a_number_or_a_reason() {
    for file in ["accuracy-quick.json", "accuracy.json"] {
        let claims = claims(&docs().join(file));
        assert!(claims.len() > 200, "{file}: only {}", claims.len());
        for (name, claim) in claims {
            let has_number = claim["measured"].as_f64().is_some_and(f64::is_finite);
            assert_eq!(has_number, !WITHOUT_NUMBER.contains(&name.as_str()), "{file}: {name}");
            let is_explained = claim["verdict"] == "pass" || claim["note"] != "";
            assert!(is_explained, "{file}: {name}: {}", claim["verdict"]);
        }
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
