//! A disk without room, one that must not be written to, and one that somebody else uses.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use twixt_collector::{Collector, CollectorError, ESTIMATES_FOLDER};
use twixt_history::{Question, Reader, Step};
use twixt_measure::Sealed;

use crate::epochs::{Agent, DELAY_NS, body, epoch_now};
use crate::running::{Running, client, config, logged};

/// A file system of a few pages, unmounted with the value.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    /// `None` where this user must not mount.
    fn mount(path: &'a Path) -> Option<Self> {
        let disk = Self(path);
        disk.remount("size=512k").then_some(disk)
    }

    fn remount(&self, options: &str) -> bool {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "twixt-collector-test"]).arg(self.0);
        mount.output().is_ok_and(|output| output.status.success())
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).output();
    }
}

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
    let Some(disk) = SmallDisk::mount(folder.path()) else {
        return println!("skipped: only root can mount a small disk");
    };
    let collector = Running::start(config(folder.path()));
    let epochs = Agent::at("up").seal(epoch_now() - 600, 600);
    let stored = fill(&collector, &epochs);
    assert!(stored > 2, "{stored}");
    assert_eq!((logged(folder.path()).len(), health(&collector)), (stored, 503));
    assert!(disk.remount("remount,size=8m"));
    let rest = collector.send(&body(&epochs[stored..]));
    assert_eq!(rest.counts(), ((600 - stored) as u64, 0));
    assert_eq!(logged(folder.path()).len(), 600);
    wait_for_health(&collector, "ok\n");
    drop(collector);
}

/// Waits until `/healthz` says something.
fn wait_for_health(collector: &Running, expected: &str) {
    let url = format!("http://{}/healthz", collector.addresses.metrics.unwrap());
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let said = client().get(&url).call().unwrap().body_mut().read_to_string().unwrap();
        if said == expected {
            return;
        }
        assert!(Instant::now() < until, "{said}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Epochs have a disk with room, estimates one without.
#[test]
fn estimates_wait_for_room_and_none_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let estimates = folder.path().join(ESTIMATES_FOLDER);
    std::fs::create_dir(&estimates).unwrap();
    let Some(_disk) = SmallDisk::mount(&estimates) else {
        return println!("skipped: only root can mount a small disk");
    };
    let mut config = config(folder.path());
    config.engine.patience = twixt_model::Delay::from_nanos(6_000_000_000);
    let collector = Running::start(config);
    let ballast = estimates.join("ballast");
    let mut file = File::create(&ballast).unwrap();
    while file.write_all(&[7; 4_096]).is_ok() {}
    drop(file);
    let first = epoch_now() - 12;
    for agent in [Agent::at("up"), Agent::at("down").after(DELAY_NS)] {
        // Epochs are durable, whatever becomes of estimates.
        assert_eq!(collector.send(&body(&agent.seal(first, 12))).counts(), (12, 0));
    }
    wait_for_health(&collector, "cannot store estimates\n");
    assert_eq!(collector.events().len(), 0, "nothing is told that is not stored");
    let metrics = collector.metrics();
    assert!(metrics.contains("history_healthy{work=\"storing\"} 0\n"), "{metrics}");
    std::fs::remove_file(ballast).unwrap();
    let told = collector.estimated(10);
    wait_for_health(&collector, "ok\n");
    collector.stop();
    let rows = Reader::open(&estimates).answer(&Question::all(Step::Epoch)).unwrap().rows;
    let stored: Vec<i64> =
        rows.iter().filter(|row| !row.is_gap()).filter_map(|row| row.epoch).collect();
    assert!(stored.starts_with(&told), "{told:?} {stored:?}");
}

#[test]
fn a_read_only_disk_acknowledges_nothing_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path()) else {
        return println!("skipped: only root can mount a small disk");
    };
    let epochs = body(&Agent::at("up").seal(epoch_now(), 1));
    // The collector's own file is open for writing, so it starts in a folder beside it.
    let directory = folder.path().join("collector");
    assert!(disk.remount("remount,ro"));
    let refused = Collector::new(config(&directory)).unwrap().check();
    assert!(matches!(refused, Err(CollectorError::Directory { .. })), "{refused:?}");
    assert!(disk.remount("remount,rw"));
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
