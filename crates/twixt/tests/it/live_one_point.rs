//! Commands for one point on interfaces, in a network namespace that goes with the test. Needs
//! root, `ip` and `unshare`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use twixt_testing::{DEADLINE, pace, require, run};

use crate::support::live::{Capturing, Marker, PACKETS, in_namespace, send};
use crate::support::{folder, number, twixt, twixt_in};

/// Questions and answers.
const EXCHANGES: u16 = 60;
/// Minimum time until the server answers.
const THINKING: Duration = Duration::from_millis(3);

/// Asks for names on the loopback interface, one after another, and is answered.
pub(crate) fn ask_for_names() {
    let server = UdpSocket::bind("127.0.0.1:53").unwrap();
    let answering = thread::spawn(move || {
        let mut message = [0; 12];
        for _ in 0..EXCHANGES {
            let (length, client) = server.recv_from(&mut message).unwrap();
            pace(THINKING);
            message[2] |= 0x80;
            server.send_to(&message[..length], client).unwrap();
        }
    });
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect("127.0.0.1:53").unwrap();
    let mut message = [0; 12];
    for id in 0..EXCHANGES {
        message[..2].copy_from_slice(&id.to_be_bytes());
        message[2] = 1;
        client.send(&message).unwrap();
        client.recv(&mut message).unwrap();
    }
    answering.join().unwrap();
}

/// Says something over a connection on the loopback interface, in turns.
fn talk() {
    let listener = TcpListener::bind("127.0.0.1:7000").unwrap();
    let answering = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut word = [0; 8];
        while stream.read_exact(&mut word).is_ok() {
            stream.write_all(&word).unwrap();
        }
    });
    let mut stream = TcpStream::connect("127.0.0.1:7000").unwrap();
    let mut word = [7; 8];
    for _ in 0..EXCHANGES {
        stream.write_all(&word).unwrap();
        stream.read_exact(&mut word).unwrap();
    }
    drop(stream);
    answering.join().unwrap();
}

/// Checks that a round trip took as long as was thought about it, and not absurdly longer.
#[track_caller]
fn check_thoughtful(rtt_ns: i64) {
    let rtt = Duration::from_nanos(rtt_ns.try_into().unwrap());
    assert!((THINKING..Duration::from_secs(1)).contains(&rtt), "{rtt:?}");
}

#[test]
fn round_trips_are_told_as_they_are_found() {
    in_namespace(|| {
        run("ip link set lo up");
        let folder = folder();
        let arguments = "rtt -i lo -a exact --kind dns --samples -F jsonl udp port 53";
        let mut child = Capturing::start(folder.path(), arguments);
        let lines = child.lines();
        ask_for_names();
        for _ in 0..EXCHANGES {
            // While it still captures.
            let line = lines.recv_timeout(DEADLINE).unwrap();
            let sample: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(sample["kind"], "dns");
            check_thoughtful(number(&sample, "/rtt_ns"));
        }
        child.interrupt();
        child.ended().expect(130);
        assert!(lines.recv().is_err(), "nobody asked any more");
    });
}

