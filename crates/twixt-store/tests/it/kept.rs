//! What is stored is found again, and only what is asked for is read.

use twixt_model::Epoch;
use twixt_store::{
    Appended, Depth, Durability, EpochEntry, Log, Options, Query, STREAM_BYTES_MAX, StoreError,
};

use crate::support::{DAY, Folder, MINUTE, START, ask, epochs, minute, payload, span};

#[test]
fn records_are_found_by_point_stream_and_time() {
    let folder = Folder::new();
    for point in ["paris", "a/b c", ""] {
        let mut writer = folder.log.writer(point).unwrap();
        for (stream, offset) in [("lda", 0), ("lds web", 1000)] {
            let entry =
                |number| EpochEntry { stream, span: minute(number), epoch: Epoch(offset + number) };
            for number in 0..3 {
                let payload = payload(point, offset + number);
                writer.append(&entry(number), &payload, Durability::Synced).unwrap();
            }
        }
    }
    let check = |query: Query, expected: &[i64]| {
        let (found, report) = epochs(&folder.log, query);
        assert_eq!(found, expected);
        assert!(report.is_whole() && report.unindexed_bytes == 0, "{report:?}");
    };
    assert_eq!(folder.log.points().unwrap(), ["", "a/b c", "paris"]);
    check(Query::all().at_point("paris"), &[0, 1, 2, 1000, 1001, 1002]);
    check(Query::all().at_point("a/b c").of_streams(["lda"]), &[0, 1, 2]);
    check(Query::all().of_streams(["lds web"]).at_point(""), &[1000, 1001, 1002]);
    check(Query::all().of_streams(["lds"]), &[]);
    let both = Query::all().of_streams(["lds web", "lds", "lda"]);
    check(both.at_point("paris"), &[0, 1, 2, 1000, 1001, 1002]);
    check(Query::all().at_point("rome"), &[]);
    check(Query::between(minute(1)).at_point("paris"), &[1, 1001]);
    check(Query::between(minute(3)), &[]);
    let (found, _) = ask(&folder.log, Query::all().at_point("a/b c"));
    assert_eq!((found[0].point.as_str(), found[3].stream.as_str()), ("a/b c", "lds web"));
    assert_eq!((found[0].span, found[0].day.to_string()), (minute(0), "2024-01-01".to_owned()));
}

