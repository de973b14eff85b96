//! A disk without room, one that must not be written to, and one that another process uses.

use twixt_collector::{Collector, CollectorError, ESTIMATES_FOLDER};
use twixt_history::{HistoryReader, RowQuestion, Step};
use twixt_measure::Sealed;
use twixt_testing::{SmallDisk, require, wait_for};

use crate::epochs::{Agent, DELAY_NS, body, epoch_now};
use crate::running::{Running, client, config, logged};

fn health(collector: &Running) -> u16 {
    let url = format!("http://{}/healthz", collector.addresses.metrics.unwrap());
    client().get(&url).call().unwrap().status().as_u16()
}

/// Sends epochs one by one until one is not taken; how many were.
fn fill(collector: &Running, epochs: &[Sealed]) -> usize {
    for (index, sealed) in epochs.iter().enumerate() {
        let answer = collector.send(&body(std::slice::from_ref(sealed)));
        if answer.status != 200 {
            assert_eq!(answer.status, 503, "{answer:?}");
            assert!(answer.retry_seconds.is_some() && answer.text.contains("cannot store"));
            return index;
        }
        assert_eq!(answer.counts(), (1, 0));
    }
    panic!("the disk never was full");
}

#[test]
fn a_full_disk_acknowledges_nothing_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    require!(mounts);
    let disk = SmallDisk::mount(folder.path(), "size=512k");
    let collector = Running::start(config(folder.path()));
    let epochs = Agent::at("up").seal(epoch_now() - 600, 600);
    let stored = fill(&collector, &epochs);
    assert!(stored > 2, "{stored}");
    assert_eq!((logged(folder.path()).len(), health(&collector)), (stored, 503));
    disk.remount("remount,size=8m");
    let rest = collector.send(&body(&epochs[stored..]));
    assert_eq!(rest.counts(), ((600 - stored) as u64, 0));
    assert_eq!(logged(folder.path()).len(), 600);
    wait_for_health(&collector, "ok\n");
    drop(collector);
}

/// Waits until `/healthz` says something.
fn wait_for_health(collector: &Running, expected: &str) {
    let url = format!("http://{}/healthz", collector.addresses.metrics.unwrap());
    wait_for("its health", || {
        let answer = client().get(&url).call().unwrap().body_mut().read_to_string().unwrap();
        if answer == expected { Ok(()) } else { Err(answer) }
    });
}

/// Epochs have a disk with room, estimates one without.
#[test]
fn estimates_wait_for_room_and_none_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let estimates = folder.path().join(ESTIMATES_FOLDER);
    require!(mounts);
    let disk = SmallDisk::mount(&estimates, "size=512k");
    let mut config = config(folder.path());
    config.engine.patience = twixt_model::Delay::from_nanos(6_000_000_000);
    let collector = Running::start(config);
    disk.fill_but(0);
    let first = epoch_now() - 12;
    for agent in [Agent::at("up"), Agent::at("down").after(DELAY_NS)] {
        // Epochs are durable, whatever becomes of estimates.
        assert_eq!(collector.send(&body(&agent.seal(first, 12))).counts(), (12, 0));
    }
    wait_for_health(&collector, "cannot store estimates\n");
    assert_eq!(collector.events().len(), 0, "nothing is told that is not stored");
    let metrics = collector.metrics();
    assert!(metrics.contains("history_healthy{work=\"storing\"} 0\n"), "{metrics}");
    disk.empty();
    let told = collector.estimated(10);
    wait_for_health(&collector, "ok\n");
    collector.stop();
    let rows = HistoryReader::open(&estimates).answer(&RowQuestion::all(Step::Epoch)).unwrap().rows;
    let stored: Vec<i64> =
        rows.iter().filter(|row| !row.is_gap()).filter_map(|row| row.epoch).collect();
    assert!(stored.starts_with(&told), "{told:?} {stored:?}");
}

#[test]
fn a_read_only_disk_acknowledges_nothing_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    require!(mounts);
    let disk = SmallDisk::mount(folder.path(), "size=512k");
    let epochs = body(&Agent::at("up").seal(epoch_now(), 1));
    // The collector's own file is open for writing, so it starts in a folder beside it.
    let directory = folder.path().join("collector");
    disk.remount("remount,ro");
    let refused = Collector::new(config(&directory)).unwrap().check();
    assert!(matches!(refused, Err(CollectorError::Directory { .. })), "{refused:?}");
    disk.remount("remount,rw");
    let collector = Running::start(config(&directory));
    // A file where the folder of the point would be: it cannot be written either.
    std::fs::create_dir_all(directory.join("epochs")).unwrap();
    std::fs::write(directory.join("epochs/up"), b"").unwrap();
    assert_eq!(collector.send(&epochs).status, 503);
    std::fs::remove_file(directory.join("epochs/up")).unwrap();
    assert_eq!(collector.send(&epochs).counts(), (1, 0));
    drop(collector);
}

#[test]
fn a_directory_has_one_collector() {
    let folder = tempfile::tempdir().unwrap();
    let _collector = Running::start(config(folder.path()));
    let second = Collector::new(config(folder.path())).unwrap();
    let busy = second.check().unwrap_err().to_string();
    let holder = format!("is used by another process: pid {}", std::process::id());
    assert!(busy.contains(&holder), "{busy}");
}
