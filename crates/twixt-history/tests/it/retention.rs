//! What is old is forgotten, epochs before minutes, and the bound holds.

use std::fs;

use twixt_history::{HistoryConfig, HistoryRetention, Step};

use crate::support::{Fixture, HOUR, SECOND_NS, ask, at, between, files};

fn config(retention: HistoryRetention) -> HistoryConfig {
    HistoryConfig { retention, ..HistoryConfig::default() }
}

#[test]
fn minutes_may_stay_longer_than_epochs() {
    let fixture = Fixture::with(config(HistoryRetention {
        epochs_age_ns: Some(2 * HOUR * SECOND_NS),
        rollups_age_ns: Some(4 * HOUR * SECOND_NS),
        bytes_max: None,
    }));
    fixture.store("b", (0..6 * HOUR).step_by(10));
    fixture.history.seal_all().unwrap();
    let kept = fixture.history.keep(at(6 * HOUR)).unwrap();
    assert_eq!(kept.removed.files, 4 + 2);
    let epochs = fixture.answer(&ask("b", Step::Epoch, between(0, 6 * HOUR)));
    let known = epochs.rows.iter().filter(|row| !row.is_gap()).map(|row| row.start_ns).min();
    assert_eq!(known, Some(at(4 * HOUR).as_nanos()));
    let reason = epochs.rows[0].reason.as_deref().unwrap();
    assert!(reason.contains("no longer kept"), "{reason}");
    let minutes = fixture.answer(&ask("b", Step::Minute, between(0, 6 * HOUR)));
    assert_eq!(minutes.rows[0].start_ns, at(2 * HOUR).as_nanos(), "nobody expects older ones");
    assert_eq!(minutes.rows.len(), 4 * 60);
}

#[test]
fn the_bound_on_bytes_holds() {
    let fixture = Fixture::new();
    fixture.store("b", (0..8 * HOUR).step_by(10));
    fixture.history.seal_all().unwrap();
    let size = |path: &std::path::PathBuf| fs::metadata(path).unwrap().len();
    let bytes: u64 = files(fixture.path(), ".parquet").iter().map(size).sum();
    let rollups: u64 = files(&fixture.path().join("rollups"), ".parquet").iter().map(size).sum();
    for bytes_max in [bytes, bytes / 2 + rollups / 2, rollups, rollups / 2, 0] {
        let folder = tempfile::tempdir().unwrap();
        twixt_testing::copy_folder(fixture.path(), folder.path());
        let retention =
            HistoryRetention { bytes_max: Some(bytes_max), ..HistoryRetention::default() };
        let history = twixt_history::History::open(folder.path(), config(retention)).unwrap();
        let removed = history.keep(at(9 * HOUR)).unwrap().removed;
        let left: u64 = files(folder.path(), ".parquet").iter().map(size).sum();
        assert!(left <= bytes_max && removed.left_bytes == left);
        assert_eq!(removed.bytes, bytes - left);
        let epochs = files(&folder.path().join("epochs"), ".parquet").len();
        let minutes = files(&folder.path().join("rollups"), ".parquet").len();
        assert!(minutes == 8 || epochs == 0, "epochs go first");
    }
}
