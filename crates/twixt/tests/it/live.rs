//! Commands on interfaces, in a network namespace that goes with the test. Needs root, `ip` and
//! `unshare`.

use std::path::Path;

use serde_json::Value;
use twixt_testing::run;

use crate::support::live::{Capturing, Marker, PACKETS, in_namespace, send};
use crate::support::{number, twixt, twixt_in};

/// Packets in all epochs of a file.
fn recorded(folder: &Path, file: &str) -> i64 {
    let document = twixt_in(folder, &format!("info {file} -F json")).expect(0).json();
    let epochs = document["epochs"].as_array().unwrap();
    epochs.iter().map(|epoch| number(epoch, "/packets")).sum()
}

#[test]
fn info_tells_what_passes() {
    in_namespace(|| {
        let folder = crate::support::folder();
        let arguments = format!("info -i far -c {PACKETS} -F json udp port 5000");
        let child = Capturing::start(folder.path(), &arguments);
        send();
        let document: Value = child.ended().expect(0).silent().json();
        assert_eq!(document["file"], Value::Null);
        assert_eq!(document["interfaces"][0]["name"], "far");
        assert_eq!(number(&document, "/packets"), i64::from(PACKETS));
        assert_eq!(number(&document, "/flows"), 1);
        assert_eq!(number(&document, "/dropped"), 0);
        assert_eq!(number(&document, "/live/unsplit"), 0);
    });
}

#[test]
fn two_recordings_of_a_cable_agree() {
    in_namespace(|| {
        let folder = crate::support::folder();
        let options = "-a exact --epoch 100ms --guard 50ms udp port 5000";
        // Ended by the same packet, they have the same epochs.
        let up = format!("record -i near --direction out -w up.epochs -c {PACKETS} {options}");
        let down = format!("record -i far --direction in -w down.epochs -c {PACKETS} {options}");
        let children = [up, down].map(|line| Capturing::start(folder.path(), &line));
        send();
        for child in children {
            child.ended().expect(0).says(&["400 packets recorded"]);
        }
        let document =
            twixt_in(folder.path(), "delay up.epochs down.epochs -F json").expect(0).json();
        let estimates = document["estimates"].as_array().unwrap();
        let sum = |key: &str| estimates.iter().map(|row| number(row, key)).sum::<i64>();
        assert_eq!((sum("/packets"), sum("/lost")), (i64::from(PACKETS), 0), "{document}");
        assert!(estimates.len() >= 4, "there is an estimate for every epoch");
        let means = estimates.iter().filter_map(|row| row["mean_ns"].as_i64());
        assert!(means.sum::<i64>() > 0, "it takes time to cross");
    });
}

#[test]
fn a_recording_that_is_interrupted_has_what_came_before() {
    in_namespace(|| {
        let folder = crate::support::folder();
        let child = Capturing::start(folder.path(), "record -i far -w far.epochs udp port 5000");
        let marker = Marker::on("far");
        send();
        marker.pass();
        child.interrupt();
        child.ended().expect(130).says(&["400 packets recorded"]);
        assert_eq!(recorded(folder.path(), "far.epochs"), i64::from(PACKETS));
    });
}

#[test]
fn a_recording_ends_when_it_is_enough() {
    in_namespace(|| {
        let folder = crate::support::folder();
        let child =
            Capturing::start(folder.path(), "record -i far -w far.epochs -c 100 udp port 5000");
        send();
        child.ended().expect(0).says(&["100 packets recorded"]);
        assert_eq!(recorded(folder.path(), "far.epochs"), 100);
        let nothing = "record -i far -w far.epochs --for 100ms";
        twixt_in(folder.path(), nothing).expect(4).says(&["far: no packet to record"]);
    });
}

#[test]
fn an_interface_that_goes_away_leaves_what_was_measured() {
    in_namespace(|| {
        let folder = crate::support::folder();
        let child = Capturing::start(folder.path(), "record -i far -w far.epochs --epoch 100ms");
        send();
        run("ip link del near");
        child.ended().expect(3).says(&["far: the interface disappeared"]);
        assert!(recorded(folder.path(), "far.epochs") >= i64::from(PACKETS) - 50);
    });
}

#[test]
fn wrong_command_lines_are_explained() {
    twixt(["record", "-w", "x"]).expect(2).says(&["--read"]);
    twixt(["record", "-r", "x", "-i", "eth0", "-w", "x"]).expect(2).says(&["cannot be used with"]);
    twixt(["record", "-r", "x", "-w", "x", "--for", "1s"]).expect(2).says(&["--interface"]);
    twixt(["info", "-r", "x", "--direction", "in"]).expect(2).says(&["--interface"]);
    twixt(["info", "-i", "no-such-thing0"]).expect(1).says(&["no-such-thing0"]);
}
