//! Flow records written and read by the command.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::support::{
    Capture, MILLISECOND, Packet, SECOND, START, command, folder, number, twixt_in,
};

/// Three flows: two interleaved, and one that pauses for longer than the inactive timeout.
fn capture() -> Capture {
    let mut capture = Capture::default();
    for index in 0..100_u16 {
        let time_ns = i64::from(index) * 7 * MILLISECOND;
        capture.add(time_ns, Packet::udp("10.0.0.1:5000", "10.0.1.9:53", index).frame());
        if index % 2 == 0 {
            let back = Packet::tcp("10.0.1.9:443", "10.0.0.1:40000", index).frame();
            capture.add(time_ns + 1, back);
        }
    }
    for (index, time_ns) in [0, SECOND, 30 * SECOND].into_iter().enumerate() {
        let packet = Packet::udp("10.0.0.2:7", "10.0.1.9:7", index as u16);
        capture.add(time_ns + 13, packet.frame());
    }
    capture
}

fn records(document: &Value) -> Vec<&Value> {
    document["records"].as_array().expect("a list").iter().collect()
}

/// Scope, first and last after the start, packets, end.
fn shown(record: &Value) -> (String, i64, i64, i64, String) {
    let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
    (
        text("scope"),
        number(record, "/first_ns") - START,
        number(record, "/last_ns") - START,
        number(record, "/packets"),
        text("end"),
    )
}

#[test]
fn what_is_exported_is_imported() {
    let folder = folder();
    capture().write(folder.path().join("in.pcap"));
    let run = |arguments: &str| twixt_in(folder.path(), arguments);
    run("flow export -r in.pcap -w out.ipfix").expect(0).says(&["153 packets in 4 records"]);
    let document = run("flow import out.ipfix -F json").expect(0).silent().json();
    let mut found: Vec<_> = records(&document).into_iter().map(shown).collect();
    found.sort();
    let record = |scope: &str, first, last, packets, end: &str| {
        (scope.to_owned(), first, last, packets, end.to_owned())
    };
    let last = 99 * 7 * MILLISECOND;
    let pauses = "udp 10.0.0.2:7 > 10.0.1.9:7";
    assert_eq!(
        found,
        [
            record("tcp 10.0.1.9:443 > 10.0.0.1:40000", 1, last - 7 * MILLISECOND + 1, 50, "idle"),
            record("udp 10.0.0.1:5000 > 10.0.1.9:53", 0, last, 100, "idle"),
            record(pauses, 13, SECOND + 13, 2, "idle"),
            record(pauses, 30 * SECOND + 13, 30 * SECOND + 13, 1, "forced"),
        ]
    );
    let first = records(&document)[0];
    assert_eq!(number(first, "/resolution_ns"), 1);
    assert!(first["first_label"].is_string() && first["last_label"].is_string());
}

#[test]
fn every_format_has_all_records() {
    let folder = folder();
    capture().write(folder.path().join("in.pcap"));
    let run = |arguments: &str| twixt_in(folder.path(), arguments);
    run("flow export -r in.pcap -w out.ipfix --point 9").expect(0);
    let csv = run("flow import out.ipfix -F csv").expect(0).stdout;
    assert_eq!(csv.lines().count(), 5);
    assert!(csv.starts_with("scope,first_ns,last_ns,resolution_ns,packets"), "{csv}");
    let lines = run("flow import out.ipfix -F jsonl -c 3").expect(0).json_lines();
    assert_eq!((lines.len(), number(&lines[0], "/observation_point")), (3, 9));
    let human = run("flow import out.ipfix").expect(0).stdout;
    assert!(human.contains("udp 10.0.0.1:5000 > 10.0.1.9:53"), "{human}");
    let info = run("info out.ipfix -F json").expect(0).json();
    assert_eq!((number(&info, "/records"), number(&info, "/packets")), (4, 153));
    assert_eq!(number(&info, "/labelled"), 4);
    run("info out.ipfix").expect(0);
}

#[test]
fn milliseconds_are_said_to_be_milliseconds() {
    let folder = folder();
    capture().write(folder.path().join("in.pcap"));
    let run = |arguments: &str| twixt_in(folder.path(), arguments);
    run("flow export -r in.pcap -w out.ipfix --time-unit milli udp port 53")
        .expect(0)
        .says(&["skipped: 53 filtered"]);
    let document = run("flow import out.ipfix -F json").expect(0).json();
    let record = records(&document)[0];
    assert_eq!(number(record, "/resolution_ns"), MILLISECOND);
    assert_eq!(number(record, "/first_ns"), START / MILLISECOND * MILLISECOND);
}

