//! Commands on interfaces, in a network namespace that goes with the test. Needs root, `ip` and
//! `unshare`; says `skipped` without them.

#![cfg(target_os = "linux")]
// A test that cannot go on should stop where it stands.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Run, command, number, twixt, twixt_in};

const INSIDE: &str = "TWIXT_TEST_INSIDE_NAMESPACE";
const PACKETS: u32 = 400;

/// Runs `body` in a network namespace with a virtual cable from `near` to `far`.
fn in_namespace(name: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        lay_cable();
        return body();
    }
    let works = Command::new("unshare").args(["--net", "ip", "-V"]).output();
    if !works.is_ok_and(|ended| ended.status.success()) {
        return println!("skipped: network namespaces need root, unshare and ip");
    }
    let ended = Command::new("unshare")
        .arg("--net")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&ended.stderr));
}

fn lay_cable() {
    for line in [
        "ip link add near type veth peer name far",
        "ip link set near addrgenmode none",
        "ip link set far addrgenmode none",
        "ip address add 10.0.0.1/24 dev near",
        "ip link set near up",
        "ip link set far up",
        "ip neighbour add 10.0.0.2 lladdr 02:00:00:00:00:02 dev near",
    ] {
        run(line);
    }
    wait_until("both ends are up", || {
        let shown = Command::new("ip").args(["link", "show"]).output().unwrap();
        String::from_utf8_lossy(&shown.stdout).matches("state UP").count() == 2
    });
}

#[track_caller]
fn run(line: &str) {
    let mut words = line.split(' ');
    assert!(Command::new(words.next().unwrap()).args(words).status().unwrap().success(), "{line}");
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(10), "it never happened that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A command that captures.
struct Capturing {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Capturing {
    /// Starts a command, and waits until it captures.
    fn start(folder: &Path, arguments: &str) -> Self {
        let mut child = command()
            .args(arguments.split_whitespace())
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        stderr.read_line(&mut said).unwrap();
        assert!(said.ends_with(": capturing\n"), "{said}");
        Self { child, stderr }
    }

    fn interrupt(&self) {
        run(&format!("kill -INT {}", self.child.id()));
    }

    fn ended(mut self) -> Run {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        let output = self.child.wait_with_output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        Run { code: output.status.code(), stdout, stderr: said }
    }
}

/// Sends datagrams through the cable, over a good third of a second.
fn send() {
    let socket = UdpSocket::bind("10.0.0.1:4000").unwrap();
    for number in 0..PACKETS {
        socket.send_to(&number.to_be_bytes(), "10.0.0.2:5000").unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Packets in all epochs of a file.
fn recorded(folder: &Path, file: &str) -> i64 {
    let document = twixt_in(folder, &format!("info {file} -F json")).expect(0).json();
    let epochs = document["epochs"].as_array().unwrap();
    epochs.iter().map(|epoch| number(epoch, "/packets")).sum()
}

#[test]
fn info_tells_what_passes() {
    in_namespace("info_tells_what_passes", || {
        let folder = support::folder();
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
    in_namespace("two_recordings_of_a_cable_agree", || {
        let folder = support::folder();
        let options = "-a exact --epoch 100ms --guard 50ms udp port 5000";
        let up = format!("record -i near --direction out -w up.epochs {options}");
        let down = format!("record -i far --direction in -w down.epochs {options}");
        let children = [up, down].map(|line| Capturing::start(folder.path(), &line));
        send();
        // Until the last packets were handed over.
        std::thread::sleep(Duration::from_millis(300));
        for child in children {
            child.interrupt();
            child.ended().expect(130).says(&["400 packets recorded"]);
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
fn a_recording_ends_when_it_is_enough() {
    in_namespace("a_recording_ends_when_it_is_enough", || {
        let folder = support::folder();
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
    in_namespace("an_interface_that_goes_away_leaves_what_was_measured", || {
        let folder = support::folder();
        let child = Capturing::start(folder.path(), "record -i far -w far.epochs --epoch 100ms");
        send();
        run("ip link del near");
        child.ended().expect(3).says(&["far: the interface went away"]);
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
