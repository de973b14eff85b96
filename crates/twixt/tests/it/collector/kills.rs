//! The collector is killed at random moments. What it acknowledged must be there, and estimates
//! must come as if nothing had happened.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use twixt_collector::ESTIMATES_FOLDER;
use twixt_history::{HistoryReader, RowQuestion, Step};
use twixt_store::{Depth, Log, Options, Query};
use twixt_testing::{SmallDisk, pace, require, resident_kib, seed, wait_until};

use super::process::{Process, printed};
use super::sender::{Shared, epoch_now, send_all};
use crate::support::dice::{Dice, kill_rounds};

const ROUNDS: u32 = 8;
const SEED: u64 = 1;
const DELAY_NS: i64 = 1_000_000;
/// What may wait in the collector's memory by default; in these tests, next to nothing waits.
const RESIDENT_MAX_KIB: u64 = 512 * 1024;
/// What is left of a full disk: a record fits, a file does not.
const LEFT_BYTES: u64 = 4_096;

/// What happens before the collector is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Nothing,
    /// There is no room for more epochs.
    FullDisk,
    /// Connections break in the midst of a body.
    CutConnections,
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_counts_twice() {
    let folder = tempfile::tempdir().unwrap();
    let end = endure(folder.path(), |_, kill| kill());
    let Printed { repeated, gaps } = end.check_estimates(folder.path());
    assert_eq!(gaps, 0, "both halves were there in time");
    // It may die in the few microseconds between printing and writing down that it did: once in all
    // rounds is bad luck already.
    assert!(repeated <= 1 + end.rounds / 25, "{repeated} again in {} rounds", end.rounds);
}

/// The same with a disk that is full and connections that break in between. Halves may come too
/// late for each other then; they are estimated all the same.
#[test]
fn nor_with_a_full_disk_and_broken_connections() {
    require!(mounts);
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(&folder.path().join("collector"), "size=256m");
    let mut dice = Dice::new(seed(SEED + 1));
    let end = endure(folder.path(), |shared, kill| {
        let troubles = [Trouble::Nothing, Trouble::FullDisk, Trouble::CutConnections];
        let trouble = troubles[dice.roll(3) as usize];
        shared.cuts.store(trouble == Trouble::CutConnections, Ordering::Relaxed);
        if trouble == Trouble::FullDisk {
            disk.fill_but(LEFT_BYTES);
        }
        pace(Duration::from_millis(dice.roll(1000)));
        // It may end by itself, or start, while there is no room.
        let kills_first = dice.roll(2) == 0;
        if kills_first {
            kill();
        }
        if trouble == Trouble::FullDisk {
            disk.empty();
        }
        shared.cuts.store(false, Ordering::Relaxed);
        if !kills_first {
            kill();
        }
    });
    let Printed { repeated, gaps } = end.check_estimates(folder.path());
    // With a full disk it cannot write down what it printed.
    println!("{gaps} gaps printed first, and closed; {repeated} estimates printed again");
}

/// What was printed besides every estimate once.
struct Printed {
    repeated: u32,
    gaps: usize,
}

/// Where rounds ended.
struct End {
    rounds: u32,
    /// The epochs that were sent.
    first: i64,
    last: i64,
}

