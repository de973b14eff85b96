//! The collector is killed at random moments. What it acknowledged must be there, and estimates
//! must come as if nothing had happened.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use twixt_store::{Depth, Log, Options, Query};
use twixt_testing::{pace, seed, wait_until};

use super::process::{Process, printed};
use super::sender::{Shared, epoch_now, send_all};

/// Rounds, unless the variable `TWIXT_KILL_ROUNDS` says otherwise.
const ROUNDS: usize = 8;
const SEED: u64 = 1;
const DELAY_NS: i64 = 1_000_000;

#[test]
fn nothing_acknowledged_is_lost_and_nothing_counts_twice() {
    let rounds = std::env::var("TWIXT_KILL_ROUNDS").ok();
    let rounds = rounds.map_or(ROUNDS, |text| text.parse().unwrap());
    println!("{rounds} rounds");
    let folder = tempfile::tempdir().unwrap();
    let mut process = Process::start(folder.path(), 0);
    let shared = Shared {
        address: Mutex::new(process.address),
        acknowledged: Mutex::default(),
        last: AtomicI64::new(i64::MAX),
    };
    let first = epoch_now() + 1;
    let last = thread::scope(|scope| {
        scope.spawn(|| send_all(&shared, "up", 0, first));
        scope.spawn(|| send_all(&shared, "down", DELAY_NS, first));
        let mut random = seed(SEED);
        for round in 1..=rounds {
            // xorshift; from a tenth of a second to one.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            pace(Duration::from_millis(100 + random % 900));
            process.kill();
            // Whoever acknowledged is dead: what was said by now must hold.
            let acknowledged = shared.acknowledged.lock().unwrap().clone();
            check_log(folder.path(), &acknowledged);
            process = Process::start(folder.path(), round);
            *shared.address.lock().unwrap() = process.address;
        }
        let last = epoch_now() + 10;
        shared.last.store(last, Ordering::Relaxed);
        last
    });
    // The last waits for a neighbour that never comes; the one before it does not.
    wait_until("the epoch before the last is estimated", || {
        estimates(folder.path(), rounds).iter().any(|(epoch, _)| *epoch == last - 1)
    });
    process.signal("TERM");
    assert_eq!(process.wait(), Some(0));
    check_log(folder.path(), &shared.acknowledged.lock().unwrap());
    check_estimates(folder.path(), rounds, first, last);
}

/// Everything is there, once.
fn check_log(folder: &Path, acknowledged: &[(String, i64)]) {
    let log = Log::open(folder.join("collector/epochs"), Options::default());
    let Ok(mut scan) = log.scan(Query::all().to_depth(Depth::Checks)) else {
        return assert!(acknowledged.is_empty());
    };
    let found: Vec<_> = scan.by_ref().map(|found| (found.point, found.epoch.0)).collect();
    assert_eq!(scan.report().damaged, 0, "{:?}", scan.report());
    let unique: BTreeSet<_> = found.iter().cloned().collect();
    assert_eq!(unique.len(), found.len(), "something is stored twice");
    let lost: Vec<_> = acknowledged.iter().filter(|epoch| !unique.contains(epoch)).collect();
    assert!(lost.is_empty(), "acknowledged, but lost: {lost:?}");
}

/// Estimated epochs of a round, with the whole line.
fn estimates(folder: &Path, round: usize) -> Vec<(i64, String)> {
    let text = std::fs::read_to_string(printed(folder, round)).unwrap();
    let of_line = |line: &str| {
        let row: Value = serde_json::from_str(line).ok()?;
        (row["event"] == "estimate").then(|| (row["epoch"].as_i64().unwrap(), line.to_owned()))
    };
    text.lines().filter_map(of_line).collect()
}

/// Every epoch between the ends was estimated, rightly, and no gap was told. What a killed
/// collector told last may be told again, word for word, if it died in the few microseconds before
/// it could write down that it had: once in all rounds is bad luck already.
fn check_estimates(folder: &Path, rounds: usize, first: i64, last: i64) {
    let mut told: BTreeMap<i64, String> = BTreeMap::new();
    let mut repeated = 0;
    for round in 0..=rounds {
        for (epoch, line) in estimates(folder, round) {
            let row: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(row["mean_ns"].as_i64(), Some(DELAY_NS), "{line}");
            if let Some(before) = told.insert(epoch, line.clone()) {
                assert_eq!(before, line);
                repeated += 1;
            }
        }
        let text = std::fs::read_to_string(printed(folder, round)).unwrap();
        assert!(!text.contains("\"event\":\"gap\""), "round {round}: {text}");
    }
    println!("{} epochs estimated, {repeated} of them told again", told.len());
    let missing: Vec<i64> = (first + 1..last).filter(|epoch| !told.contains_key(epoch)).collect();
    assert!(missing.is_empty(), "not estimated: {missing:?} of {first}..{last}");
    assert!(repeated <= 1 + rounds / 25, "{repeated} told again in {rounds} rounds");
}
