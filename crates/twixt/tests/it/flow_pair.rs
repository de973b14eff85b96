//! `twixt flow pair`: records of two points, read side by side.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use twixt_flow::{DelayRecord, FlowWriter, WriterConfig};
use twixt_model::{ClassId, Delay, FlowEnd, FlowRecord, PacketDigest, Timestamp, mix};
use twixt_testing::require;

use crate::support::{Capture, MILLISECOND, Packet, SECOND, folder, number, twixt_fed, twixt_in};

/// 2023-11-14.
const START_NS: i64 = 1_700_000_000 * SECOND;

/// Twenty flows with a pause each, 2 ms late downstream.
fn captures(folder: &Path) {
    let (mut up, mut down) = (Capture::default(), Capture::default());
    for index in 0..400_u16 {
        let source = format!("10.0.0.1:{}", 5_000 + index % 20);
        let time_ns = i64::from(index) * 100 * MILLISECOND;
        let packet = Packet::udp(&source, "10.0.1.9:53", index);
        up.add(time_ns, packet.frame());
        down.add(time_ns + 2 * MILLISECOND, packet.ttl(63).frame());
    }
    up.write(folder.join("up.pcap"));
    down.write(folder.join("down.pcap"));
    for point in ["up", "down"] {
        let export = format!("flow export -r {point}.pcap -w {point}.ipfix --inactive-timeout 1s");
        twixt_in(folder, &export).expect(0);
    }
}

/// As above, with answers that take 30 ms on their way back: records of both directions.
fn conversation(folder: &Path) {
    let (mut up, mut down) = (Capture::default(), Capture::default());
    for index in 0..400_u16 {
        let source = format!("10.0.0.1:{}", 5_000 + index % 20);
        let time_ns = i64::from(index) * 100 * MILLISECOND;
        let packet = Packet::udp(&source, "10.0.1.9:53", index);
        up.add(time_ns, packet.frame());
        down.add(time_ns + 2 * MILLISECOND, packet.clone().ttl(63).frame());
        let answer = packet.reversed();
        down.add(time_ns + 5 * MILLISECOND, answer.frame());
        up.add(time_ns + 35 * MILLISECOND, answer.ttl(63).frame());
    }
    up.write(folder.join("up.pcap"));
    down.write(folder.join("down.pcap"));
    for point in ["up", "down"] {
        let export = format!("flow export -r {point}.pcap -w {point}.ipfix --inactive-timeout 5s");
        twixt_in(folder, &export).expect(0);
    }
}

/// Multiflow took the delays of one direction for those of the other.
#[test]
fn records_of_both_directions_are_told_apart() {
    let folder = folder();
    conversation(folder.path());
    for (files, expected_ns) in
        [("up.ipfix down.ipfix", 2 * MILLISECOND), ("down.ipfix up.ipfix", 30 * MILLISECOND)]
    {
        for estimator in ["hybrid", "multiflow", "endpoint"] {
            let options = format!("--inactive-timeout 5s --estimator {estimator} -F json");
            let document =
                twixt_in(folder.path(), &format!("flow pair {files} {options}")).expect(0).json();
            assert_eq!(document["direction"]["decided_by"], "delay-sign");
            let estimates = document["estimates"].as_array().expect("a list");
            assert_eq!(estimates.len(), 20, "{estimator}");
            for estimate in estimates {
                assert_eq!(number(estimate, "/mean_ns"), expected_ns, "{estimator}: {estimate}");
                let [packets, used] = ["packets", "used"].map(|key| estimate[key].as_u64());
                assert!(used <= packets, "{estimator}: {estimate}");
            }
            let skipped = &document["upstream"]["skipped"]["wrong-direction"];
            assert!(skipped.as_u64().is_some_and(|records| records >= 20), "{document}");
        }
    }
}

#[test]
fn what_records_cannot_tell_is_refused() {
    let folder = folder();
    conversation(folder.path());
    twixt_in(folder.path(), "flow pair up.ipfix down.ipfix --by class")
        .expect(2)
        .says(&["classes"]);
    // A pipe can be read but once.
    let bytes = std::fs::read(folder.path().join("up.ipfix")).expect("it was written");
    let pair = "flow pair - down.ipfix --inactive-timeout 5s";
    twixt_fed(folder.path(), pair, &bytes).expect(2).says(&["both directions", "--toward"]);
    let toward = format!("{pair} --toward 10.0.1.0/24 -F json");
    let document = twixt_fed(folder.path(), &toward, &bytes).expect(0).json();
    assert_eq!(number(&document, "/estimates/0/mean_ns"), 2 * MILLISECOND);
    // Only the way back.
    captures(folder.path());
    let swapped = twixt_in(folder.path(), "flow pair down.ipfix up.ipfix").expect(4);
    swapped.says(&["other direction", "swap"]);
}

const PAIR: &str = "flow pair up.ipfix down.ipfix --inactive-timeout 1s";

