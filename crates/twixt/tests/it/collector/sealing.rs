//! The collector is killed while it seals an hour. Queries answer as before, whether the
//! hour is in its log, in files, half in one of them, or in both.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use twixt_history::{
    DelayPart, History, HistoryConfig, HistoryReader, Row, RowQuestion, SeriesKey, Step,
};
use twixt_model::Timestamp;
use twixt_testing::{copy_folder, pace};

use super::process::Process;

/// Rounds, unless the variable `TWIXT_KILL_ROUNDS` says otherwise.
const ROUNDS: usize = 8;
const SEGMENTS: usize = 3;
const SECOND_NS: i64 = 1_000_000_000;
/// 2024-01-31T10:00:00Z.
const START_NS: i64 = 1_706_695_200 * SECOND_NS;
/// Between two rounds. Sealing begins with the process, and takes some tens of milliseconds.
const STEP: Duration = Duration::from_millis(25);

fn row(segment: usize, second: i64) -> Row {
    let start_ns = START_NS + second * SECOND_NS;
    let series = SeriesKey {
        upstream: "a".to_owned(),
        downstream: format!("b{segment}"),
        algorithm: "lda".to_owned(),
        epoch_ns: SECOND_NS,
        ..SeriesKey::default()
    };
    Row {
        packets: Some(10),
        delay: Some(DelayPart {
            count: 10,
            sum_ns: 1_000 * i128::from(second),
            ..DelayPart::default()
        }),
        ..Row::untold(series, start_ns / SECOND_NS)
    }
}

/// An hour that is over, and not sealed.
fn store(estimates: &Path) {
    let history = History::open(estimates, HistoryConfig::default()).unwrap();
    for segment in 0..SEGMENTS {
        for second in 0..600 {
            history.append(&[row(segment, second)], Timestamp::from_nanos(START_NS)).unwrap();
        }
    }
    history.sync().unwrap();
}

/// Rows, epochs and sums of delays, in all steps.
fn told(estimates: &Path) -> Vec<(usize, (u64, u64), i128)> {
    let of_step = |step| {
        let answer = HistoryReader::open(estimates).answer(&RowQuestion::all(step)).unwrap();
        assert!(answer.problems.is_empty(), "{:?}", answer.problems);
        let sum = answer.rows.iter().filter_map(|row| Some(row.delay.as_ref()?.sum_ns)).sum();
        (answer.rows.len(), answer.epochs(), sum)
    };
    Step::ALL.map(of_step).into()
}

/// Which kinds of files there are.
fn state(estimates: &Path) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for folder in ["open", "epochs/2024-01-31", "rollups/2024-01-31"] {
        for entry in std::fs::read_dir(estimates.join(folder)).into_iter().flatten() {
            let path = entry.unwrap().path();
            let ending = path.extension().map_or("log".into(), |ending| ending.to_string_lossy());
            names.push(format!("{folder}/{ending}"));
        }
    }
    names.sort();
    names
}

#[test]
fn whoever_is_killed_while_sealing_loses_and_doubles_nothing() {
    let rounds = std::env::var("TWIXT_KILL_ROUNDS").ok();
    let rounds = rounds.map_or(ROUNDS, |text| text.parse().unwrap());
    let whole = tempfile::tempdir().unwrap();
    store(whole.path());
    let expected = told(whole.path());
    assert_eq!(expected[0].1, (SEGMENTS as u64 * 600, 0));
    let mut found = BTreeMap::new();
    for round in 0..rounds {
        let folder = tempfile::tempdir().unwrap();
        let estimates = folder.path().join("collector/estimates");
        copy_folder(whole.path(), &estimates);
        let mut process = Process::start(folder.path(), 0);
        pace(STEP * round as u32);
        process.kill();
        assert_eq!(told(&estimates), expected, "round {round}");
        *found.entry(state(&estimates)).or_insert(0) += 1;
        // The next one finishes it.
        let mut process = Process::start(folder.path(), 1);
        process.signal("TERM");
        assert_eq!(process.wait(), Some(0));
        assert_eq!(told(&estimates), expected, "round {round}");
        let open = std::fs::read_dir(estimates.join("open")).unwrap();
        assert_eq!(open.count(), 0, "it is sealed");
    }
    println!("how often which files were there after a kill: {found:?}");
}