#[test]
fn long_payloads_are_packed_and_unpacked() {
    let folder = Folder::new();
    let mut writer = folder.log.writer("paris").unwrap();
    let noise: Vec<u8> =
        (0..300_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let payloads = [Vec::new(), vec![7; 1 << 20], noise];
    for (number, payload) in payloads.iter().enumerate() {
        let number = number as i64;
        let entry = EpochEntry { stream: "", span: minute(number), epoch: Epoch(number) };
        writer.append(&entry, payload, Durability::Written).unwrap();
    }
    let (found, report) = ask(&folder.log, Query::all());
    for (record, payload) in found.iter().zip(&payloads) {
        assert!(record.payload == *payload && record.payload_bytes == payload.len() as u64);
        assert_eq!(folder.log.payload(record).as_ref(), Ok(payload));
    }
    assert_eq!(found.len(), 3);
    assert!(found[1].stored_bytes < 1000, "a megabyte of one byte packs well");
    assert!(report.is_whole());
}

#[test]
fn heads_and_checks_hand_over_no_payload() {
    let folder = Folder::with("paris", 5);
    for depth in [Depth::Heads, Depth::Checks] {
        let (found, report) = ask(&folder.log, Query::all().to_depth(depth));
        assert_eq!(found.len(), 5);
        assert!(report.is_whole());
        for record in found {
            assert!(record.payload.is_empty());
            assert_eq!(folder.log.payload(&record), Ok(payload("paris", record.epoch.0)));
        }
    }
}

/// A query of a few minutes reads those records, one index, and of other days almost nothing.
#[test]
fn only_what_is_needed_is_read() {
    let folder = Folder::new();
    let mut writer = folder.log.writer("paris").unwrap();
    let large = vec![3; 1000];
    for day in 0..10 {
        for number in 0..100 {
            let number = day * 1440 + number;
            let entry = EpochEntry { stream: "lda", span: minute(number), epoch: Epoch(number) };
            writer.append(&entry, &large, Durability::Written).unwrap();
        }
    }
    let asked = span(START + 5 * DAY + 10 * MINUTE, START + 5 * DAY + 13 * MINUTE - 1);
    let (found, report) = ask(&folder.log, Query::between(asked));
    assert_eq!(found.len(), 3);
    let records: u64 = found.iter().map(|record| record.stored_bytes).sum();
    assert_eq!(report.days, 6, "days that begin later are not opened");
    assert!(report.data_bytes <= records + 6 * 16, "{report:?}");
    let (index_bytes, last_entries) = (16 + 100 * 64, 5 * (16 + 64));
    assert!(report.index_bytes <= index_bytes + last_entries + 64, "{report:?}");
}

/// A record that lasts for days is found by a query about any of them.
#[test]
fn a_record_is_found_on_every_day_that_it_lasts() {
    let folder = Folder::with("paris", 3);
    let mut writer = folder.log.writer("paris").unwrap();
    let long = EpochEntry { stream: "long", span: span(START, START + 3 * DAY), epoch: Epoch(77) };
    writer.append(&long, &payload("paris", 77), Durability::Synced).unwrap();
    drop(writer);
    folder.store("paris", 5..6);
    let (found, _) = epochs(&folder.log, Query::between(minute(2 * 1440)));
    assert_eq!(found, [77]);
    let (found, _) = epochs(&folder.log, Query::between(minute(3 * 1440 + 1)));
    assert_eq!(found, [0; 0]);
}

#[test]
fn the_same_epoch_is_stored_once_if_asked() {
    let folder = Folder::with("paris", 3);
    let mut writer = folder.log.writer("paris").unwrap();
    let mut once = |stream: &str, number: i64| {
        let entry = EpochEntry { stream, span: minute(number), epoch: Epoch(number) };
        writer.append_once(&entry, &payload("paris", number), Durability::Synced).unwrap()
    };
    assert_eq!(once("lda", 1), Appended::AlreadyThere, "by another writer");
    assert_eq!(once("lda", 3), Appended::Stored);
    assert_eq!(once("lda", 3), Appended::AlreadyThere, "by this one");
    assert_eq!(once("lds", 3), Appended::Stored);
    assert_eq!(once("lda", 1440), Appended::Stored);
    assert_eq!(once("lda", 2), Appended::AlreadyThere, "having been on another day meanwhile");
    assert_eq!(epochs(&folder.log, Query::all()).0, [0, 1, 2, 3, 3, 1440]);
}

#[test]
fn what_cannot_be_stored_is_refused() {
    let folder = Folder::new();
    assert!(matches!(
        folder.log.writer(&"x".repeat(300)).unwrap_err(),
        StoreError::PointName { .. }
    ));
    let mut writer = folder.log.writer("paris").unwrap();
    let long = "x".repeat(STREAM_BYTES_MAX + 1);
    let mut refused = |stream: &str, span| {
        writer.append(&EpochEntry { stream, span, epoch: Epoch(0) }, b"", Durability::Written)
    };
    assert!(matches!(refused(&long, minute(0)), Err(StoreError::StreamName { length: 2049 })));
    assert!(matches!(refused("", span(2, 1)), Err(StoreError::Span)));
    assert!(!folder.log.exists());
}

#[test]
fn a_folder_that_is_no_log_has_no_records() {
    let folder = Folder::new();
    assert!(matches!(folder.log.scan(Query::all()), Err(StoreError::Open { .. })));
    let other = Log::open(folder.path(), Options::default());
    std::fs::create_dir(folder.path().join("notes")).unwrap();
    std::fs::write(folder.path().join("notes").join("today.txt"), "hello").unwrap();
    assert!(!other.exists());
    assert_eq!(ask(&other, Query::all()).0.len(), 0);
}

#[test]
fn extreme_times_are_stored_like_others() {
    let folder = Folder::new();
    let mut writer = folder.log.writer("paris").unwrap();
    for (number, at) in [i64::MIN, -1, 0, i64::MAX].into_iter().enumerate() {
        let number = number as i64;
        let entry = EpochEntry { stream: "", span: span(at, at), epoch: Epoch(number) };
        writer.append(&entry, &payload("paris", number), Durability::Written).unwrap();
        assert_eq!(epochs(&folder.log, Query::between(span(at, at))).0, [number]);
    }
    assert_eq!(epochs(&folder.log, Query::all()).0, [0, 1, 2, 3]);
}
