//! Epochs of both ends become estimates, once, across restarts.

use twixt_collector::engine::EngineEvent;

use crate::epochs::{Agent, DELAY_NS, body, epoch_now};
use crate::running::{Running, config, estimated_epoch};

const EPOCHS: i64 = 12;

#[test]
fn both_ends_make_estimates() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start(config(folder.path()));
    let first = epoch_now() - EPOCHS;
    for agent in [Agent::at("up"), Agent::at("down").after(DELAY_NS)] {
        collector.send(&body(&agent.seal(first, EPOCHS))).counts();
    }
    // The first and the last wait for neighbours that never come.
    let estimated = collector.estimated(EPOCHS as usize - 2);
    assert!(estimated.is_sorted());
    for event in collector.events() {
        if let EngineEvent::Estimated(pair) = event {
            let delay = pair.estimates[0].delay.unwrap();
            assert_eq!(delay.mean().as_nanos(), DELAY_NS, "epoch {}", pair.epoch.0);
        }
    }
}

#[test]
fn a_restart_neither_loses_nor_repeats() {
    let folder = tempfile::tempdir().unwrap();
    let first = epoch_now() - EPOCHS;
    let up = Agent::at("up").seal(first, EPOCHS);
    let down = Agent::at("down").after(DELAY_NS).seal(first, EPOCHS);
    let collector = Running::start(config(folder.path()));
    collector.send(&body(&up[..8])).counts();
    collector.send(&body(&down[..5])).counts();
    collector.estimated(3);
    let before = collector.stop();
    // What came before the restart waits in the log for what comes after it.
    let collector = Running::start(config(folder.path()));
    collector.send(&body(&down[4..])).counts();
    collector.send(&body(&up[8..])).counts();
    let told: Vec<i64> = before.iter().filter_map(estimated_epoch).collect();
    collector.estimated(EPOCHS as usize - 2 - told.len());
    let after = collector.stop();
    let mut all = told;
    all.extend(after.iter().filter_map(estimated_epoch));
    let mut once = all.clone();
    once.dedup();
    assert_eq!(all, once, "none twice");
    assert!(all.is_sorted());
    let inner = first + 1..first + EPOCHS - 1;
    assert!(inner.clone().all(|epoch| all.contains(&epoch)), "{all:?} of {inner:?}");
}
