//! `twixt demo` as users run it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use serde_json::Value;
use twixt_testing::wait_until;

use crate::support::{command, folder, twixt, twixt_in};

fn document(arguments: &str) -> Value {
    let run = twixt(arguments.split_whitespace()).expect(0);
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn both_incidents_are_found_in_json() {
    let document = document("demo --once --seed 5 -F json");
    let segments = document["segments"].as_array().unwrap();
    assert_eq!(segments.len(), 18);
    for segment in segments {
        assert!(segment["mean_ns"].as_i64().unwrap() > 1_000_000, "{segment}");
        assert!(segment["p99_ns"].as_i64() > segment["mean_ns"].as_i64(), "{segment}");
        assert!((0.0..0.1).contains(&segment["loss"].as_f64().unwrap()), "{segment}");
    }
    let incidents = document["incidents"].as_array().unwrap();
    let kinds: Vec<&str> = incidents.iter().map(|of| of["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["queue", "loss"]);
    for incident in incidents {
        let (injected, found) = (&incident["injected"], &incident["found"]);
        assert_eq!(injected["segment"], found["segment"], "{incident}");
        assert_eq!(injected["class"], found["class"], "{incident}");
        let apart_s = injected["start_s"].as_f64().unwrap() - found["start_s"].as_f64().unwrap();
        assert!(apart_s.abs() <= 1.0, "{incident}");
        assert!(found["confidence"].as_f64().unwrap() > 0.999, "{incident}");
    }
    let verdicts = segments.iter().filter(|segment| segment["verdict"] != "ok");
    assert_eq!(verdicts.count(), 4);
}

#[test]
fn nothing_is_found_where_nothing_was_injected() {
    let document = document("demo --incidents none --seed 6 -F json");
    assert_eq!(document["incidents"], Value::Array(Vec::new()));
    let segments = document["segments"].as_array().unwrap();
    assert!(segments.iter().all(|segment| segment["verdict"] == "ok"));
}

/// Without a terminal it ends by itself, and leaves nothing behind. The commands that it recommends work.
#[test]
fn the_demo_ends_by_itself_and_recommends_what_works() {
    let (folder, temporary) = (folder(), folder());
    let output = command().arg("demo").env("TMPDIR", temporary.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains('\u{1b}'), "no colour without a terminal");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let (_, next) = text.split_once("What to try next:").unwrap();
    let commands: Vec<&str> =
        next.lines().filter_map(|line| line.trim().strip_prefix("twixt ")).collect();
    assert!(commands.len() >= 4, "{next}");
    let own = folder.path().to_str().unwrap();
    for command in commands {
        twixt_in(folder.path(), &command.replace("/tmp/twixt", own)).expect(0);
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let check = |arguments: &str, problem: &str| {
        let run = twixt(arguments.split_whitespace()).expect(2);
        assert!(run.stderr.contains(problem), "{}", run.stderr);
    };
    check("demo --listen 127.0.0.1:0 -F json", "omit -F");
    check("demo --listen 127.0.0.1:0 --once", "cannot be used with");
    check("demo --listen 192.0.2.1:0", "not a loopback address");
}

/// Ends with the test, whatever happens.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// It goes on until it is interrupted: the summary, then an API that answers with the present.
#[test]
fn a_live_demo_answers_queries_and_removes_its_files() {
    let temporary = folder();
    let mut child = command()
        .args(["demo", "--listen", "127.0.0.1:0", "--seed", "5"])
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    errors.read_line(&mut said).unwrap();
    let url = said.split_once("dashboard on ").unwrap().1.split_once(';').unwrap().0.to_owned();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut running = Running(child);
    let summary: Vec<String> =
        lines.by_ref().map(Result::unwrap).take_while(|line| !line.contains("Ctrl-C")).collect();
    let summary = summary.join("\n");
    // The queue, and the line that loses packets, as with --once.
    assert_eq!(summary.matches("confidence above 99.99 %").count(), 2, "{summary}");
    let query = format!("query --collector {url} --segment ams-fra:fra-ams --class voice");
    wait_until("an epoch after the summary is there", || {
        let run = twixt(format!("{query} --step epoch -F jsonl").split_whitespace());
        run.stdout.lines().filter(|line| line.contains("\"lda\"")).count() > 61
    });
    // Twice, as by someone who is impatient.
    let id = running.0.id().to_string();
    for _ in 0..2 {
        let _ = std::process::Command::new("kill").args(["-s", "INT", &id]).status().unwrap();
    }
    assert_eq!(running.0.wait().unwrap().code(), Some(130));
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("panicked"), "{rest}");
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "files are left");
}
