//! `twixt query --directory` and `--collector`: what a collector remembers.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use twixt_history::{DelayPart, History, HistoryConfig, Row, SeriesKey};
use twixt_model::Timestamp;

use crate::collector::process::Process;

/// 2024-01-31T10:00:00Z.
const START_NS: i64 = 1_706_695_200_000_000_000;
const SECOND_NS: i64 = 1_000_000_000;

fn row(second: i64) -> Row {
    let start_ns = START_NS + second * SECOND_NS;
    let series = SeriesKey {
        upstream: "a".to_owned(),
        downstream: "b".to_owned(),
        class: String::new(),
        algorithm: "lda".to_owned(),
        domain: "lab".to_owned(),
        epoch_ns: SECOND_NS,
    };
    Row {
        packets: Some(10),
        used: Some(10),
        lost: Some(0),
        delay: Some(DelayPart {
            count: 10,
            sum_ns: 10_000_000,
            squares_ns2: Some(1e9),
            half_width_ns: Some(100.0),
            ..DelayPart::default()
        }),
        ..Row::untold(series, start_ns / SECOND_NS)
    }
}

/// The folder of a collector with the epochs of these seconds; the first hour is sealed.
fn stored(folder: &Path, seconds: impl IntoIterator<Item = i64>) {
    let estimates = folder.join("estimates");
    let history = History::open(&estimates, HistoryConfig::default()).unwrap();
    for second in seconds {
        let now = Timestamp::from_nanos(START_NS + second * SECOND_NS);
        history.append(&[row(second)], now).unwrap();
        if second == 3_599 {
            history.seal_all().unwrap();
        }
    }
    history.sync().unwrap();
}

fn query(source: &str, place: &str, options: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_twixt"));
    command.args(["query", source, place]).args(options.split_whitespace());
    command.output().unwrap()
}

#[track_caller]
fn text(output: &Output, code: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_folder_and_a_collector_answer_alike() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("collector");
    stored(&directory, 3_480..3_720);
    let directory = directory.to_str().unwrap();
    let process = Process::start(folder.path(), 0);
    let url = format!("http://{}", process.address);
    for options in [
        "--segment a:b -F json",
        "--segment a:b --step epoch -F jsonl",
        "--segment a:b --step hour -F csv",
        "--segment a:b",
        "--step epoch --start 2024-01-31T11:59:00+01:00 --end 2024-01-31T10:59:09Z -F jsonl",
        "--start @1706698740 --end @1706698799.5 -F json",
        "--segment a:b --step minute -F parquet",
    ] {
        let read = query("--directory", directory, options);
        let asked = query("--collector", &url, options);
        assert_eq!(text(&read, 0), text(&asked, 0), "{options}");
    }
    let minutes = text(&query("--directory", directory, "--segment a:b -F json"), 0);
    let document: Value = serde_json::from_str(&minutes).unwrap();
    assert_eq!(document["estimates"].as_array().unwrap().len(), 4);
    assert_eq!(document["estimates"][0]["mean_ns"], 1_000_000);
    assert_eq!(document["completeness"]["complete"], true);
    let zone = "--step epoch --start 2024-01-31T11:59:00+01:00 --end 2024-01-31T10:59:09Z -F jsonl";
    assert_eq!(text(&query("--directory", directory, zone), 0).lines().count(), 10);
    let parquet = query("--directory", directory, "-F parquet").stdout;
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
}

#[test]
fn what_is_missing_is_said() {
    let folder = tempfile::tempdir().unwrap();
    stored(folder.path(), (0..60).chain(120..180));
    let directory = folder.path().to_str().unwrap();
    let human = text(&query("--directory", directory, "--segment a:b"), 3);
    assert!(human.contains("0 of 60") && human.contains("no estimate is stored"), "{human}");
    assert!(human.contains("not complete: 120 epochs, 60 without an estimate"), "{human}");
    let lines = text(&query("--directory", directory, "--segment a:b -F jsonl"), 3);
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[1]["epochs"], &rows[1]["mean_ns"]), (&0.into(), &Value::Null));
    text(&query("--directory", directory, "--segment x:y"), 4);
    text(&query("--directory", directory, "--segment a:b --start now"), 4);
}

#[test]
fn damaged_hours_are_named_and_others_answered() {
    let folder = tempfile::tempdir().unwrap();
    stored(folder.path(), (3_540..3_660).chain(7_200..7_260));
    let day = folder.path().join("estimates/rollups/2024-01-31");
    let path = std::fs::read_dir(day).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let output = query("--directory", folder.path().to_str().unwrap(), "--segment a:b -F jsonl");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(path.to_str().unwrap()) && said.contains("damaged"), "{said}");
    let lines = text(&output, 3);
    assert!(lines.contains("stored data cannot be read"), "{lines}");
    assert!(lines.lines().filter(|line| line.contains("\"mean_ns\":1000000")).count() == 2);
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    stored(folder.path(), 0..2);
    let directory = folder.path().to_str().unwrap();
    for options in ["--step day", "--segment a", "--start yesterday", "--total", "--from a"] {
        text(&query("--directory", directory, options), 2);
    }
    text(&query("--store", directory, "--from a --to b --segment a:b"), 2);
    text(&query("--store", directory, ""), 2);
    text(&query("--collector", "ftp://x", ""), 2);
    text(&query("--collector", "http://127.0.0.1:1", ""), 1);
    let nothing = tempfile::tempdir().unwrap();
    text(&query("--directory", nothing.path().to_str().unwrap(), ""), 4);
}
