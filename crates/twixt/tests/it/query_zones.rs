//! `twixt query` where clocks are set forward and back: times are what their offsets say, and what
//! is shown is UTC.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use twixt_history::{History, HistoryConfig, Row, SeriesKey, parse_moment};
use twixt_model::Timestamp;

const MINUTE_NS: i64 = 60_000_000_000;
const ZONES: [&str; 4] = ["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns"];

/// Five hours of epochs of a minute, from an hour before midnight UTC on.
fn stored(folder: &Path, day: &str) {
    let start_ns = parse_moment(&format!("{day}T00:00:00Z")).unwrap().as_nanos() - 60 * MINUTE_NS;
    let history = History::open(&folder.join("estimates"), HistoryConfig::default()).unwrap();
    for number in 0..300 {
        let start_ns = start_ns + number * MINUTE_NS;
        let series = SeriesKey {
            upstream: "a".to_owned(),
            downstream: "b".to_owned(),
            algorithm: "lda".to_owned(),
            epoch_ns: MINUTE_NS,
            ..SeriesKey::default()
        };
        let row = Row { packets: Some(1), ..Row::untold(series, start_ns / MINUTE_NS) };
        history.append(&[row], Timestamp::from_nanos(start_ns)).unwrap();
    }
    history.seal_all().unwrap();
}

fn query(folder: &Path, zone: &str, options: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_twixt"));
    command.env("TZ", zone).args(["query", "--segment", "a:b", "-F", "jsonl", "--directory"]);
    command.arg(folder).args(options.split_whitespace()).output().unwrap()
}

/// The same rows in every zone: how many, and when the first begins.
#[track_caller]
fn check(folder: &Path, options: &str, rows: usize, first: &str) {
    for zone in ZONES {
        let output = query(folder, zone, options);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{zone}: {said}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), rows, "{zone} {options}");
        let row: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let first_ns = parse_moment(first).unwrap().as_nanos();
        assert_eq!(row["start_ns"].as_i64(), Some(first_ns), "{zone} {options}");
    }
}

/// In Berlin, 02:00 to 03:00 of that day was there twice.
#[test]
fn the_night_with_an_hour_more() {
    let folder = tempfile::tempdir().unwrap();
    stored(folder.path(), "2026-10-25");
    let check = |options: &str, rows, first| check(folder.path(), options, rows, first);
    check("--step hour", 5, "2026-10-24T23:00:00Z");
    check(
        "--start 2026-10-25T02:30:00+02:00 --end 2026-10-25T02:30:00+01:00",
        61,
        "2026-10-25T00:30:00Z",
    );
    check("--start 2026-10-25T03:00:00+01:00", 120, "2026-10-25T02:00:00Z");
    check("--step hour --start 2026-10-25T02:00:00+02:00", 4, "2026-10-25T00:00:00Z");
}

/// In Berlin, 02:00 to 03:00 of that day was never there.
#[test]
fn the_night_with_an_hour_less() {
    let folder = tempfile::tempdir().unwrap();
    stored(folder.path(), "2026-03-29");
    let check = |options: &str, rows, first| check(folder.path(), options, rows, first);
    check("--step hour", 5, "2026-03-28T23:00:00Z");
    check(
        "--start 2026-03-29T01:59:00+01:00 --end 2026-03-29T03:00:00+02:00",
        2,
        "2026-03-29T00:59:00Z",
    );
}

#[test]
fn a_time_without_an_offset_is_utc_and_whoever_might_mean_another_is_told() {
    let folder = tempfile::tempdir().unwrap();
    stored(folder.path(), "2026-10-25");
    check(folder.path(), "--start 2026-10-25T02:30", 90, "2026-10-25T02:30:00Z");
    check(folder.path(), "--start 2026-10-25", 240, "2026-10-25T00:00:00Z");
    for zone in ZONES {
        let output = query(folder.path(), zone, "--start 2026-10-25T02:30");
        let said = String::from_utf8(output.stderr).unwrap();
        let expected = match zone {
            "UTC" => String::new(),
            zone => format!(
                "twixt: --start has no offset: it is taken as 2026-10-25T02:30:00Z, not as local time in {zone}\n"
            ),
        };
        assert_eq!(said, expected);
        let zoned = query(folder.path(), zone, "--start 2026-10-25T02:30:00Z");
        assert!(zoned.stderr.is_empty());
    }
    for name in ["2026-10-25T02:30:00CET", "2026-10-25T02:30:00Europe/Berlin"] {
        let output = query(folder.path(), "Europe/Berlin", &format!("--start {name}"));
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("not a valid time"));
    }
}
