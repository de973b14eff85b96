//! Epochs of both ends become estimates, once, across restarts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use twixt_engine::EngineEvent;

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

/// The collector's folder as it was whenever something was about to go out, with the epochs that
/// had gone out before.
type Moments = Arc<Mutex<Vec<(PathBuf, Vec<i64>)>>>;

#[test]
fn whoever_is_killed_before_telling_tells_it_once_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, copies) = (folder.path().join("collector"), folder.path().to_owned());
    let moments = Moments::default();
    let (watched, noted) = (directory.clone(), Arc::clone(&moments));
    let before_flush = move |out: &[EngineEvent]| {
        let mut moments = noted.lock().unwrap();
        let copy = copies.join(format!("copy-{}", moments.len()));
        copy_folder(&watched, &copy);
        moments.push((copy, out.iter().filter_map(estimated_epoch).collect()));
    };
    let collector = Running::start_watched(config(&directory), Box::new(before_flush));
    let first = epoch_now() - EPOCHS;
    let up = Agent::at("up").seal(first, EPOCHS);
    let down = Agent::at("down").after(DELAY_NS).seal(first, EPOCHS);
    let mut all = Vec::new();
    for (from, to) in [(0, 5), (5, 9), (9, EPOCHS as usize)] {
        collector.send(&body(&up[from..to])).counts();
        collector.send(&body(&down[from..to])).counts();
        all = collector.estimated(to - 2);
    }
    drop(collector);
    let moments = std::mem::take(&mut *moments.lock().unwrap());
    assert!(moments.len() >= 2, "it was told in several pieces");
    for (copy, before) in moments {
        let collector = Running::start(config(&copy));
        for epochs in [&up, &down] {
            collector.send(&body(epochs)).counts();
        }
        let after = collector.estimated(all.len() - before.len());
        assert_eq!([before, after].concat(), all, "each once, in {}", copy.display());
    }
}

pub(crate) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        match path.is_dir() {
            true => copy_folder(&path, &to.join(name)),
            // One that is being replaced at this moment may be gone.
            false => drop(fs::copy(&path, to.join(name))),
        }
    }
}