/// Sends epochs of both points while the collector is killed again and again, and checks after
/// every kill that whatever was acknowledged is stored. `round` does what it likes, and kills once.
fn endure(folder: &Path, mut round: impl FnMut(&Shared, &mut dyn FnMut())) -> End {
    let rounds = kill_rounds(ROUNDS);
    let process = Mutex::new(Process::start(folder, 0));
    let shared = Shared::new(process.lock().unwrap().address);
    let first = epoch_now() + 1;
    let (mut dice, mut resident_max_kib) = (Dice::new(seed(SEED)), 0);
    let last = thread::scope(|scope| {
        scope.spawn(|| send_all(&shared, "up", 0, first));
        scope.spawn(|| send_all(&shared, "down", DELAY_NS, first));
        for number in 1..=rounds {
            pace(Duration::from_millis(100 + dice.roll(900)));
            round(&shared, &mut || {
                let mut process = process.lock().unwrap();
                resident_max_kib = resident_max_kib.max(resident_kib(process.id()));
                process.kill();
                // Who acknowledged is dead: what was acknowledged by now must be there.
                let acknowledged = shared.acknowledged.lock().unwrap().clone();
                check_log(folder, &acknowledged);
                *process = Process::start(folder, number);
                resident_max_kib = resident_max_kib.max(resident_kib(process.id()));
                *shared.address.lock().unwrap() = process.address;
            });
        }
        let last = epoch_now() + 10;
        shared.last.store(last, Ordering::Relaxed);
        last
    });
    let end = End { rounds, first, last };
    // The last waits for a neighbour that never comes; the one before it does not.
    wait_until("the epochs before the last are estimated", || end.missing(folder).is_empty());
    let mut process = process.into_inner().unwrap();
    process.signal("TERM");
    assert_eq!(process.wait(), Some(0));
    let acknowledged = shared.acknowledged.into_inner().unwrap();
    check_log(folder, &acknowledged);
    println!("{} acknowledged, 0 lost; at most {resident_max_kib} KiB", acknowledged.len());
    assert!(resident_max_kib < RESIDENT_MAX_KIB);
    end
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
fn estimates(folder: &Path, round: u32) -> Vec<(i64, String)> {
    let text = fs::read_to_string(printed(folder, round)).unwrap();
    let of_line = |line: &str| {
        let row: Value = serde_json::from_str(line).ok()?;
        (row["event"] == "estimate").then(|| (row["epoch"].as_i64().unwrap(), line.to_owned()))
    };
    text.lines().filter_map(of_line).collect()
}

impl End {
    /// Epochs between the ends that are not estimated.
    fn missing(&self, folder: &Path) -> Vec<i64> {
        let rows = (0..=self.rounds).flat_map(|round| estimates(folder, round));
        let estimated: BTreeSet<i64> = rows.map(|(epoch, _)| epoch).collect();
        (self.first + 1..self.last).filter(|epoch| !estimated.contains(epoch)).collect()
    }

    /// Every epoch between the ends was estimated, rightly, and is in the history once. What a
    /// killed collector printed last may be printed again, word for word.
    fn check_estimates(&self, folder: &Path) -> Printed {
        let mut rows: BTreeMap<i64, String> = BTreeMap::new();
        let (mut repeated, mut gaps) = (0, 0);
        for round in 0..=self.rounds {
            for (epoch, line) in estimates(folder, round) {
                let row: Value = serde_json::from_str(&line).unwrap();
                assert_eq!(row["mean_ns"].as_i64(), Some(DELAY_NS), "{line}");
                if let Some(before) = rows.insert(epoch, line.clone()) {
                    assert_eq!(before, line);
                    repeated += 1;
                }
            }
            let text = fs::read_to_string(printed(folder, round)).unwrap();
            gaps += text.matches("\"event\":\"gap\"").count();
        }
        println!("{} epochs estimated, {repeated} of them printed again", rows.len());
        assert_eq!(self.missing(folder), [0; 0], "of {}..{}", self.first, self.last);
        self.check_history(folder);
        Printed { repeated, gaps }
    }

    fn check_history(&self, folder: &Path) {
        let reader = HistoryReader::open(&folder.join("collector").join(ESTIMATES_FOLDER));
        let rows = reader.answer(&RowQuestion::all(Step::Epoch)).unwrap().rows;
        let known = rows.iter().filter(|row| row.epochs > 0).map(|row| row.start_ns);
        let mut starts: Vec<_> = known.collect();
        starts.sort_unstable();
        let stored = starts.len();
        starts.dedup();
        assert_eq!(starts.len(), stored, "something is in the history twice");
        assert!(stored as i64 >= self.last - self.first - 1, "{stored} epochs are in the history");
    }
}
