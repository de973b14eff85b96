//! A day with more records than a file may have.

use twixt_model::Epoch;
use twixt_store::{Appended, Durability, EpochEntry, Log, Options, Query};

use crate::support::{Folder, ask, epochs, minute, payload};

fn log(folder: &Folder) -> Log {
    let options = Options { file_records_max: 4, ..Options::default() };
    Log::open(folder.log.folder(), options)
}

fn once(writer: &mut twixt_store::PointWriter, number: i64) -> Appended {
    let entry = EpochEntry { stream: "lda", span: minute(number), epoch: Epoch(number) };
    writer
        .append_once(&entry, &payload("paris", number), Durability::Synced)
        .expect("there is room")
}

#[test]
fn a_full_day_goes_on_in_further_files() {
    let folder = Folder::new();
    let log = log(&folder);
    let mut writer = log.writer("paris").unwrap();
    for number in 0..10 {
        assert_eq!(once(&mut writer, number), Appended::Stored, "{number}");
    }
    for (name, is_there) in [
        ("2024-01-01.twxl", true),
        ("2024-01-01.1.twxl", true),
        ("2024-01-01.2.twxl", true),
        ("2024-01-01.3.twxl", false),
    ] {
        assert_eq!(folder.file("paris", name).exists(), is_there, "{name}");
    }
    let (found, report) = epochs(&log, Query::all());
    assert_eq!(found, (0..10).collect::<Vec<_>>());
    assert!(report.is_whole() && report.unindexed_bytes == 0 && report.days == 3, "{report:?}");
    assert_eq!(epochs(&log, Query::between(minute(5))).0, [5]);
    let (found, _) = ask(&log, Query::between(minute(9)));
    assert_eq!(log.payload(&found[0]).unwrap(), payload("paris", 9));
    // A log without parts, as earlier releases have it, is the same but for one file.
    assert_eq!(epochs(&folder.log, Query::all()).0.len(), 10);
}

#[test]
fn records_of_full_files_are_known_and_a_restart_goes_on_in_the_last() {
    let folder = Folder::new();
    let log = log(&folder);
    let mut writer = log.writer("paris").unwrap();
    for number in 0..9 {
        assert_eq!(once(&mut writer, number), Appended::Stored, "{number}");
    }
    for number in [0, 3, 4, 8] {
        assert_eq!(once(&mut writer, number), Appended::AlreadyThere, "{number}");
    }
    drop(writer);
    let mut writer = log.writer("paris").unwrap();
    for number in [2, 7, 8] {
        assert_eq!(once(&mut writer, number), Appended::AlreadyThere, "{number}");
    }
    assert_eq!(once(&mut writer, 20), Appended::Stored);
    assert!(!folder.file("paris", "2024-01-01.3.twxl").exists(), "the third has room");
    drop(writer);
    assert_eq!(epochs(&log, Query::all()).0, [0, 1, 2, 3, 4, 5, 6, 7, 8, 20]);
    assert_eq!(log.bound(0).unwrap().days, 3, "each file is deleted on its own");
}
