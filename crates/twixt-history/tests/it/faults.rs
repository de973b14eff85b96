//! A history on a disk that fails on purpose.

use std::path::Path;

use twixt_history::{History, HistoryConfig, HistoryReader, Step, Table};
use twixt_model::Timestamp;
use twixt_store::{Faults, Operation, SimulatedDisk};

use crate::support::{ask, between, row};

const FOLDER: &str = "/history";
const SEEDS: u64 = 20;

fn open(disk: &SimulatedDisk) -> History {
    History::open_table(disk.mount(), Path::new(FOLDER), Table::Estimates, HistoryConfig::default())
        .unwrap()
}

fn epochs(disk: &SimulatedDisk) -> u64 {
    let reader = HistoryReader::open_table(disk.mount(), Path::new(FOLDER), Table::Estimates);
    reader.answer(&ask("b", Step::Epoch, between(0, 600))).unwrap().epochs().0
}

fn store(history: &History, seconds: std::ops::Range<i64>) {
    for second in seconds {
        history.append(&[row("b", second)], Timestamp::MIN).unwrap();
    }
    history.sync().unwrap();
}

/// An hour whose log cannot be read at present is not sealed without what is in it.
#[test]
fn an_hour_is_not_sealed_while_its_log_cannot_be_read() {
    let disk = SimulatedDisk::new(1);
    let history = open(&disk);
    store(&history, 0..60);
    for operation in [Operation::Open, Operation::Read] {
        disk.set_faults(Faults { failing: vec![(operation, 1)], ..Faults::default() });
        assert!(history.seal_all().is_err(), "{operation:?}");
        disk.set_faults(Faults::default());
        assert_eq!(epochs(&disk), 60, "{operation:?}");
    }
    history.seal_all().unwrap();
    assert_eq!(epochs(&disk), 60);
}

/// Whatever step a crash cuts sealing off at, every row is there, once.
#[test]
fn a_crash_while_an_hour_is_sealed_costs_nothing() {
    for seed in 0..SEEDS {
        let disk = SimulatedDisk::new(seed);
        let history = open(&disk);
        store(&history, 0..60);
        disk.set_faults(Faults { stops_after: Some(5 * seed), ..Faults::default() });
        let _ = history.seal_all();
        disk.crash();
        disk.set_faults(Faults::default());
        let history = open(&disk);
        assert_eq!(epochs(&disk), 60, "seed {seed}");
        history.seal_all().unwrap();
        disk.crash();
        assert_eq!(epochs(&disk), 60, "seed {seed}, sealed");
    }
}

/// A crash undid that the log of a sealed hour was deleted, more came for it, and it was sealed again. A
/// second crash brought the first file back beside the second.
#[test]
fn an_hour_that_is_sealed_twice_is_there_once() {
    for seed in 0..SEEDS {
        let disk = SimulatedDisk::new(seed);
        let history = open(&disk);
        store(&history, 0..60);
        history.seal_all().unwrap();
        disk.crash();
        let history = open(&disk);
        store(&history, 60..61);
        history.seal_all().unwrap();
        disk.crash();
        assert_eq!(epochs(&disk), 61, "seed {seed}");
    }
}

/// A sealed hour that cannot be read at present is not taken for one that has nothing: what it has
/// would be stored again.
#[test]
fn what_cannot_be_read_at_present_is_not_stored_again() {
    for operation in [Operation::Open, Operation::Read] {
        let disk = SimulatedDisk::new(1);
        let history = open(&disk);
        store(&history, 0..60);
        history.seal_all().unwrap();
        let history = open(&disk);
        disk.set_faults(Faults { failing: vec![(operation, 1)], ..Faults::default() });
        let again = history.append(&[row("b", 5)], Timestamp::MIN);
        disk.set_faults(Faults::default());
        assert!(again.is_err(), "{operation:?}");
        store(&history, 5..6);
        history.seal_all().unwrap();
        assert_eq!(epochs(&disk), 60, "{operation:?}");
    }
}
