//! The disk loses what it may lose, and nothing else.

use super::*;
use crate::disk::{Access, DiskFile, make_folders, read_file, replace_file};

const SEEDS: u64 = 200;
const FILE: &str = "/folder/file";

fn content(disk: &SharedDisk, path: &str) -> Option<Vec<u8>> {
    read_file(disk.as_ref(), Path::new(path), 1 << 20).ok()
}

fn written(simulated: &SimulatedDisk, bytes: &[u8]) -> (SharedDisk, Box<dyn DiskFile>) {
    let disk = simulated.mount();
    make_folders(disk.as_ref(), Path::new("/folder")).unwrap();
    let file = disk.open(Path::new(FILE), Access::Extend).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    (disk, file)
}

#[test]
fn what_is_synced_with_its_name_survives_and_other_things_may_not() {
    let bytes = [7; 3000];
    let outcomes = |is_named: bool, is_synced: bool| {
        let after_crash = |seed| {
            let simulated = SimulatedDisk::new(seed);
            let (disk, file) = written(&simulated, &bytes);
            if is_synced {
                file.sync().unwrap();
            }
            if is_named {
                disk.sync_folder(Path::new("/folder")).unwrap();
            }
            simulated.crash();
            assert!(disk.list(Path::new("/")).is_err(), "the process is gone");
            content(&simulated.mount(), FILE)
        };
        (0..SEEDS).map(after_crash).collect::<Vec<_>>()
    };
    assert!(outcomes(true, true).iter().all(|found| found.as_deref() == Some(&bytes[..])));
    let unnamed = outcomes(false, true);
    assert!(unnamed.contains(&None) && unnamed.contains(&Some(bytes.to_vec())));
    let unsynced = outcomes(true, false);
    let kinds = |is: fn(&[u8]) -> bool| unsynced.iter().flatten().filter(|found| is(found)).count();
    assert!(kinds(<[u8]>::is_empty) > 0, "lost");
    assert!(kinds(|found| found == [7; 3000]) > 0, "kept");
    assert!(kinds(|found| found.contains(&0)) > 0, "torn");
    assert_eq!(outcomes(true, false), unsynced, "one seed, one story");
}

#[test]
fn a_killed_process_loses_nothing_but_its_locks() {
    let simulated = SimulatedDisk::new(1);
    let (disk, file) = written(&simulated, b"kept");
    assert!(file.try_lock().unwrap());
    let other = disk.open(Path::new(FILE), Access::Read).unwrap();
    assert!(!other.try_lock().unwrap());
    simulated.kill();
    let disk = simulated.mount();
    assert!(disk.open(Path::new(FILE), Access::Read).unwrap().try_lock().unwrap());
    assert_eq!(content(&disk, FILE).as_deref(), Some(&b"kept"[..]));
}

#[test]
fn after_a_failed_sync_the_next_one_succeeds_and_keeps_nothing() {
    let simulated = SimulatedDisk::new(1);
    let (disk, file) = written(&simulated, b"lost");
    disk.sync_folder(Path::new("/folder")).unwrap();
    simulated.set_faults(Faults { failing: vec![(Operation::Sync, 1)], ..Faults::default() });
    assert!(file.sync().is_err());
    simulated.set_faults(Faults::default());
    file.sync().unwrap();
    assert_eq!(content(&disk, FILE).as_deref(), Some(&b"lost"[..]));
    simulated.crash();
    assert_eq!(content(&simulated.mount(), FILE).as_deref(), Some(&b""[..]));
}

#[test]
fn faults_are_those_that_were_asked_for() {
    #[track_caller]
    fn check(
        faults: Faults,
        number: i32,
        act: fn(&SharedDisk, &dyn DiskFile) -> std::io::Result<()>,
    ) {
        let simulated = SimulatedDisk::new(3);
        let (disk, file) = written(&simulated, b"some");
        simulated.set_faults(faults);
        let refused = act(&disk, file.as_ref()).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(number), "{refused}");
        simulated.set_faults(Faults::default());
        act(&disk, file.as_ref()).unwrap();
    }
    let none = Faults::default;
    let write: fn(&SharedDisk, &dyn DiskFile) -> _ = |_, file| file.write_all_at(b"more", 4);
    let open: fn(&SharedDisk, &dyn DiskFile) -> _ =
        |disk, _| disk.open(Path::new(FILE), Access::Read).map(drop);
    let read: fn(&SharedDisk, &dyn DiskFile) -> _ =
        |_, file| file.read_at(&mut [0; 4], 0).map(drop);
    check(Faults { bytes_max: Some(6), ..none() }, 28, write);
    check(Faults { is_read_only: true, ..none() }, 30, write);
    check(Faults { failing: vec![(Operation::Write, 1)], ..none() }, 5, write);
    check(Faults { open_files_max: Some(1), ..none() }, 24, open);
    check(Faults { failing: vec![(Operation::Open, 1)], ..none() }, 5, open);
    check(Faults { failing: vec![(Operation::Read, 1)], ..none() }, 5, read);
    check(Faults { stops_after: Some(0), ..none() }, 5, read);
}

#[test]
fn short_reads_are_read_on_and_bits_rot() {
    let simulated = SimulatedDisk::new(9);
    let bytes: Vec<u8> = (0..=255).collect();
    let (disk, _file) = written(&simulated, &bytes);
    simulated.set_faults(Faults { has_short_reads: true, ..Faults::default() });
    assert_eq!(content(&disk, FILE).as_deref(), Some(&bytes[..]));
    let (path, bit) = simulated.rot().unwrap();
    let mut rotten = bytes;
    rotten[(bit / 8) as usize] ^= 1 << (bit % 8);
    assert_eq!((path.as_path(), content(&disk, FILE)), (Path::new(FILE), Some(rotten)));
}

/// Whatever step a crash cuts it off at, a reader finds the old content or the new.
#[test]
fn a_file_is_replaced_as_a_whole_and_durably() {
    for seed in 0..SEEDS {
        for steps in 0.. {
            let simulated = SimulatedDisk::new(seed);
            let (disk, file) = written(&simulated, b"old");
            file.sync().unwrap();
            disk.sync_folder(Path::new("/folder")).unwrap();
            simulated.set_faults(Faults { stops_after: Some(steps), ..Faults::default() });
            let replaced = replace_file(&disk, Path::new(FILE), b"new content");
            simulated.crash();
            let found = content(&simulated.mount(), FILE).expect("it never lacks a file");
            let is_new = found == b"new content";
            assert!(is_new || found == b"old", "seed {seed}, {steps} steps: {found:?}");
            if replaced.is_ok() {
                assert!(is_new, "seed {seed}: it was durable");
                break;
            }
        }
    }
}
