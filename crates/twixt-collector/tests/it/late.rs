//! Halves that arrive after their epoch was given up.

use std::path::Path;
use std::time::Duration;

use twixt_collector::{CollectorConfig, EPOCHS_FOLDER, ESTIMATES_FOLDER};
use twixt_engine::EngineEvent;
use twixt_history::{HistoryReader, Row, RowQuestion, Step};
use twixt_measure::Sealed;
use twixt_testing::wait_for;

use crate::epochs::{Agent, DELAY_NS, body, epoch_now};
use crate::pairing::copy_folder;
use crate::running::{Running, config, estimated_epoch};

/// Far more than wait for their other half in memory; unless the variable `TWIXT_LATE_EPOCHS` says
/// otherwise: an hour has 3600 epochs of a second, a day 86400.
fn epochs() -> i64 {
    std::env::var("TWIXT_LATE_EPOCHS").map_or(220, |text| text.parse().unwrap())
}

/// Epochs of both points, all of them given up by now.
fn halves() -> [Vec<Sealed>; 2] {
    let first = epoch_now() - 2 * epochs();
    [Agent::at("up"), Agent::at("down").after(DELAY_NS)].map(|agent| agent.seal(first, epochs()))
}

/// As an agent does: so many at a time, and again if the collector has too much to do.
fn deliver(collector: &Running, sealed: &[Sealed]) {
    for part in sealed.chunks(256) {
        let body = body(part);
        wait_for("a receipt", || match collector.send(&body) {
            answer if answer.status == 200 => Ok(()),
            answer => Err(answer),
        });
    }
}

/// Waits until the collector has reported something, as long as it reports anything: a day of epochs
/// takes minutes.
#[track_caller]
fn wait_for_events(collector: &Running, what: &str, is_there: impl Fn(&[EngineEvent]) -> bool) {
    let (mut reported, mut is_done) = (0, false);
    while !is_done {
        (reported, is_done) = wait_for(what, || match collector.events() {
            events if is_there(&events) => Ok((events.len(), true)),
            events if events.len() > reported => Ok((events.len(), false)),
            _ => Err(reported),
        });
    }
}

fn gap_epochs(events: &[EngineEvent]) -> u64 {
    let epochs = |event: &EngineEvent| match event {
        EngineEvent::Gap(gap) => gap.epochs(),
        _ => 0,
    };
    events.iter().map(epochs).sum()
}

fn estimated(events: &[EngineEvent]) -> Vec<i64> {
    let mut epochs: Vec<i64> = events.iter().filter_map(estimated_epoch).collect();
    epochs.sort_unstable();
    epochs
}

fn rows(directory: &Path, step: Step) -> Vec<Row> {
    let answer =
        HistoryReader::open(&directory.join(ESTIMATES_FOLDER)).answer(&RowQuestion::all(step));
    let answer = answer.unwrap();
    assert!(answer.problems.is_empty(), "{:?}", answer.problems);
    answer.rows
}

/// Every epoch is stored once, none is a gap, and minutes and hours say the same.
#[track_caller]
fn check_history(directory: &Path, late_at_least: u64) {
    for step in [Step::Epoch, Step::Minute, Step::Hour] {
        let rows = rows(directory, step);
        let sum = |of: fn(&Row) -> u64| rows.iter().map(of).sum::<u64>();
        assert_eq!((sum(|row| row.epochs), sum(|row| row.gaps)), (epochs() as u64, 0), "{step:?}");
        assert!(
            sum(|row| row.late_epochs) >= late_at_least,
            "{step:?}: {}",
            sum(|row| row.late_epochs)
        );
        assert_eq!(sum(|row| row.packets.unwrap()), 50 * epochs() as u64, "{step:?}");
        for row in rows.iter().filter(|row| !row.is_gap()) {
            assert_eq!(row.delay.as_ref().map(twixt_history::DelayPart::mean_ns), Some(DELAY_NS));
        }
    }
}

