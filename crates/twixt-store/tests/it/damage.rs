//! Cut, changed, deleted and foreign files: what is hit is reported, all the rest is read.

use std::fs;

use twixt_model::Epoch;
use twixt_store::{Appended, Cause, Durability, EpochEntry, Query, Report, StoreError};
use twixt_testing::without_capabilities;

use crate::support::{Folder, append, ask, change, epochs, minute, payload};

const RECORDS: i64 = 4;

/// How the index is found.
const INDEXES: [&str; 3] = ["whole", "gone", "stale"];

/// A log with a few records and an index of one kind.
fn folder(index: &str) -> Folder {
    let folder = Folder::with("paris", RECORDS);
    match index {
        "gone" => fs::remove_file(folder.index()).expect("it is there"),
        "stale" => change(&folder.index(), |bytes| bytes.truncate(16 + 64)),
        _ => {}
    }
    folder
}

/// Where frames begin, and where the last ends.
fn places(bytes: &[u8]) -> Vec<usize> {
    let marks = bytes.windows(4).enumerate().filter(|(_, window)| window == b"\xf5TWR");
    marks.map(|(place, _)| place).chain([bytes.len()]).collect()
}

/// The number of the record that holds a byte; `None` for the header.
fn record_at(places: &[usize], place: usize) -> Option<i64> {
    places.iter().rposition(|&start| start <= place).map(|number| number as i64)
}

#[test]
fn a_torn_tail_is_skipped_by_readers_and_cut_by_the_next_writer() {
    for index in INDEXES {
        let whole = fs::read(folder(index).data()).unwrap();
        let places = places(&whole);
        for length in 0..whole.len() {
            check_cut(index, length, &places);
        }
    }
}

#[track_caller]
fn check_cut(index: &str, length: usize, places: &[usize]) {
    let folder = folder(index);
    change(&folder.data(), |bytes| bytes.truncate(length));
    let kept = places.iter().skip(1).filter(|&&end| end <= length).count() as i64;
    let expected: Vec<i64> = (0..kept).collect();
    let (found, report) = epochs(&folder.log, Query::all());
    assert_eq!(found, expected, "{index} index, {length} bytes");
    let clean = length == 16 || places.contains(&length) || length == 0;
    if index == "whole" {
        let lost: Vec<_> = report.damages.iter().map(|damage| damage.epoch).collect();
        assert_eq!(
            lost,
            (kept..RECORDS).map(|number| Some(Epoch(number))).collect::<Vec<_>>(),
            "the index knows what was lost"
        );
    } else if report.damages.is_empty() {
        assert_eq!(report.unfinished_bytes == 0, clean, "{length}: {report:?}");
    }
    // The next writer goes on behind the last whole record.
    folder.store("paris", 10..12);
    let (found, report) = epochs(&folder.log, Query::all());
    assert_eq!(found, [&expected[..], &[10, 11]].concat(), "{index} index, {length} bytes");
    assert!(report.is_whole() && report.unindexed_bytes == 0, "{length}: {report:?}");
}

#[test]
fn a_writer_says_how_much_it_cut() {
    let folder = folder("gone");
    change(&folder.data(), |bytes| bytes.truncate(bytes.len() - 5));
    let torn = ask(&folder.log, Query::all()).1.unfinished_bytes;
    let mut writer = folder.log.writer("paris").unwrap();
    append(&mut writer, "paris", 9).unwrap();
    assert!(torn > 64);
    assert_eq!(writer.cut_bytes(), torn);
}

#[test]
fn a_changed_byte_costs_one_record_at_most() {
    for index in INDEXES {
        let whole = fs::read(folder(index).data()).unwrap();
        let places = places(&whole);
        let folder = folder(index);
        for place in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x10;
            fs::write(folder.data(), bytes).unwrap();
            let hit = record_at(&places, place);
            let (found, report) = epochs(&folder.log, Query::all());
            let rest: Vec<i64> = (0..RECORDS).filter(|&number| Some(number) != hit).collect();
            assert_eq!(found, rest, "{index} index, byte {place}");
            check_report(&report, hit, index, place);
        }
    }
}

#[track_caller]
fn check_report(report: &Report, hit: Option<i64>, index: &str, place: usize) {
    assert!(!report.is_whole(), "{index} index, byte {place}");
    let Some(damage) = report.damages.first() else {
        // After the last sound record, damage and an unfinished record look alike.
        return assert!(hit == Some(RECORDS - 1) && index != "whole", "{index} index, {place}");
    };
    assert_eq!(report.damaged, 1, "{index} index, byte {place}: {report:?}");
    match hit {
        None => assert_eq!((&damage.cause, damage.bytes), (&Cause::Header, 16)),
        Some(number) if index == "whole" => {
            assert_eq!((damage.epoch, damage.span), (Some(Epoch(number)), Some(minute(number))));
        }
        Some(number) => assert!(damage.epoch.is_none_or(|epoch| epoch.0 == number)),
    }
}

#[test]
fn writers_go_on_behind_damage_in_the_middle() {
    for index in INDEXES {
        let folder = folder(index);
        let places = places(&fs::read(folder.data()).unwrap());
        change(&folder.data(), |bytes| bytes[places[1] + 3] ^= 1);
        folder.store("paris", 10..11);
        let (found, report) = epochs(&folder.log, Query::all());
        assert_eq!(found, [0, 2, 3, 10], "{index}");
        assert_eq!((report.damaged, report.unfinished_bytes), (1, 0), "{index}: {report:?}");
    }
}

