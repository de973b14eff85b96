//! The log on a disk that fails on purpose: what was acknowledged is there, once.

use std::collections::BTreeSet;

use proptest::prelude::*;
use twixt_model::Epoch;
use twixt_store::{
    Appended, Durability, EpochEntry, Faults, Log, Operation, Options, PointWriter, Query,
    SimulatedDisk, StoreError,
};

use crate::support::{disk_faults, minute, payload};

const STORE: &str = "/var/store";

fn open(disk: &SimulatedDisk) -> Log {
    let options = Options { file_records_max: 5, ..Options::default() };
    Log::on(disk.mount(), STORE, options)
}

fn entry(epoch: i64) -> EpochEntry<'static> {
    EpochEntry { stream: "lda", span: minute(epoch % 1440), epoch: Epoch(epoch) }
}

fn store(writer: &mut PointWriter, epoch: i64) -> Result<Appended, StoreError> {
    writer.append_once(&entry(epoch), &payload("paris", epoch), Durability::Synced)
}

/// The epochs of all records, which are as they were stored.
fn stored(log: &Log) -> Vec<i64> {
    let query = Query::all().at_point("paris");
    let mut scan = log.scan(query).expect("the folder can be listed");
    let found: Vec<_> = scan.by_ref().collect();
    scan.finish().expect("all can be read");
    found
        .iter()
        .map(|found| {
            assert_eq!(found.payload, payload("paris", found.epoch.0));
            found.epoch.0
        })
        .collect()
}

