//! A disk without room, and one that must not be written to.

use std::os::unix::fs::PermissionsExt;
use std::{fs, io};

use twixt_model::Epoch;
use twixt_store::{Durability, EpochEntry, Log, Options, Query, StoreError};
use twixt_testing::{SmallDisk, require, without_capabilities};

use crate::support::{Folder, append, ask, epochs, minute};

#[test]
fn a_full_disk_is_an_error_and_costs_nothing_that_was_stored() {
    let folder = tempfile::tempdir().unwrap();
    require!(mounts);
    let _disk = SmallDisk::mount(folder.path(), "size=256k");
    let log = Log::open(folder.path().join("store"), Options::default());
    let mut writer = log.writer("paris").unwrap();
    let noise: Vec<u8> =
        (0..30_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 23) as u8).collect();
    let entry = |number| EpochEntry { stream: "lda", span: minute(number), epoch: Epoch(number) };
    let mut stored = 0;
    let refused = loop {
        match writer.append(&entry(stored), &noise, Durability::Synced) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(stored > 2, "{stored}");
    let StoreError::Write { source, .. } = &refused else { panic!("{refused}") };
    assert_eq!(source.kind(), io::ErrorKind::StorageFull);
    let check = |expected: i64| {
        let (found, report) = ask(&log, Query::all());
        assert!(found.iter().map(|record| record.epoch.0).eq(0..expected));
        assert!(report.is_whole(), "{report:?}");
    };
    check(stored);
    // What is small enough still fits, and with the same writer.
    writer.append(&entry(stored), b"small", Durability::Synced).unwrap();
    check(stored + 1);
}

#[test]
fn what_must_not_be_written_is_an_error() {
    without_capabilities(|| {
        let folder = Folder::with("paris", 2);
        let paris = folder.log.folder().join("paris");
        fs::set_permissions(&paris, fs::Permissions::from_mode(0o555)).unwrap();
        fs::set_permissions(folder.data(), fs::Permissions::from_mode(0o444)).unwrap();
        let mut writer = folder.log.writer("paris").unwrap();
        for number in [2, 1440] {
            let refused = append(&mut writer, "paris", number).unwrap_err();
            assert!(matches!(refused, StoreError::Open { .. }), "{refused}");
        }
        assert_eq!(epochs(&folder.log, Query::all()).0, [0, 1]);
        fs::set_permissions(&paris, fs::Permissions::from_mode(0o755)).unwrap();
    });
}