#[test]
fn a_point_that_was_cut_off_leaves_no_gap() {
    let folder = tempfile::tempdir().unwrap();
    let [up, down] = halves();
    let collector = Running::start(config(folder.path()));
    deliver(&collector, &up);
    wait_for_events(&collector, "a gap for each epoch", |events| {
        gap_epochs(events) == epochs() as u64
    });
    deliver(&collector, &down);
    wait_for_events(&collector, "estimates", |events| estimated(events).len() == epochs() as usize);
    let events = collector.stop();
    let late = |event: &&EngineEvent| matches!(event, EngineEvent::Estimated(pair) if pair.is_late);
    assert_eq!(events.iter().filter(late).count(), epochs() as usize);
    // Loss is known, but for the epochs at the ends.
    let known = |event: &&EngineEvent| matches!(event, EngineEvent::Estimated(pair) if pair.estimates[0].evidence.lost == Some(0));
    assert_eq!(events.iter().filter(known).count(), epochs() as usize - 2);
    check_history(folder.path(), epochs() as u64);
}

#[test]
fn points_that_were_cut_off_in_turn_leave_no_gap() {
    let folder = tempfile::tempdir().unwrap();
    let [up, down] = halves();
    let half = epochs() as usize / 2;
    let collector = Running::start(config(folder.path()));
    deliver(&collector, &up[..half]);
    deliver(&collector, &down[half..]);
    wait_for_events(&collector, "a gap for each epoch", |events| {
        gap_epochs(events) == epochs() as u64
    });
    deliver(&collector, &down[..half]);
    deliver(&collector, &up[half..]);
    wait_for_events(&collector, "estimates", |events| estimated(events).len() == epochs() as usize);
    drop(collector);
    check_history(folder.path(), epochs() as u64);
}

#[test]
fn what_came_late_before_a_restart_is_paired_once_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let [up, down] = halves();
    let collector = Running::start(config(folder.path()));
    deliver(&collector, &up);
    wait_for_events(&collector, "a gap for each epoch", |events| {
        gap_epochs(events) == epochs() as u64
    });
    deliver(&collector, &down);
    let mut all = collector.stop();
    let collector = Running::start(config(folder.path()));
    let missing = epochs() as usize - estimated(&all).len();
    wait_for_events(&collector, "the rest", |events| estimated(events).len() == missing);
    all.extend(collector.stop());
    let mut once = estimated(&all);
    once.dedup();
    assert_eq!(once, estimated(&all), "none twice");
    check_history(folder.path(), epochs() as u64);
    // And nothing is left to do.
    let collector = Running::start(config(folder.path()));
    collector.send(&body(&Agent::at("up").seal(epoch_now(), 1))).counts();
    assert_eq!(estimated(&collector.stop()), Vec::<i64>::new());
    check_history(folder.path(), epochs() as u64);
}

/// All agents are well, and deliver what they kept, one point after the other.
#[test]
fn a_collector_that_was_away_leaves_no_gap() {
    let folder = tempfile::tempdir().unwrap();
    let [up, down] = halves();
    let (seen, spooled) = (20, epochs() as usize);
    let collector = Running::start(config(folder.path()));
    deliver(&collector, &up[..seen]);
    deliver(&collector, &down[..seen]);
    wait_for_events(&collector, "the first", |events| estimated(events).len() >= seen - 2);
    let mut all = collector.stop();
    // It waits for no point to catch up.
    let config = CollectorConfig { resume_wait: Duration::ZERO, ..config(folder.path()) };
    let collector = Running::start(config);
    deliver(&collector, &up[seen..spooled]);
    deliver(&collector, &down[seen..spooled]);
    let missing = epochs() as usize - estimated(&all).len();
    wait_for_events(&collector, "the rest", |events| estimated(events).len() == missing);
    all.extend(collector.stop());
    let mut once = estimated(&all);
    once.dedup();
    assert_eq!(once, estimated(&all), "none twice");
    check_history(folder.path(), 0);
}

/// The collector was killed after it had stored epochs, and before it knew that they came late.
#[test]
fn what_was_stored_and_not_noted_is_paired_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, other) = (folder.path().join("collector"), folder.path().join("other"));
    let [up, down] = halves();
    let collector = Running::start(config(&directory));
    deliver(&collector, &up);
    wait_for_events(&collector, "a gap for each epoch", |events| {
        gap_epochs(events) == epochs() as u64
    });
    drop(collector);
    let elsewhere = Running::start(config(&other));
    deliver(&elsewhere, &down);
    drop(elsewhere);
    copy_folder(&other.join(EPOCHS_FOLDER), &directory.join(EPOCHS_FOLDER));
    let collector = Running::start(config(&directory));
    wait_for_events(&collector, "estimates", |events| estimated(events).len() == epochs() as usize);
    drop(collector);
    check_history(&directory, epochs() as u64);
}
