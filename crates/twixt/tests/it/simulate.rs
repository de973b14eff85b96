//! `twixt simulate` as users run it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;
use twixt_capture::CaptureFile;

/// Small enough to be quick, with loss and a queue.
const SMALL: &str = "--flows 50 --flow-size fixed:packets=40 --delay \
                     droptail:drain=1gbit,queue=200 --loss uniform:0.05";
const FILES: [&str; 3] = ["upstream.pcap", "downstream.pcap", "truth.csv"];

fn twixt(words: &str, out: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_twixt"));
    command.env_remove("TWIXT_CONFIG").args(words.split_whitespace());
    if let Some(out) = out {
        command.arg("--out").arg(out);
    }
    command.output().expect("the binary starts")
}

/// Simulates into a directory of its own, and expects that to work.
#[track_caller]
fn simulate(words: &str) -> (TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let output = twixt(&format!("simulate {words}"), Some(directory.path()));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    (directory, String::from_utf8(output.stdout).unwrap())
}

fn contents(directory: &TempDir) -> [Vec<u8>; 3] {
    FILES.map(|name| fs::read(directory.path().join(name)).unwrap())
}

/// Each frame's bytes and time, and the link type.
fn frames(path: &Path) -> Vec<(Vec<u8>, i64, u16)> {
    let mut frames = Vec::new();
    let mut file = CaptureFile::open(path).unwrap();
    let ending = file.read_to_end(|frame| {
        frames.push((frame.bytes.to_vec(), frame.time.as_nanos(), frame.link_type));
    });
    assert!(ending.is_complete(), "{ending}");
    frames
}

#[test]
fn the_same_command_gives_the_same_bytes() {
    let (first, _) = simulate(&format!("{SMALL} --seed 7"));
    let (second, _) = simulate(&format!("{SMALL} --seed 7"));
    let (other, _) = simulate(&format!("{SMALL} --seed 8"));
    assert_eq!(contents(&first), contents(&second));
    for (one, other) in contents(&first).iter().zip(&contents(&other)) {
        assert_ne!(one, other);
    }
}

#[test]
fn earlier_files_are_replaced_and_nothing_else_is_left_behind() {
    let (directory, _) = simulate(SMALL);
    let output = twixt("simulate --flows 2 --packets 20", Some(directory.path()));
    assert_eq!(output.status.code(), Some(0));
    let (fresh, _) = simulate("--flows 2 --packets 20");
    assert_eq!(contents(&directory), contents(&fresh));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), FILES.len());
}

#[test]
fn the_truth_has_a_row_for_each_flow_and_agrees_with_the_captures() {
    let (directory, _) = simulate(SMALL);
    let truth = fs::read_to_string(directory.path().join("truth.csv")).unwrap();
    let (header, rows) = truth.split_once('\n').unwrap();
    let columns = "scope,packets,lost,mean_ns,stddev_ns,min_ns,p50_ns,p95_ns,p99_ns,max_ns";
    assert_eq!(header, columns);
    assert_eq!(rows.lines().count(), 50);
    let sum = |column: usize| -> usize {
        rows.lines().map(|row| row.split(',').nth(column).unwrap().parse::<usize>().unwrap()).sum()
    };
    let (packets, lost) = (sum(1), sum(2));
    assert!(lost > 0);
    assert_eq!(frames(&directory.path().join("upstream.pcap")).len(), packets);
    assert_eq!(frames(&directory.path().join("downstream.pcap")).len(), packets - lost);
}

#[test]
fn the_summary_is_there_for_programs_too() {
    let (directory, text) = simulate(&format!("{SMALL} --seed 3 -F json"));
    let summary: Value = serde_json::from_str(&text).unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    for (key, name) in ["upstream", "downstream", "truth"].iter().zip(FILES) {
        assert_eq!(summary[key], path(name));
    }
    assert_eq!((&summary["packets"], &summary["flows"]), (&2000.into(), &50.into()));
    assert_eq!(summary["seed"], 3);
    assert!(summary["lost"].as_u64().unwrap() > 0);
}

#[track_caller]
fn check_refused(words: &str, out: &Path, code: i32, expected: &str) {
    let output = twixt(words, Some(out));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{errors}");
    assert!(errors.contains(expected), "{errors}");
    assert!(output.stdout.is_empty());
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path();
    check_refused("simulate --delay slow:1ms", out, 2, "unknown model \"slow\"");
    check_refused("simulate --flows 0", out, 2, "flows is 0, but must be 1 to 16515072");
    check_refused("simulate --arrivals - --rate 1pps", out, 2, "cannot be used with");
    assert_eq!(fs::read_dir(out).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_read_or_written_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "no directory, and no capture").unwrap();
    let named = file.to_str().unwrap();
    check_refused("simulate --flows 2 --packets 9", &file, 1, named);
    check_refused("simulate --flows 2 --packets 9", &file.join("deeper"), 1, named);
    check_refused(&format!("simulate --arrivals {named}"), directory.path(), 1, named);
    // A directory in the place of a file is in the way of that file alone, and is left alone.
    fs::create_dir_all(directory.path().join("out/downstream.pcap.partial")).unwrap();
    let out = directory.path().join("out");
    check_refused("simulate --flows 2 --packets 9", &out, 1, "cannot write");
    assert!(!out.join("upstream.pcap").exists());
    assert!(!out.join("upstream.pcap.partial").exists());
}

#[test]
fn packets_of_a_capture_cross_the_segment() {
    let (source, _) = simulate(SMALL);
    let source_path = source.path().join("upstream.pcap");
    let words = format!("--arrivals {} --delay constant:3ms -F json", source_path.display());
    let (directory, text) = simulate(&words);
    let summary: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&summary["packets"], &summary["lost"]), (&2000.into(), &0.into()));

    // Upstream is the source itself; downstream comes 3 ms and one hop later.
    let sent = frames(&directory.path().join("upstream.pcap"));
    assert_eq!(sent, frames(&source_path));
    let received = frames(&directory.path().join("downstream.pcap"));
    assert_eq!(received.len(), sent.len());
    for ((sent, sent_ns, _), (received, received_ns, _)) in sent.iter().zip(&received) {
        assert_eq!(received_ns - sent_ns, 3_000_000);
        assert_eq!(received[22], sent[22] - 1, "time to live");
        assert_ne!(received[24..26], sent[24..26], "checksum");
        assert_eq!(received[26..], sent[26..]);
    }
    assert_measured(directory.path(), 3_000_000);
}

/// `twixt delay` finds what was simulated.
#[track_caller]
fn assert_measured(directory: &Path, mean_ns: i64) {
    let path = |name: &str| directory.join(name).display().to_string();
    let words = format!("delay {} {} -F json", path("upstream.pcap"), path("downstream.pcap"));
    let output = twixt(&words, None);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["estimates"][0]["mean_ns"], mean_ns);
    assert_eq!(found["direction"]["decided_by"], "ttl");
}

#[test]
fn a_capture_without_packets_is_not_enough() {
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().join("empty.pcap");
    let (source, _) = simulate("--flows 1 --packets 1");
    let header = &fs::read(source.path().join("upstream.pcap")).unwrap()[..24];
    fs::write(&empty, header).unwrap();
    let words = format!("simulate --arrivals {}", empty.display());
    check_refused(&words, directory.path(), 4, "no IP packets");
}
