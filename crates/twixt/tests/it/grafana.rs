//! What Grafana makes of the dashboard. `cargo xtask setup` installs its toolkit for Python; where
//! that is not, these tests say `skipped`.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

const SCHEMA: &str = include_str!("grafana/schema.py");

/// What is wrong with a dashboard by Grafana's own model; `None` where that is not there.
fn problems(dashboard: &Value) -> Option<String> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    let found = Command::new(&python).args(["-c", "import grafana_foundation_sdk"]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: Python has no grafana_foundation_sdk; cargo xtask setup installs it");
        return None;
    }
    let mut child = Command::new(python)
        .args(["-c", SCHEMA])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(dashboard.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap())
}

fn dashboard() -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_twixt")).args(["generate", "grafana"]).output();
    serde_json::from_slice(&output.unwrap().stdout).unwrap()
}

#[test]
fn grafana_knows_every_key_and_type_of_the_dashboard() {
    let Some(problems) = problems(&dashboard()) else { return };
    assert_eq!(problems, "");
}

#[test]
fn what_grafana_does_not_know_would_be_found() {
    let mut wrong = dashboard();
    wrong["panels"][0]["titel"] = json!("Delay");
    wrong["panels"][1]["gridPos"]["x"] = json!("left");
    wrong["panels"][2]["targets"][0]["exp"] = json!("up");
    wrong["panels"][3]["options"]["legend"]["displayMode"] = json!("tabular");
    wrong["templating"]["list"][1]["refresh"] = json!("often");
    let Some(problems) = problems(&wrong) else { return };
    assert_eq!(problems.lines().count(), 5, "{problems}");
}
