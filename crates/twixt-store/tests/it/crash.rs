//! A writer that is killed: everything that it acknowledged is there afterwards.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use twixt_model::Epoch;
use twixt_store::{Depth, Durability, EpochEntry, Log, Options, Query};

use crate::support::{Folder, ask, minute};

const ROUNDS: u64 = 24;
const FOLDER: &str = "TWIXT_STORE_TEST_FOLDER";
const FIRST: &str = "TWIXT_STORE_TEST_FIRST";

/// Not a test but the writer that the test below kills: without its variables it does nothing.
#[test]
#[ignore = "a role in the test below"]
fn writer_child() {
    let (Some(folder), Ok(first)) = (std::env::var_os(FOLDER), std::env::var(FIRST)) else {
        return;
    };
    let mut writer =
        Log::open(folder, Options { level: 1, ..Options::default() }).writer("paris").unwrap();
    let mut out = std::io::stdout().lock();
    for number in first.parse::<i64>().unwrap().. {
        // All on one day: every writer finds what the one before left.
        let entry = EpochEntry { stream: "lda", span: minute(number % 1440), epoch: Epoch(number) };
        // Odd lengths, and long enough for the kill to find one half written.
        let payload = noise(number, 20_000 + number as usize * 37 % 9000);
        writer.append(&entry, &payload, Durability::Synced).unwrap();
        writeln!(out, "stored {number}").unwrap();
    }
}

fn noise(seed: i64, length: usize) -> Vec<u8> {
    let mut state = seed as u64 | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn nothing_acknowledged_is_lost_when_the_writer_is_killed() {
    let folder = Folder::new();
    let mut acknowledged = Vec::new();
    for round in 0..ROUNDS {
        acknowledged.extend(write_and_kill(&folder, round));
        let (found, report) = ask(&folder.log, Query::all());
        let stored: Vec<i64> = found.iter().map(|record| record.epoch.0).collect();
        for number in &acknowledged {
            assert!(stored.contains(number), "round {round}: {number} is gone; {report:?}");
        }
        assert_eq!(report.damaged, 0, "round {round}: {report:?}");
        for record in &found {
            assert!(record.payload == noise(record.epoch.0, record.payload.len()));
        }
    }
    assert!(acknowledged.len() > ROUNDS as usize, "{} records", acknowledged.len());
    // A writer has cut what was torn, so that the index covers all.
    folder.store("paris", 0..1);
    let (_, report) = ask(&folder.log, Query::all().to_depth(Depth::Checks));
    assert!(report.is_whole(), "{report:?}");
}

/// Runs a writer for a few records; what it acknowledged before it was killed.
fn write_and_kill(folder: &Folder, round: u64) -> Vec<i64> {
    let mut child = Command::new(std::env::current_exe().expect("the test is a program"))
        .args(["--exact", "crash::writer_child", "--ignored", "--nocapture"])
        .env(FOLDER, folder.log.folder())
        .env(FIRST, (round * 10_000).to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts again");
    let mut lines = BufReader::new(child.stdout.take().expect("it was asked for")).lines();
    let number = |line: String| line.split_once("stored ")?.1.parse::<i64>().ok();
    let first = lines.by_ref().map_while(Result::ok).find_map(number);
    // At some moment that has nothing to do with its records.
    twixt_testing::pace(Duration::from_micros(round * 1_357 % 12_000));
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    first.into_iter().chain(lines.map_while(Result::ok).filter_map(number)).collect()
}
