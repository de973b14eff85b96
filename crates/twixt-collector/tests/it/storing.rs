//! What is acknowledged is there, once.

use std::thread;

use twixt_measure::Sealed;

use crate::epochs::{Agent, body, epoch_now};
use crate::running::{Running, client, config, logged, send};

#[test]
fn what_is_acknowledged_is_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start(config(folder.path()));
    let first = epoch_now() - 10;
    let answer = collector.send(&body(&Agent::at("up").seal(first, 3)));
    assert_eq!(answer.text, r#"{"stored":3,"duplicates":0,"refused":[]}"#);
    // The collector still runs: nothing waits for its end.
    let expected: Vec<_> = (first..first + 3).map(|epoch| ("up".to_owned(), epoch)).collect();
    assert_eq!(logged(folder.path()), expected);
}

#[test]
fn what_comes_again_counts_once_even_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let epochs = Agent::at("up").seal(epoch_now() - 10, 4);
    let collector = Running::start(config(folder.path()));
    assert_eq!(collector.send(&body(&epochs[..2])).counts(), (2, 0));
    assert_eq!(collector.send(&body(&epochs[..3])).counts(), (1, 2));
    collector.stop();
    let collector = Running::start(config(folder.path()));
    assert_eq!(collector.send(&body(&epochs)).counts(), (1, 3));
    // Twice in one body, too.
    assert_eq!(collector.send(&body(&[epochs[3].clone(), epochs[3].clone()])).counts(), (0, 2));
    assert_eq!(logged(folder.path()).len(), 4);
}

#[test]
fn many_agents_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start(config(folder.path()));
    let (first, url) = (epoch_now() - 100, collector.url());
    let points = ["a", "b", "c", "d", "e", "f", "g", "h"];
    thread::scope(|scope| {
        for point in points {
            let (url, client) = (&url, client());
            scope.spawn(move || {
                for sealed in Agent::at(point).seal(first, 20) {
                    assert_eq!(send(&client, url, &[], &body(&[sealed])).counts(), (1, 0));
                }
            });
        }
    });
    assert_eq!(logged(folder.path()).len(), 20 * points.len());
    let metrics = collector.metrics();
    assert!(metrics.contains("twixt_collector_epochs_stored_total 160\n"), "{metrics}");
    assert!(metrics.contains("twixt_collector_points 8\n"), "{metrics}");
}

#[test]
fn packed_bodies_are_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start(config(folder.path()));
    let packed = zstd::encode_all(&*body(&Agent::at("up").seal(epoch_now() - 5, 2)), 3).unwrap();
    let answer = send(&client(), &collector.url(), &[("content-encoding", "zstd")], &packed);
    assert_eq!(answer.counts(), (2, 0));
    let answer = send(&client(), &collector.url(), &[("content-encoding", "br")], &packed);
    assert_eq!(answer.status, 415);
}

#[test]
fn what_makes_no_sense_is_refused_for_good_and_explained() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.domain = Some("lab".to_owned());
    config.limits.points_max = 2;
    config.retention.age_max = Some(std::time::Duration::from_secs(3_600));
    let collector = Running::start(config);
    let now = epoch_now();
    let check = |epochs: Vec<Sealed>, reason: &str| {
        let answer = collector.send(&body(&epochs));
        assert_eq!(answer.counts(), (0, 0));
        assert!(answer.reasons()[0].contains(reason), "{answer:?}");
    };
    check(
        Agent { domain: "other", ..Agent::at("up") }.seal(now, 1),
        "domain \"other\": this collector accepts only \"lab\"",
    );
    check(Agent::at("up").seal(now - 40_000, 1), "older than the retention limit");
    check(Agent::at("up").seal(now + 900_000, 1), "ahead of the collector's clock");
    let mut endless = Agent::at("up").seal(now, 1);
    endless[0].rule = twixt_model::EpochRule::WHOLE;
    endless[0].epoch = twixt_model::Epoch(0);
    check(endless, "set an epoch length");
    for point in ["up", "down"] {
        assert_eq!(collector.send(&body(&Agent::at(point).seal(now, 1))).counts(), (1, 0));
    }
    check(Agent::at("third").seal(now, 1), "already has 2 points");
    // One bad epoch does not hold up the others, and its place is reported.
    let mut mixed = Agent::at("up").seal(now + 1, 2);
    mixed[0].domain = "other".to_owned();
    let answer = collector.send(&body(&mixed));
    assert_eq!(answer.counts(), (1, 0));
    assert!(answer.text.contains(&format!(r#""index":0,"point":"up","epoch":{}"#, now + 1)));
    assert!(collector.metrics().contains("epochs_refused_total{reason=\"domain\"} 2\n"));
}

#[test]
fn of_two_agents_with_one_name_the_newer_is_believed() {
    let folder = tempfile::tempdir().unwrap();
    let first = epoch_now() - 10;
    let older = Agent { run: 5, ..Agent::at("up") }.seal(first, 6);
    let newer = Agent { run: 9, ..Agent::at("up") }.seal(first + 1, 6);
    let collector = Running::start(config(folder.path()));
    assert_eq!(collector.send(&body(&older[..2])).counts(), (2, 0));
    assert_eq!(collector.send(&body(&newer[..2])).counts(), (2, 0));
    let refused = collector.send(&body(&older[3..4]));
    assert_eq!(refused.counts(), (0, 0));
    let reason = &refused.reasons()[0];
    assert!(reason.contains("another agent reports as point \"up\": run 9"), "{reason}");
    // That is remembered.
    collector.stop();
    let collector = Running::start(config(folder.path()));
    assert_eq!(collector.send(&body(&older[4..])).reasons().len(), 2);
    assert_eq!(collector.send(&body(&newer)).counts(), (4, 2));
}

/// The collector went on storing, estimated nothing, and called itself healthy.
#[test]
fn a_thread_that_panics_ends_the_collector() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start_watched(
        config(folder.path()),
        Box::new(|_| panic!("the sink of the estimates is broken")),
    );
    let first = epoch_now() - 20;
    for point in ["up", "down"] {
        assert_eq!(collector.send(&body(&Agent::at(point).seal(first, 4))).counts(), (4, 0));
    }
    let failure = collector.ended().unwrap_err().to_string();
    assert_eq!(failure, "thread \"estimating\" panicked: the sink of the estimates is broken");
    assert_eq!(logged(folder.path()).len(), 8, "what is stored stays");
    // The next start goes on from there.
    let collector = Running::start(config(folder.path()));
    collector.estimated(3);
}
