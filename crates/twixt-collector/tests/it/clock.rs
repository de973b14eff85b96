//! The collector's clock is set, by hours or years: epochs are paired as before, and nothing is
//! deleted for it.

use std::time::Duration;

use twixt_collector::{ESTIMATES_FOLDER, EpochRetention};
use twixt_engine::EngineEvent;
use twixt_history::{HistoryReader, RowQuestion, Step};
use twixt_testing::wait_for;

use crate::epochs::{Agent, DELAY_NS, body, epoch_now};
use crate::running::{Running, config, estimated_epoch, logged};

const HOUR_NS: i64 = 3_600 * 1_000_000_000;
const DAY_NS: i64 = 24 * HOUR_NS;
/// Epochs between two settings of the clock.
const EPOCHS: i64 = 12;

/// Sends epochs of both points, and waits until all but the last were estimated.
fn feed(collector: &Running, first: i64, count: i64, estimated: i64) {
    for agent in [Agent::at("up"), Agent::at("down").after(DELAY_NS)] {
        assert_eq!(collector.send(&body(&agent.seal(first, count))).counts(), (count as u64, 0));
    }
    collector.estimated(estimated as usize);
}

#[test]
fn a_clock_that_is_set_costs_no_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.engine.patience = twixt_model::Delay::from_nanos(6_000_000_000);
    let clock = config.clock.clone();
    let collector = Running::start(config);
    let settings = [0, -3 * HOUR_NS, 5 * HOUR_NS, -20 * HOUR_NS, 0];
    let first = epoch_now() - 600;
    for (number, ahead_ns) in (0..).zip(settings) {
        clock.set_ahead_ns(ahead_ns);
        feed(&collector, first + number * EPOCHS, EPOCHS, (number + 1) * EPOCHS - 2);
    }
    let events = collector.events();
    let gaps = events.iter().filter(|event| matches!(event, EngineEvent::Gap(_)));
    assert_eq!(gaps.count(), 0, "{events:?}");
    let told: Vec<i64> = events.iter().filter_map(estimated_epoch).collect();
    let expected: Vec<i64> = (told[0]..).take(told.len()).collect();
    assert_eq!((told, expected[0] - first <= 1), (expected, true), "once each, in order");
    assert!(!collector.metrics().contains("epochs_late_total 1"));
    collector.stop();
    let estimates = folder.path().join(ESTIMATES_FOLDER);
    let answer = HistoryReader::open(&estimates).answer(&RowQuestion::all(Step::Epoch)).unwrap();
    let known = answer.rows.iter().filter(|row| !row.is_gap());
    assert!(known.clone().count() as i64 >= 5 * EPOCHS - 2);
    let mean_ns = |row: &twixt_history::Row| {
        row.delay.as_ref().map(|delay| delay.sum_ns / i128::from(delay.count))
    };
    assert!(known.into_iter().all(|row| mean_ns(row) == Some(i128::from(DELAY_NS))));
}

#[test]
fn a_clock_that_is_years_ahead_deletes_nothing_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start(config(folder.path()));
    feed(&collector, epoch_now() - EPOCHS, EPOCHS, EPOCHS - 2);
    collector.stop();
    let before = logged(folder.path());
    let mut config = config(folder.path());
    config.retention =
        EpochRetention { age_max: Some(Duration::from_secs(86_400)), bytes_max: None };
    config.history.retention.epochs_age_ns = Some(DAY_NS);
    config.history.retention.rollups_age_ns = Some(DAY_NS);
    let clock = config.clock.clone();
    clock.set_ahead_ns(3_000 * DAY_NS);
    let collector = Running::start(config);
    // The hour is over by that clock, and sealed; it is not old, since nothing is newer.
    wait_for("the metric", || {
        let metrics = collector.metrics();
        if metrics.contains("history_seals_total 1\n") { Ok(()) } else { Err(metrics) }
    });
    assert!(collector.metrics().contains("history_files_removed_total 0\n"));
    // Agents whose clocks are right go on.
    let later = Agent::at("up").seal(epoch_now() + 1, 1);
    assert_eq!(collector.send(&body(&later)).counts(), (1, 0));
    clock.set_ahead_ns(-3_000 * DAY_NS);
    let later = Agent::at("up").seal(epoch_now() + 2, 1);
    assert_eq!(collector.send(&body(&later)).counts(), (1, 0), "also if it is years behind");
    collector.stop();
    assert_eq!(logged(folder.path()).len(), before.len() + 2);
    let estimates = folder.path().join(ESTIMATES_FOLDER);
    let answer = HistoryReader::open(&estimates).answer(&RowQuestion::all(Step::Epoch)).unwrap();
    let (known, _) = answer.epochs();
    assert!(known as i64 >= EPOCHS - 2);
}