#[test]
fn round_trips_are_those_of_a_capture() {
    in_namespace(|| {
        require!(program "tcpdump");
        run("ip link set lo up");
        let folder = folder();
        let count = 2 * EXCHANGES;
        let capture =
            format!("-i lo -w lo.pcap --time-stamp-precision nano -c {count} udp port 53");
        let mut tcpdump = Command::new("tcpdump")
            .args(capture.split(' '))
            .current_dir(folder.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(tcpdump.stderr.take().unwrap());
        while !said.fill_buf().unwrap().is_empty() {
            let mut line = String::new();
            said.read_line(&mut line).unwrap();
            if line.contains("listening on") {
                break;
            }
        }
        let options = "-a exact --kind dns --samples -F jsonl udp port 53";
        let child = Capturing::start(folder.path(), &format!("rtt -i lo -c {count} {options}"));
        ask_for_names();
        let live = child.ended().expect(0).silent().json_lines();
        assert!(tcpdump.wait().unwrap().success());
        let read = twixt_in(folder.path(), &format!("rtt -r lo.pcap {options}")).expect(0);
        assert_eq!(live.len(), usize::from(EXCHANGES));
        for (live, read) in live.iter().zip(read.json_lines()) {
            assert_eq!(live["scope"], read["scope"]);
            // Each of the two has its own look at the clock.
            let difference_ns = number(live, "/rtt_ns") - number(&read, "/rtt_ns");
            assert!(difference_ns.abs() < 1_000_000, "{live} is {read}");
        }
    });
}

#[test]
fn round_trips_of_an_interface_take_bounded_memory() {
    in_namespace(|| {
        run("ip link set lo up");
        let folder = folder();
        let child = Capturing::start(folder.path(), "rtt -i lo --kind dns -F json udp port 53");
        let marker = Marker::on("lo");
        ask_for_names();
        marker.pass();
        child.interrupt();
        let document = child.ended().expect(130).json();
        assert_eq!(document["algorithm"], "fridge");
        assert_eq!(number(&document, "/packets"), 2 * i64::from(EXCHANGES));
        assert_eq!(number(&document, "/dropped"), 0);
        assert_eq!(document["kinds"][0]["kind"], "dns");
        assert_eq!(number(&document, "/kinds/0/requests"), i64::from(EXCHANGES));
        check_thoughtful(number(&document, "/kinds/0/percentiles/p50_ns"));
    });
}

#[test]
fn epochs_are_told_as_they_end() {
    in_namespace(|| {
        run("ip link set lo up");
        let folder = folder();
        let options = "-a exact --kind dns --epoch 100ms udp port 53";
        let mut rows = Capturing::start(folder.path(), &format!("rtt -i lo -F jsonl {options}"));
        let tables = Capturing::start(folder.path(), &format!("rtt -i lo {options}"));
        let lines = rows.lines();
        ask_for_names();
        // Though nothing comes any more, without an interrupt.
        let (mut matched, mut starts) = (0, Vec::new());
        while matched < i64::from(EXCHANGES) {
            let line = lines.recv_timeout(DEADLINE);
            let line = line.unwrap_or_else(|_| panic!("{matched} in epochs from {starts:?}"));
            let row: Value = serde_json::from_str(&line).unwrap();
            matched += number(&row, "/matched");
            starts.push(number(&row, "/start_ns"));
        }
        // 60 times 3 ms are two epochs, if not three.
        assert!(starts.len() >= 2 && starts.is_sorted(), "{starts:?}");
        assert!(starts.iter().all(|start| start % 100_000_000 == 0), "{starts:?}");
        rows.interrupt();
        rows.ended().expect(130);
        tables.interrupt();
        let shown = tables.ended().expect(130).stdout;
        // A table for each epoch, and one for all.
        assert_eq!(shown.matches("p99.9").count(), starts.len() + 1, "{shown}");
    });
}

#[test]
fn large_flows_are_counted_exactly() {
    in_namespace(|| {
        let folder = folder();
        let arguments = format!("heavy -i far -c {PACKETS} -F json udp port 5000");
        let counted = Capturing::start(folder.path(), &arguments);
        let interrupted = Capturing::start(folder.path(), "heavy -i far udp port 5000");
        let marker = Marker::on("far");
        send();
        let document = counted.ended().expect(0).silent().json();
        assert_eq!(document["flows"][0]["scope"], "udp 10.0.0.1:4000 > 10.0.0.2:5000");
        assert_eq!(number(&document, "/flows/0/packets"), i64::from(PACKETS));
        assert_eq!(document["flows"].as_array().map(Vec::len), Some(1));
        assert_eq!(number(&document, "/dropped"), 0);
        marker.pass();
        interrupted.interrupt();
        let shown = interrupted.ended().expect(130).stdout;
        assert!(shown.contains("400 packets"), "{shown}");
    });
}

#[test]
fn reordering_is_looked_for() {
    in_namespace(|| {
        run("ip link set lo up");
        let folder = folder();
        let start = |options: &str| {
            Capturing::start(folder.path(), &format!("reorder -i lo -F json {options}"))
        };
        let children = [("hybrid", start("")), ("exact", start("-a exact"))];
        let marker = Marker::on("lo");
        talk();
        marker.pass();
        for (algorithm, child) in children {
            child.interrupt();
            let document = child.ended().expect(130).json();
            assert_eq!(document["algorithm"], algorithm);
            assert_eq!(number(&document, "/dropped"), 0);
            assert_eq!(number(&document, "/prefixes/0/out_of_order"), 0);
            if algorithm == "exact" {
                let packets = number(&document, "/prefixes/0/packets");
                assert_eq!(packets, 2 * i64::from(EXCHANGES), "{document}");
            }
        }
    });
}

#[test]
fn flow_records_are_sent_when_flows_fall_silent() {
    in_namespace(|| {
        run("ip link set lo up");
        let folder = folder();
        let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
        collector.set_read_timeout(Some(DEADLINE)).unwrap();
        let port = collector.local_addr().unwrap().port();
        let options = "--inactive-timeout 200ms udp port 5000";
        let sending = format!("flow export -i far --to 127.0.0.1:{port} {options}");
        let sending = Capturing::start(folder.path(), &sending);
        let writing = format!("flow export -i far -w far.ipfix {options}");
        let writing = Capturing::start(folder.path(), &writing);
        send();
        let mut message = [0; 1500];
        assert!(collector.recv(&mut message).unwrap() > 16, "a record comes while it captures");
        for child in [sending, writing] {
            child.interrupt();
            child.ended().expect(130).says(&["400 packets in 1 records"]);
        }
        let document = twixt_in(folder.path(), "flow import far.ipfix -F json").expect(0).json();
        assert_eq!(number(&document, "/records/0/packets"), i64::from(PACKETS));
    });
}

#[test]
fn whoever_interrupts_at_once_is_told_that_there_was_nothing() {
    in_namespace(|| {
        let folder = folder();
        let check = |arguments: &str, says: &str| {
            let child = Capturing::start(folder.path(), &format!("{arguments} -i far"));
            child.interrupt();
            child.ended().expect(130).says(&[says]);
            let nothing = format!("{arguments} -i far --for 100ms");
            twixt_in(folder.path(), &nothing).expect(4).says(&[says]);
        };
        check("rtt", "far: no round trip in 0 packets");
        check("heavy", "far: no packets");
        check("reorder", "far: no packets");
        check("flow export -w far.ipfix", "far: no flow to export");
    });
}

const COMMANDS: [&str; 4] = ["rtt", "heavy", "reorder", "flow export -w no-such-folder/x"];

#[test]
fn wrong_interfaces_are_explained() {
    for command in COMMANDS {
        let run = |more: &str| twixt(command.split(' ').chain(more.split_whitespace()));
        run("").expect(2).says(&["--read"]);
        run("-r x -i eth0").expect(2).says(&["cannot be used with"]);
        run("-r x --for 1s").expect(2).says(&["--interface"]);
        run("-i no-such-thing0").expect(1).says(&["no-such-thing0"]);
    }
}

#[test]
fn a_missing_capability_is_explained() {
    let dropping = ["--bounding-set", "-net_raw", "--inh-caps", "-net_raw"];
    require!(capabilities);
    for command in COMMANDS {
        let ended = Command::new("setpriv")
            .args(dropping)
            .arg(env!("CARGO_BIN_EXE_twixt"))
            .args(command.split(' '))
            .args(["-i", "lo"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{said}");
        assert!(said.contains("CAP_NET_RAW"), "{said}");
    }
}