#[test]
fn records_come_from_files_and_from_pipes_alike() {
    let folder = folder();
    captures(folder.path());
    let document = twixt_in(folder.path(), &format!("{PAIR} -F json")).expect(0).silent().json();
    assert_eq!(number(&document, "/records/associated"), 400);
    assert_eq!(document["config"]["associate"], "label");
    let estimates = document["estimates"].as_array().expect("a list");
    assert_eq!(estimates.len(), 20);
    for estimate in estimates {
        assert_eq!((number(estimate, "/mean_ns"), number(estimate, "/lost")), (2_000_000, 0));
    }
    let bytes = std::fs::read(folder.path().join("up.ipfix")).expect("it was written");
    let piped = "flow pair - down.ipfix --inactive-timeout 1s -F json";
    let mut piped = twixt_fed(folder.path(), piped, &bytes).expect(0).json();
    piped["segment"]["upstream"] = document["segment"]["upstream"].clone();
    assert_eq!(piped, document);
}

/// A record of flow `flow` that began at a second and lasted a second.
fn record(number: u64, start_s: i64, late_ns: i64) -> FlowRecord {
    let at = |seconds: i64| Timestamp::from_nanos(START_NS + seconds * SECOND + late_ns);
    let label = |salt: u64| Some(PacketDigest(mix(number << 8 | salt)));
    FlowRecord {
        key: format!("udp 10.0.0.1:{} > 10.0.1.9:53", 1_000 + number % 50).parse().expect("a flow"),
        class: ClassId(0),
        first: at(start_s),
        last: at(start_s + 1),
        packets: 9,
        bytes: 900,
        tcp_flags: 0,
        first_label: label(1),
        last_label: label(2),
        end: FlowEnd::Idle,
        resolution_ns: 1,
    }
}

fn write(path: &Path, records: impl IntoIterator<Item = FlowRecord>) {
    let mut writer = FlowWriter::new(WriterConfig::STREAM).expect("the bounds are fine");
    let (mut bytes, mut now) = (Vec::new(), Timestamp::MIN);
    for record in records {
        now = now.max(record.last);
        writer.record(&record, now).expect("it can be written");
        bytes.extend(std::iter::from_fn(|| writer.poll()).flatten());
    }
    writer.finish();
    bytes.extend(std::iter::from_fn(|| writer.poll()).flatten());
    std::fs::write(path, bytes).expect("it can be written");
}

const TIMEOUTS: &str = "--active-timeout 10s --inactive-timeout 5s";

#[test]
fn records_that_come_later_than_the_timeouts_allow_are_counted_and_said() {
    let folder = folder();
    let records = |late_ns| (0..500_u64).map(move |number| record(number, number as i64, late_ns));
    // Three records of the beginning come again at the end.
    let tardy = records(0).chain((0..3).map(|number| record(9_000 + number, number as i64, 0)));
    write(&folder.path().join("up.ipfix"), tardy);
    write(&folder.path().join("down.ipfix"), records(MILLISECOND));
    let pair = format!("flow pair up.ipfix down.ipfix {TIMEOUTS} -F json");
    let found = twixt_in(folder.path(), &pair).expect(3);
    let document = found.says(&["3 records came later than the timeouts allow"]).json();
    assert_eq!(number(&document, "/records/overdue"), 3);
    assert_eq!(number(&document, "/records/associated"), 500);
    // With the timeouts that the meters had, nothing is late.
    let pair = "flow pair up.ipfix down.ipfix --active-timeout 10m -F json";
    twixt_in(folder.path(), pair).expect(0).silent();
}

#[test]
fn records_without_labels_after_others_are_counted_and_said() {
    let folder = folder();
    // More than what is read before it is decided how records are recognised.
    let records = |late_ns| {
        (0..8_000_u64).map(move |number| {
            let record = record(number, number as i64, late_ns);
            let keeps = number < 7_990;
            FlowRecord {
                first_label: record.first_label.filter(|_| keeps),
                last_label: record.last_label.filter(|_| keeps),
                ..record
            }
        })
    };
    write(&folder.path().join("up.ipfix"), records(0));
    write(&folder.path().join("down.ipfix"), records(MILLISECOND));
    let pair = format!("flow pair up.ipfix down.ipfix {TIMEOUTS} -F json");
    let found = twixt_in(folder.path(), &pair).expect(3).says(&["20 records have no labels"]);
    assert_eq!(number(&found.json(), "/records/associated"), 7_990);
    let timing = format!("{pair} --associate timing");
    let document = twixt_in(folder.path(), &timing).expect(0).json();
    assert!(number(&document, "/records/associated") > 7_990, "{}", document["records"]);
}