fn failing(operation: Operation) -> Faults {
    Faults { failing: vec![(operation, 1)], ..Faults::default() }
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged_from_memory() {
    let disk = SimulatedDisk::new(1);
    let log = open(&disk);
    let mut writer = log.writer("paris").unwrap();
    store(&mut writer, 0).unwrap();
    writer.append_once(&entry(1), &payload("paris", 1), Durability::Written).unwrap();
    disk.set_faults(failing(Operation::Sync));
    assert!(writer.sync().is_err(), "neither the file nor its copy could be synced");
    disk.set_faults(Faults::default());
    // The record comes again. It is in memory, and the system's next sync would succeed.
    assert_eq!(store(&mut writer, 1).unwrap(), Appended::AlreadyThere);
    disk.crash();
    assert_eq!(stored(&open(&disk)), [0, 1]);
}

/// A crash left an index of records that were lost, a second crash brought it back after others had
/// taken their place, and it hid them.
#[test]
fn an_index_of_lost_records_hides_no_record() {
    for seed in 0..300 {
        let disk = SimulatedDisk::new(seed);
        let log = || Log::on(disk.mount(), STORE, Options::default());
        let mut writer = log().writer("paris").unwrap();
        store(&mut writer, 0).unwrap();
        for epoch in 1..4 {
            writer.append(&entry(epoch), &[7; 40], Durability::Written).unwrap();
        }
        drop(writer);
        disk.crash();
        let mut writer = log().writer("paris").unwrap();
        for epoch in 10..13 {
            store(&mut writer, epoch).unwrap();
        }
        drop(writer);
        disk.crash();
        let found = log().scan(Query::all().at_point("paris")).unwrap();
        let epochs: Vec<i64> = found.map(|found| found.epoch.0).collect();
        assert!([0, 10, 11, 12].iter().all(|epoch| epochs.contains(epoch)), "{seed}: {epochs:?}");
    }
}

#[test]
fn a_file_that_cannot_be_synced_stays_in_quarantine_over_a_restart() {
    let disk = SimulatedDisk::new(1);
    let mut writer = open(&disk).writer("paris").unwrap();
    writer.append_once(&entry(1), &payload("paris", 1), Durability::Written).unwrap();
    disk.set_faults(failing(Operation::Sync));
    assert!(writer.sync().is_err());
    disk.kill();
    disk.set_faults(Faults::default());
    let mut writer = open(&disk).writer("paris").unwrap();
    assert_eq!(store(&mut writer, 1).unwrap(), Appended::AlreadyThere);
    disk.crash();
    assert_eq!(stored(&open(&disk)), [1]);
    assert!(disk.files().iter().all(|(path, _)| !path.to_string_lossy().contains("suspect")));
}

/// A writer that cannot read what its file has must not take it for empty.
#[test]
fn what_cannot_be_read_is_not_stored_again() {
    let disk = SimulatedDisk::new(1);
    let log = open(&disk);
    store(&mut log.writer("paris").unwrap(), 0).unwrap();
    let mut writer = log.writer("paris").unwrap();
    // The data file and its index: no descriptor is left for looking through the records.
    writer.append(&entry(7), &payload("paris", 7), Durability::Synced).unwrap();
    disk.set_faults(Faults { open_files_max: Some(2), ..Faults::default() });
    let refused = store(&mut writer, 0).unwrap_err();
    assert!(matches!(refused, StoreError::Unreadable { .. }), "{refused}");
    disk.set_faults(Faults::default());
    assert_eq!(store(&mut writer, 0).unwrap(), Appended::AlreadyThere);
    assert_eq!(stored(&log), [0, 7]);
}

#[test]
fn a_scan_says_what_it_could_not_read() {
    let disk = SimulatedDisk::new(1);
    let log = open(&disk);
    store(&mut log.writer("paris").unwrap(), 0).unwrap();
    disk.set_faults(failing(Operation::Read));
    let mut scan = log.scan(Query::all()).unwrap();
    assert!(scan.next().is_none());
    assert_eq!(scan.report().unreadable, 1);
    assert!(matches!(scan.finish(), Err(StoreError::Unreadable { .. })));
}

#[derive(Clone, Debug)]
enum Event {
    /// Epochs from the last one, and some before it, again.
    Store {
        again: u8,
    },
    Fault(Faults),
    Crash,
    Kill,
    /// A crash after so many operations of what comes next.
    CrashWithin(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0..4_u8).prop_map(|again| Event::Store { again }),
        3 => disk_faults(4_000).prop_map(Event::Fault),
        1 => Just(Event::Crash),
        1 => Just(Event::Kill),
        1 => (0..12_u64).prop_map(Event::CrashWithin),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn what_was_acknowledged_is_there_once(
        seed in any::<u64>(),
        events in proptest::collection::vec(event(), 1..60),
    ) {
        let disk = SimulatedDisk::new(seed);
        let mut log = open(&disk);
        let mut writer = log.writer("paris").unwrap();
        let mut acknowledged = BTreeSet::new();
        let (mut newest, mut dies) = (0, false);
        for event in events {
            match event {
                Event::Store { again } => {
                    newest += 1;
                    for epoch in newest - i64::from(again)..=newest {
                        if epoch > 0 && store(&mut writer, epoch).is_ok() {
                            acknowledged.insert(epoch);
                        }
                    }
                }
                Event::Fault(faults) => disk.set_faults(faults),
                Event::CrashWithin(operations) => {
                    let faults = Faults { stops_after: Some(operations), ..Faults::default() };
                    disk.set_faults(faults);
                    dies = true;
                    continue;
                }
                Event::Crash => dies = true,
                Event::Kill => {
                    disk.kill();
                    log = open(&disk);
                    writer = log.writer("paris").unwrap();
                }
            }
            if std::mem::take(&mut dies) {
                disk.crash();
                disk.set_faults(Faults::default());
                log = open(&disk);
                writer = log.writer("paris").unwrap();
                check(&log, &acknowledged);
            }
        }
        disk.set_faults(Faults::default());
        check(&log, &acknowledged);
        // All heals: what was refused is stored now.
        for epoch in 1..=newest {
            prop_assert!(store(&mut writer, epoch).is_ok());
        }
        disk.crash();
        check(&open(&disk), &(1..=newest).collect());
    }
}

fn check(log: &Log, acknowledged: &BTreeSet<i64>) {
    let found = stored(log);
    let once: BTreeSet<i64> = found.iter().copied().collect();
    assert_eq!(once.len(), found.len(), "stored twice: {found:?}");
    assert!(once.is_superset(acknowledged), "{acknowledged:?} of which there is {found:?}");
}
