//! `twixt check` as cron and Nagios see it: a line and an exit code.

use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use twixt_history::{DelayPart, History, HistoryConfig, Row, SeriesKey};
use twixt_model::Timestamp;

const SECOND_NS: i64 = 1_000_000_000;

/// A minute of epochs that ended a minute ago: 100 packets each, two lost, 2 ms.
fn remember(folder: &Path) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let now_ns = now.as_nanos() as i64;
    let history = History::open(&folder.join("estimates"), HistoryConfig::default()).unwrap();
    for number in 60..120 {
        let start_ns = (now_ns / SECOND_NS - number) * SECOND_NS;
        let series = SeriesKey {
            upstream: "up".to_owned(),
            downstream: "down".to_owned(),
            algorithm: "lda".to_owned(),
            epoch_ns: SECOND_NS,
            ..SeriesKey::default()
        };
        let row = Row {
            packets: Some(100),
            used: Some(98),
            lost: Some(2),
            delay: Some(DelayPart { count: 98, sum_ns: 98 * 2_000_000, ..DelayPart::default() }),
            ..Row::untold(series, start_ns / SECOND_NS)
        };
        history.append(&[row], Timestamp::from_nanos(now_ns)).unwrap();
    }
    history.sync().unwrap();
}

#[track_caller]
fn check(folder: &Path, options: &str, code: i32, says: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_twixt"))
        .args(["check", "--directory", folder.to_str().unwrap()])
        .args(options.split_whitespace())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{options}: {said}");
    assert!(said.contains(says), "{options}: {said}");
}

#[test]
fn exit_codes_say_how_it_is() {
    let folder = tempfile::tempdir().unwrap();
    remember(folder.path());
    let check = |options: &str, code, says| check(folder.path(), options, code, says);
    let segment = "--segment up:down --window 10m";
    let with = |options: &str| format!("{segment} {options}");
    check(
        &with("--fail-above mean=5ms --fail-above loss=2%"),
        0,
        "TWIXT OK - up:down mean 2.000 ms, loss 2.00 % | mean=0.002s;;0.005 loss=2%;;2\n",
    );
    check(
        &with("--fail-above mean=1ms"),
        10,
        "TWIXT CRITICAL - up:down mean 2.000 ms (above 1.000 ms)",
    );
    check(&with("--fail-above mean=1ms --nagios"), 2, "TWIXT CRITICAL");
    check(&with("--fail-above loss=1.9% --fail-above p99=5ms"), 10, "TWIXT CRITICAL");
    check(&with("--fail-above p99=5ms"), 4, "TWIXT UNKNOWN");
    check(&with("--fail-above p99=5ms --nagios"), 3, "TWIXT UNKNOWN");
    check(&with("--fail-above mean=5ms --minimum-packets 1000000"), 4, "too few packets");
    check(&with("--fail-above mean=5ms -F json"), 0, "\"state\": \"ok\"");
    check("--segment up:nowhere --fail-above mean=5ms", 4, "no estimate stored");
    check(&with("--fail-above mean=5"), 2, "has no known unit");
    check(&with("--fail-above jitter=5ms"), 4, "jitter is unknown");
    check("--fail-above mean=5ms", 2, "--segment");
}

#[test]
fn a_collector_that_does_not_answer_is_a_failure() {
    let ask = |more: &[&str]| {
        let args = ["check", "--collector", "http://127.0.0.1:1", "--segment", "a:b"];
        let output = Command::new(env!("CARGO_BIN_EXE_twixt"))
            .args(args)
            .args(["--fail-above", "mean=5ms"])
            .args(more)
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(ask(&[]).0, 1);
    let (code, line) = ask(&["--nagios"]);
    assert_eq!(code, 3);
    assert!(line.starts_with("TWIXT UNKNOWN - cannot query"), "{line}");
}