#[test]
fn selection_is_the_same_at_both_points_and_its_rate_is_told() {
    let folder = folder();
    let (mut up, mut down) = (Capture::default(), Capture::default());
    for index in 0..4_000_u16 {
        let packet = Packet::udp("10.0.0.1:5000", "10.0.1.9:53", index);
        up.add(i64::from(index) * MILLISECOND, packet.frame());
        down.add(i64::from(index) * MILLISECOND + 77, packet.ttl(63).frame());
    }
    up.write(folder.path().join("up.pcap"));
    down.write(folder.path().join("down.pcap"));
    for hash in ["keyed", "bob", "ipsx", "crc32"] {
        let mut labels = Vec::new();
        for point in ["up", "down"] {
            let arguments = format!(
                "flow export -r {point}.pcap -w {point}.ipfix --sampling 0.05 --select-hash {hash}"
            );
            twixt_in(folder.path(), &arguments).expect(0).says(&["of packets were metered"]);
            let import = format!("flow import {point}.ipfix -F json");
            let document = twixt_in(folder.path(), &import).expect(0).json();
            let record = records(&document)[0].clone();
            let selector = &document["selectors"][0];
            let rate = selector["rate"].as_f64().expect("it is told");
            // Six deviations of a binomial of 4000 at 0.05.
            assert!((rate - 0.05).abs() < 0.021, "{hash}: {rate}");
            assert_eq!(selector["packets_selected"], record["packets"]);
            assert_eq!(selector["algorithm"].is_null(), hash == "keyed");
            labels.push((record["packets"].clone(), record["first_label"].clone()));
        }
        assert_eq!(labels[0], labels[1], "{hash}");
    }
}

#[test]
fn flows_can_be_selected_whole() {
    let folder = folder();
    let mut capture = Capture::default();
    for index in 0..2_000_u16 {
        let source = format!("10.0.0.1:{}", 1_000 + index % 200);
        let packet = Packet::udp(&source, "10.0.1.9:53", index);
        capture.add(i64::from(index) * MILLISECOND, packet.frame());
    }
    capture.write(folder.path().join("in.pcap"));
    let arguments = "flow export -r in.pcap -w out.ipfix --sampling 0.3 --select flow";
    twixt_in(folder.path(), arguments).expect(0);
    let document = twixt_in(folder.path(), "flow import out.ipfix -F json").expect(0).json();
    let found = records(&document);
    // Five deviations of a binomial of 200 at 0.3.
    assert!((27..=93).contains(&found.len()), "{}", found.len());
    assert!(found.iter().all(|record| number(record, "/packets") == 10));
}

/// A collector that listens, and where.
fn collector(carrier: &str, options: &str) -> (Child, String) {
    let listen = format!("flow import --listen {carrier}:127.0.0.1:0 -F jsonl {options}");
    let mut child = command()
        .args(listen.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut line = String::new();
    let mut said = BufReader::new(child.stderr.take().expect("it was asked for"));
    said.read_line(&mut line).expect("it says where it listens");
    let address = line.split_whitespace().last().expect("an address").to_owned();
    (child, address)
}

#[test]
fn exports_travel_over_udp_and_tcp() {
    let folder = folder();
    capture().write(folder.path().join("in.pcap"));
    for carrier in ["udp", "tcp"] {
        let (child, address) = collector(carrier, "-c 4 --for 20s");
        let export = format!("flow export -r in.pcap --to {address} --{carrier}");
        twixt_in(folder.path(), &export).expect(0);
        let output = child.wait_with_output().expect("the collector ends");
        let text = String::from_utf8(output.stdout).expect("JSON is text");
        assert_eq!(text.lines().count(), 4, "{carrier}: {text}");
        assert_eq!(output.status.code(), Some(0));
    }
}

#[test]
fn damaged_files_give_what_was_before_the_damage() {
    let folder = folder();
    capture().write(folder.path().join("in.pcap"));
    let run = |arguments: &str| twixt_in(folder.path(), arguments);
    run("flow export -r in.pcap -w out.ipfix").expect(0);
    let whole = std::fs::read(folder.path().join("out.ipfix")).expect("it was written");
    let write = |bytes: &[u8]| std::fs::write(folder.path().join("bad.ipfix"), bytes);
    write(&[&whole[..], &whole[..100]].concat()).expect("it can be written");
    let document = run("flow import bad.ipfix -F json").expect(3).says(&["unfinished"]).json();
    assert_eq!(records(&document).len(), 4);
    write(&[&whole[..], b"nonsense"].concat()).expect("it can be written");
    run("flow import bad.ipfix").expect(3).says(&["no IPFIX message at byte"]);
    write(b"nonsense that is no capture either").expect("it can be written");
    run("flow import bad.ipfix").expect(1).says(&["neither IPFIX nor a capture"]);
    // A capture without exports.
    run("flow import in.pcap").expect(4).says(&["no flow export"]);
    // Options that contradict each other or the function.
    run("flow export -r in.pcap").expect(2);
    run("flow export -r in.pcap -w o.ipfix --sampling 0").expect(2);
    run("flow export -r in.pcap -w o.ipfix --select flow --select-hash ipsx").expect(2);
}

/// Captured export traffic is read from the capture.
#[test]
fn exports_in_a_capture_are_read() {
    let folder = folder();
    capture().write(folder.path().join("in.pcap"));
    let run = |arguments: &str| twixt_in(folder.path(), arguments);
    run("flow export -r in.pcap -w out.ipfix").expect(0);
    let message = std::fs::read(folder.path().join("out.ipfix")).expect("it was written");
    let mut exports = Capture::default();
    exports.add(0, Packet::udp("10.9.0.1:4000", "10.9.0.2:53", 1).frame());
    let export = Packet::udp("10.9.0.1:3000", "10.9.0.2:4739", 2).payload(&message);
    exports.add(SECOND, export.frame());
    exports.write(folder.path().join("exports.pcap"));
    let document = run("flow import exports.pcap -F json").expect(0).json();
    let found = records(&document);
    assert_eq!((found.len(), &found[0]["exporter"]), (4, &Value::from("10.9.0.1:3000")));
}
