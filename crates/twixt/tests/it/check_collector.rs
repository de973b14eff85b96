//! `twixt check --collector`: a collector that runs, one that lacks evidence, and none.

use std::sync::atomic::Ordering;
use std::thread;

use twixt_testing::wait_for;

use crate::collector::process::Process;
use crate::collector::sender::{Shared, epoch_now, send_all};
use crate::support::{Run, folder, twixt_in};

const DELAY_NS: i64 = 1_000_000;

/// A collector that has two seconds of epochs of `up` and `down`, a millisecond apart.
fn fed(folder: &std::path::Path) -> Process {
    let process = Process::start(folder, 0);
    let first = epoch_now() - 40;
    let shared = Shared::new(process.address);
    shared.last.store(first + 20, Ordering::Relaxed);
    thread::scope(|scope| {
        scope.spawn(|| send_all(&shared, "up", 0, first));
        scope.spawn(|| send_all(&shared, "down", DELAY_NS, first));
    });
    process
}

fn check(url: &str, options: &str) -> Run {
    twixt_in(std::path::Path::new("."), &format!("check --collector {url} {options}"))
}

#[track_caller]
fn expect(url: &str, options: &str, code: i32, says: &str) {
    let run = check(url, options).expect(code);
    assert!((run.stdout.clone() + &run.stderr).contains(says), "{options}: {run:?}");
}

#[test]
fn every_exit_code_of_a_live_collector() {
    let folder = folder();
    let mut process = fed(folder.path());
    let url = format!("http://{}", process.address);
    let well = "--segment up:down --fail-above mean=5ms --window 10m";
    wait_for("the first estimates", || {
        let run = check(&url, well);
        if run.code == Some(0) { Ok(()) } else { Err(run) }
    });
    let with = |options: &str| format!("--segment up:down --window 10m {options}");
    expect(&url, well, 0, "TWIXT OK - up:down mean 1.000 ms");
    expect(&url, &with("--fail-above mean=500us"), 10, "TWIXT CRITICAL");
    expect(&url, &with("--fail-above mean=500us --nagios"), 2, "TWIXT CRITICAL");
    // No evidence: of percentiles, of enough packets, of that segment, of that time.
    expect(&url, &with("--fail-above p99=5ms"), 4, "TWIXT UNKNOWN");
    expect(&url, &with("--fail-above p99=5ms --nagios"), 3, "TWIXT UNKNOWN");
    expect(&url, &with("--fail-above mean=5ms --minimum-packets 1000000"), 4, "too few packets");
    expect(&url, "--segment up:nowhere --fail-above mean=5ms", 4, "no estimate stored");
    expect(&url, "--segment up:nowhere --fail-above mean=5ms --nagios", 3, "TWIXT UNKNOWN");
    expect(&url, &with("--fail-above mean=5"), 2, "has no known unit");
    // Unreachable.
    process.kill();
    expect(&url, well, 1, "cannot query");
    expect(&url, &format!("{well} --nagios"), 3, "TWIXT UNKNOWN - cannot query");
}
