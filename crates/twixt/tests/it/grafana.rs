//! What Grafana makes of the dashboard, by its own toolkit for Python.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use twixt_testing::require;

const SCHEMA: &str = include_str!("grafana/schema.py");

/// What is wrong with a dashboard by Grafana's own model.
fn problems(python: &Path, dashboard: &Value) -> String {
    let mut child = Command::new(python)
        .args(["-c", SCHEMA])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(dashboard.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn dashboard() -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_twixt")).args(["generate", "grafana"]).output();
    serde_json::from_slice(&output.unwrap().stdout).unwrap()
}

#[test]
fn grafana_knows_every_key_and_type_of_the_dashboard() {
    let python = require!(python "grafana_foundation_sdk");
    assert_eq!(problems(&python, &dashboard()), "");
}

#[test]
fn what_grafana_does_not_know_would_be_found() {
    let python = require!(python "grafana_foundation_sdk");
    let mut wrong = dashboard();
    wrong["panels"][0]["titel"] = json!("Delay");
    wrong["panels"][1]["gridPos"]["x"] = json!("left");
    wrong["panels"][2]["targets"][0]["exp"] = json!("up");
    wrong["panels"][3]["options"]["legend"]["displayMode"] = json!("tabular");
    wrong["templating"]["list"][1]["refresh"] = json!("often");
    let problems = problems(&python, &wrong);
    assert_eq!(problems.lines().count(), 5, "{problems}");
}
