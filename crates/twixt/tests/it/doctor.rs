//! `twixt doctor`, also in a network namespace that goes with the test, whose interfaces are set as
//! the test wants them.

use std::process::Command;

use serde_json::Value;
use twixt_testing::{require, run};

use crate::support::live::in_namespace;
use crate::support::{folder, twixt, twixt_in};

/// What a document says about something: status, detail and remedy.
#[track_caller]
fn finding<'a>(document: &'a Value, name: &str, subject: &str) -> [&'a str; 3] {
    let checks = document["checks"].as_array().unwrap();
    let is_it = |check: &&Value| check["name"] == name && check["subject"] == subject;
    let found = checks.iter().find(is_it).unwrap_or_else(|| panic!("{name} {subject}: {document}"));
    ["status", "detail", "fix"].map(|key| found[key].as_str().unwrap_or_default())
}

/// The finding on the offloads of `far` after `ethtool -K`.
#[track_caller]
fn check_offloads(settings: &str, expected: [&str; 2]) {
    run(&format!("ethtool -K far {settings}"));
    let document = twixt(["doctor", "-i", "far", "-F", "json"]).expect(0).json();
    let [status, _, fix] = finding(&document, "offload", "far");
    assert_eq!([status, fix], expected, "{document}");
}

#[test]
fn offloads_are_told_as_they_are() {
    in_namespace(|| {
        require!(program "ethtool");
        check_offloads("gro on gso on tso on", ["warn", "ethtool -K far gro off gso off tso off"]);
        check_offloads("gro off", ["warn", "ethtool -K far gso off tso off"]);
        check_offloads("gro on gso off tso off", ["warn", "ethtool -K far gro off"]);
        check_offloads("gro off", ["ok", ""]);
    });
}

#[test]
fn an_interface_that_is_down_cannot_be_captured() {
    in_namespace(|| {
        let document = twixt(["doctor", "-i", "near", "-F", "json"]).expect(0).json();
        assert_eq!(finding(&document, "interface", "near")[1], "up, MTU 1500, veth");
        assert_eq!(finding(&document, "ring", "near")[0], "ok");
        assert_eq!(finding(&document, "timestamp", "near")[0], "ok");
        run("ip link set near down");
        let document = twixt(["doctor", "-i", "near", "-F", "json"]).expect(1).json();
        let [status, _, fix] = finding(&document, "interface", "near");
        assert_eq!([status, fix], ["fail", "ip link set near up"]);
        assert_eq!(finding(&document, "ring", "near")[0], "fail");
        // It was not requested: another one may do.
        let document = twixt(["doctor", "-F", "json"]).expect(0).json();
        assert_eq!(finding(&document, "interface", "near")[0], "ok");
        assert_eq!(finding(&document, "ring", "far")[0], "ok");
    });
}

#[test]
fn a_missing_capability_is_a_failure() {
    let dropping = ["--bounding-set", "-net_raw", "--inh-caps", "-net_raw"];
    require!(capabilities);
    let ended = Command::new("setpriv")
        .args(dropping)
        .arg(env!("CARGO_BIN_EXE_twixt"))
        .args(["doctor", "-F", "json"])
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let [status, _, fix] = finding(&document, "capability", "CAP_NET_RAW");
    assert_eq!(status, "fail");
    assert!(fix.contains("cap-add NET_RAW"), "{fix}");
}

#[test]
fn what_an_agent_needs_is_tried() {
    let folder = folder();
    let check = |arguments: &str, name: &str, subject: &str, expected: &str| {
        let line = format!("doctor {arguments} -F json");
        let document = twixt_in(folder.path(), &line).json();
        let [status, ..] = finding(&document, name, subject);
        assert_eq!(status, expected, "{document}");
    };
    check("--spool missing", "spool", "missing", "fail");
    std::fs::create_dir(folder.path().join("there")).unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    check("--store file", "store", "file", "fail");
    // Port 9 is that of `discard`, which is not served any more.
    check("--collector http://127.0.0.1:9", "collector", "http://127.0.0.1:9", "fail");
    let document = twixt_in(folder.path(), "doctor --spool there -F json").json();
    assert_ne!(finding(&document, "spool", "there")[0], "fail", "{document}");
}

#[test]
fn people_see_a_list_with_remedies() {
    let shown = twixt(["doctor", "-i", "no-such-thing0"]).expect(1).stdout;
    assert!(shown.contains("FAIL  interface"), "{shown}");
    assert!(shown.contains("→ ip link show"), "{shown}");
    assert!(shown.lines().all(|line| line == line.trim_end()), "{shown}");
    twixt(["doctor", "-F", "csv"]).expect(2).says(&["-F json"]);
    twixt(["doctor", "--collector", "nonsense"]).expect(2).says(&["https://HOST:PORT"]);
}