#[test]
fn damage_elsewhere_does_not_concern_a_query() {
    let folder = folder("whole");
    let places = places(&fs::read(folder.data()).unwrap());
    change(&folder.data(), |bytes| bytes[places[1] + 70] ^= 1);
    let (found, report) = epochs(&folder.log, Query::between(minute(2)));
    assert_eq!(found, [2]);
    assert!(report.is_whole());
    let (found, report) = epochs(&folder.log, Query::between(minute(1)));
    assert_eq!(found, [0; 0]);
    assert_eq!(report.damages[0].span, Some(minute(1)));
    assert_eq!(report.damaged_bytes, (places[2] - places[1]) as u64);
}

#[test]
fn a_changed_byte_of_the_index_costs_nothing() {
    let folder = folder("whole");
    let index = fs::read(folder.index()).unwrap();
    for place in 0..index.len() {
        let mut bytes = index.clone();
        bytes[place] ^= 4;
        fs::write(folder.index(), bytes).unwrap();
        let (found, report) = epochs(&folder.log, Query::all());
        assert_eq!(found, [0, 1, 2, 3], "byte {place}");
        assert!(report.is_whole() && report.unindexed_bytes > 0, "{place}: {report:?}");
        for number in 0..RECORDS {
            assert_eq!(epochs(&folder.log, Query::between(minute(number))).0, [number], "{place}");
        }
    }
    for length in 0..index.len() {
        fs::write(folder.index(), &index[..length]).unwrap();
        assert_eq!(epochs(&folder.log, Query::all()).0, [0, 1, 2, 3], "{length} bytes");
    }
}

#[test]
fn the_next_writer_repairs_the_index() {
    for (at, length) in [(0, 272), (270, 272), (0, 0), (0, 17), (0, 100)] {
        let folder = folder("whole");
        change(&folder.index(), |bytes| {
            bytes.truncate(length);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1;
            }
        });
        folder.store("paris", 4..5);
        let (found, report) = epochs(&folder.log, Query::all());
        assert_eq!(found, [0, 1, 2, 3, 4]);
        assert_eq!(report.unindexed_bytes, 0, "{at} {length}");
    }
}

/// Something that looks like a frame, in a payload behind a damaged head, is not taken for one.
#[test]
fn a_frame_within_a_payload_is_not_found() {
    let folder = folder("whole");
    let bytes = fs::read(folder.data()).unwrap();
    let frames = &bytes[16..];
    let mut writer = folder.log.writer("rome").unwrap();
    let entry = EpochEntry { stream: "s", span: minute(9), epoch: Epoch(9) };
    writer.append(&entry, frames, Durability::Written).unwrap();
    let data = folder.file("rome", "2024-01-01.twxl");
    change(&data, |bytes| bytes[16] ^= 1);
    fs::remove_file(folder.file("rome", "2024-01-01.twxi")).unwrap();
    assert_eq!(ask(&folder.log, Query::all().at_point("rome")).0, []);
}

#[test]
fn a_deleted_day_is_known_from_its_index() {
    let folder = Folder::with("paris", 3);
    folder.store("paris", 1440..1443);
    fs::remove_file(folder.data()).unwrap();
    let (found, report) = epochs(&folder.log, Query::all());
    assert_eq!(found, [1440, 1441, 1442]);
    let lost: Vec<_> = report.damages.iter().map(|damage| (&damage.cause, damage.span)).collect();
    let missing = |number| (&Cause::Missing, Some(minute(number)));
    assert_eq!(lost, [missing(0), missing(1), missing(2)]);
    assert!(epochs(&folder.log, Query::between(minute(1441))).1.is_whole());
    // Without an index, this is unknown.
    fs::remove_file(folder.index()).unwrap();
    assert!(epochs(&folder.log, Query::all()).1.is_whole());
}

#[test]
fn a_damaged_record_is_stored_anew_if_it_comes_again() {
    let folder = folder("whole");
    let places = places(&fs::read(folder.data()).unwrap());
    change(&folder.data(), |bytes| bytes[places[2] - 1] ^= 1);
    let mut writer = folder.log.writer("paris").unwrap();
    let mut once = |number| {
        let entry = EpochEntry { stream: "lda", span: minute(number), epoch: Epoch(number) };
        writer.append_once(&entry, &payload("paris", number), Durability::Synced).unwrap()
    };
    assert_eq!((once(1), once(2)), (Appended::Stored, Appended::AlreadyThere));
    assert_eq!(epochs(&folder.log, Query::all()).0, [0, 2, 3, 1]);
}

#[test]
fn other_files_are_neither_read_nor_overwritten() {
    let folder = Folder::with("paris", 1);
    let text = b"this is somebody's text, and longer than a header";
    fs::write(folder.data(), text).unwrap();
    fs::remove_file(folder.index()).unwrap();
    let (found, report) = epochs(&folder.log, Query::all());
    assert_eq!(found, [0; 0]);
    assert_eq!(report.damages[0].cause, Cause::Header);
    let mut writer = folder.log.writer("paris").unwrap();
    assert!(matches!(append(&mut writer, "paris", 2), Err(StoreError::Foreign { .. })));
    assert_eq!(fs::read(folder.data()).unwrap(), text);
}

#[test]
fn a_file_that_must_not_be_read_is_reported() {
    use std::os::unix::fs::PermissionsExt;
    without_capabilities(|| {
        let folder = Folder::with("paris", 2);
        folder.store("rome", 0..2);
        fs::set_permissions(folder.data(), fs::Permissions::from_mode(0o000)).unwrap();
        let (found, report) = epochs(&folder.log, Query::all());
        assert_eq!(found, [0, 1], "rome's");
        assert!(matches!(report.damages[0].cause, Cause::Unreadable(_)), "{report:?}");
    });
}
