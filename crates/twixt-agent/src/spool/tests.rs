//! Epochs in, batches out, across restarts. What the queue promises is tested with it.

use std::path::PathBuf;

use twixt_store::{Faults, SimulatedDisk};

use super::*;

/// Bytes that do not compress.
fn payload(number: u64, length: usize) -> Vec<u8> {
    let words = (0..length as u64 / 8).map(|at| twixt_model::mix(number * 1_000_003 + at));
    words.flat_map(u64::to_le_bytes).collect()
}

fn append(spool: &Spool, numbers: std::ops::Range<u64>, length: usize) {
    for number in numbers {
        spool.append(Epoch(number as i64), &payload(number, length)).unwrap();
    }
}

fn numbers(batch: &[Spooled]) -> Vec<i64> {
    batch.iter().map(|spooled| spooled.epoch.0).collect()
}

fn on(disk: &SimulatedDisk, now: Timestamp) -> Spool {
    Spool::open_on(&disk.mount(), Arc::new(move || now), Path::new("/spool"), 1 << 20).unwrap()
}

#[test]
fn what_is_not_confirmed_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::open(folder.path(), 1 << 20).unwrap();
    append(&spool, 0..5, 800);
    let batch = spool.batch(3, 1 << 20).unwrap();
    assert_eq!(numbers(&batch), [0, 1, 2]);
    assert_eq!(batch[1].payload, payload(1, 800));
    spool.confirm(&batch[1]);
    assert_eq!(numbers(&spool.batch(10, 1 << 20).unwrap()), [2, 3, 4]);
    assert_eq!(spool.counts().epochs, 3);
    drop(spool);

    let spool = Spool::open(folder.path(), 1 << 20).unwrap();
    append(&spool, 5..6, 800);
    let batch = spool.batch(10, 1 << 20).unwrap();
    assert_eq!(numbers(&batch), [2, 3, 4, 5]);
    spool.confirm(&batch[3]);
    assert_eq!((spool.counts().epochs, spool.counts().oldest), (0, None));
    append(&spool, 6..7, 800);
    assert_eq!(numbers(&spool.batch(10, 1 << 20).unwrap()), [6]);
}

#[test]
fn batches_are_bounded_but_never_empty() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::open(folder.path(), 1 << 20).unwrap();
    append(&spool, 0..10, 8000);
    assert_eq!(numbers(&spool.batch(10, 20_000).unwrap()), [0, 1]);
    assert_eq!(numbers(&spool.batch(10, 10).unwrap()), [0]);
    assert_eq!(numbers(&spool.batch(4, 1 << 20).unwrap()), [0, 1, 2, 3]);
}

#[test]
fn the_age_of_the_oldest_epoch_survives_a_restart() {
    let disk = SimulatedDisk::new(1);
    let second = 1_000_000_000;
    append(&on(&disk, Timestamp::from_nanos(5 * second)), 0..2, 100);
    let spool = on(&disk, Timestamp::from_nanos(12 * second));
    assert_eq!(spool.counts().oldest, Some(Duration::from_secs(7)));
}

#[test]
fn a_spool_that_cannot_be_read_keeps_its_epochs() {
    let disk = SimulatedDisk::new(1);
    let spool = on(&disk, Timestamp::MIN);
    append(&spool, 0..3, 100);
    disk.set_faults(Faults { open_files_max: Some(0), ..Faults::default() });
    let problem = spool.batch(10, 1 << 20).unwrap_err().to_string();
    assert!(problem.contains("cannot read /spool/"), "{problem}");
    assert_eq!((spool.counts().epochs, spool.counts().damaged), (3, 0));
    disk.set_faults(Faults::default());
    assert_eq!(numbers(&spool.batch(10, 1 << 20).unwrap()), [0, 1, 2]);
}

#[test]
fn what_the_disk_refuses_is_counted() {
    let disk = SimulatedDisk::new(1);
    let spool = on(&disk, Timestamp::MIN);
    disk.set_faults(Faults { is_read_only: true, ..Faults::default() });
    assert!(spool.append(Epoch(1), b"refused").is_err());
    disk.set_faults(Faults::default());
    assert!(spool.append(Epoch(2), &payload(2, 1 << 21)).is_err(), "larger than the spool");
    let counts = spool.counts();
    assert_eq!((counts.unwritten, counts.discarded, counts.epochs), (1, 1, 0));
}

#[test]
fn a_spool_is_one_agents() {
    let folder = tempfile::tempdir().unwrap();
    let _first = Spool::open(folder.path(), 1 << 20).unwrap();
    let problem = Spool::open(folder.path(), 1 << 20).unwrap_err().to_string();
    assert!(problem.contains("used by another agent"), "{problem}");
}

/// A foreign file, or one of a newer release, is named; nothing is deleted.
#[test]
fn a_spool_of_another_program_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("00000000000000000001.twxq");
    std::fs::write(&path, "a text of another program, not a chunk").unwrap();
    let problem = Spool::open(folder.path(), 1 << 20).unwrap_err().to_string();
    assert!(problem.contains("twxq is not a file of twixt; move it away"), "{problem}");
    assert_eq!(problem.lines().count(), 1);
    assert!(path.exists());
}

/// An agent with as many points as it may have needs few descriptors.
#[test]
fn the_spools_of_64_points_fit() {
    let disk = SimulatedDisk::new(1);
    disk.set_faults(Faults { open_files_max: Some(64 * 2 + 1), ..Faults::default() });
    let points: Vec<String> = (0..64).map(|number| format!("point {number}")).collect();
    let now: Now = Arc::new(|| Timestamp::MIN);
    let names = points.iter().map(String::as_str);
    let spools = Spools::open_on(&disk.mount(), &now, Path::new("/spool"), names, 1 << 30).unwrap();
    for point in 0..64 {
        spools.append(point, Epoch(1), b"one").unwrap();
        spools.sync(point).unwrap();
    }
    for (_, spool) in spools.iter() {
        spool.confirm(spool.batch(10, 1 << 20).unwrap().last().unwrap());
    }
}

/// The clock was set back while the agent was down, to the very moment of its former start.
#[test]
fn the_number_of_the_newest_run_survives() {
    let folder = tempfile::tempdir().unwrap();
    let disk = real_disk();
    assert_eq!(newest_run(&disk, folder.path(), "up").unwrap(), 0);
    let spools = Spools::open(folder.path(), ["up"], 1 << 20).unwrap();
    spools.note_run(0, 700);
    spools.note_run(0, 500);
    drop(spools);
    assert_eq!(newest_run(&disk, folder.path(), "up").unwrap(), 700);
    std::fs::write(folder.path().join("up/newest-run"), "7x0").unwrap();
    assert_eq!(newest_run(&disk, folder.path(), "up").unwrap(), 0);
}