#[test]
fn trouble_of_every_kind_is_counted_and_explained() {
    let folder = folder();
    let path = folder.path().join("bad.ipfix");
    write(&path, [record(1, 0, 0)]);
    let good = std::fs::read(&path).expect("it was written");
    let message = |seconds: i64, sequence: u32| {
        let mut message = good.clone();
        message[4..8].copy_from_slice(&((START_NS / SECOND + seconds) as u32).to_be_bytes());
        message[8..12].copy_from_slice(&sequence.to_be_bytes());
        message
    };
    // A template of a field without bytes, in a message of its own.
    let template: [u8; 12] = [0, 2, 0, 12, 1, 3, 0, 1, 0, 8, 0, 0];
    let broken = [&[0, 10, 0, 28][..], &good[4..16], &template].concat();
    let cases: [(&str, Vec<u8>, i32); 4] = [
        ("malformed messages: 1", [&good[..], &broken].concat(), 3),
        ("missing by sequence number: 6", [&good[..], &message(1, 7)].concat(), 0),
        ("clock steps: 1", [message(900, 0), message(0, 1)].concat(), 0),
        ("messages out of order: 1", [message(0, 5), message(0, 2)].concat(), 0),
    ];
    for (said, bytes, code) in cases {
        std::fs::write(&path, bytes).expect("it can be written");
        twixt_in(folder.path(), "flow import bad.ipfix -F json").expect(code).says(&[said]);
        twixt_in(folder.path(), "flow pair bad.ipfix bad.ipfix").expect(code).says(&[said]);
    }
}

/// Delays that tshark finds in a file: element, bytes of it in the template, value.
fn tshark_delays(file: &Path) -> Vec<(u16, usize, u64)> {
    let output =
        Command::new("tshark").arg("-r").arg(file).arg("-V").output().expect("tshark starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let names = [
        (530, "pathDelayMeanDeltaMicroseconds"),
        (531, "pathDelayMinDeltaMicroseconds"),
        (532, "pathDelayMaxDeltaMicroseconds"),
        (533, "pathDelaySumDeltaMicroseconds"),
    ];
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let found = |(element, name): (u16, &str)| {
        // In the template: its number, then its length.
        let announced = lines.iter().position(|line| line.ends_with(&format!("({element})")))?;
        let announced = lines[announced..].iter().find_map(|line| line.strip_prefix("Length: "))?;
        // tshark before 4.4 does not know the names, and shows bytes.
        let hex = format!("Type {element}: Value (hex bytes): ");
        let value = lines.iter().find_map(|line| {
            if let Some((_, bytes)) = line.split_once(&hex) {
                return u64::from_str_radix(&bytes.replace(' ', ""), 16).ok();
            }
            line.strip_prefix(name)?.trim_start_matches(": ").parse().ok()
        })?;
        Some((element, announced.parse().expect("a number"), value))
    };
    names.into_iter().filter_map(found).collect()
}

/// The types of the registry: 530 to 532 have 32 bits, 533 has 64, in microseconds.
#[test]
fn tshark_reads_delays() {
    require!(program "tshark");
    let folder = folder();
    let file = folder.path().join("delays.ipfix");
    let mut writer = FlowWriter::new(WriterConfig::STREAM).expect("the bounds are fine");
    let first = Timestamp::from_nanos(START_NS);
    let delay = DelayRecord {
        key: "udp 10.0.0.1:5000 > 10.0.1.9:53".parse().expect("a flow"),
        first,
        last: first,
        packets: 300_000,
        mean: Delay::from_nanos(20_550_400),
        extremes: Some((Delay::from_nanos(11_000), Delay::from_nanos(40_000_600))),
    };
    writer.delay(&delay, first).expect("it can be written");
    writer.finish();
    std::fs::write(&file, writer.poll().expect("one message")).expect("it can be written");
    let found = tshark_delays(&file);
    let expected = [(530, 4, 20_550), (531, 4, 11), (532, 4, 40_001), (533, 8, 6_165_120_000)];
    assert_eq!(found, expected);
}

#[test]
fn delays_of_flows_are_written_for_collectors() {
    require!(program "tshark");
    let folder = folder();
    captures(folder.path());
    twixt_in(folder.path(), &format!("{PAIR} -w delays.ipfix")).expect(0);
    let document = twixt_in(folder.path(), "flow import delays.ipfix -F json").expect(0).json();
    assert_eq!(number(&document, "/unusable/delay-result"), 20);
    let found = tshark_delays(&folder.path().join("delays.ipfix"));
    assert_eq!(found, [(530, 4, 2_000), (533, 8, 40_000)]);
    // IPFIX has no negative delays.
    let swapped = "flow pair down.ipfix up.ipfix --inactive-timeout 1s --toward 10.0.1.9 \
                   -w no.ipfix -F json";
    let found = twixt_in(folder.path(), swapped).expect(3).says(&["20 flows have delays"]);
    let document: Value = found.json();
    assert_eq!(number(&document, "/estimates/0/mean_ns"), -2_000_000);
    twixt_in(folder.path(), &format!("{PAIR} --by all -w no.ipfix")).expect(2);
}
