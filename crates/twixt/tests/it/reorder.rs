//! `twixt reorder`: TCP reordering by prefix.

use serde_json::Value;
use twixt_testing::require;

use crate::support::{Capture, MILLISECOND, Packet, folder, twixt, twixt_fed, twixt_in};

/// Three flows of 200 packets, a millisecond apart; of those from 10.0.9.0/24 every tenth comes
/// between the two that follow it.
fn capture() -> Capture {
    let mut capture = Capture::default();
    for (source, late) in [("10.0.9.1:80", 10), ("10.0.9.2:80", 10), ("10.0.7.1:80", 1000)] {
        for number in 0..200_u16 {
            let is_late = number % late == 5;
            let time_ns =
                i64::from(number) * MILLISECOND + i64::from(is_late) * 3 * MILLISECOND / 2;
            capture.add(time_ns, Packet::tcp(source, "10.1.0.1:5000", number).frame());
        }
    }
    capture
}

#[track_caller]
fn check_first(options: &str, prefix: &str, packets: i64, out_of_order: i64) {
    let folder = folder();
    capture().write(folder.path().join("a.pcap"));
    let run = twixt_in(folder.path(), &format!("reorder -r a.pcap -F json {options}")).expect(0);
    let document = run.json();
    let first = &document["prefixes"][0];
    assert_eq!(first["prefix"], prefix, "{document}");
    assert_eq!(
        (&first["packets"], &first["out_of_order"]),
        (&packets.into(), &out_of_order.into())
    );
    let fraction = out_of_order as f64 / packets as f64;
    assert!((first["fraction"].as_f64().expect("it is known") - fraction).abs() < 1e-12);
    assert!(document["synopsis_bytes"].as_i64() > Some(0));
}

#[test]
fn the_worst_prefix_comes_first() {
    check_first("", "10.0.9.0/24", 400, 40);
    check_first("--prefix 16", "10.0.0.0/16", 600, 41);
    check_first("--prefix 32", "10.0.9.1/32", 200, 20);
    check_first("--definition previous", "10.0.9.0/24", 400, 40);
    // One record for the prefix: one flow in 32 packets each, less the first of each record.
    check_first("src host 10.0.9.1", "10.0.9.0/24", 200, 20);
    check_first("-a sampled src host 10.0.9.1", "10.0.9.0/24", 199, 20);
    check_first("-a hybrid --records 64 src host 10.0.9.1", "10.0.9.0/24", 199, 20);
}

#[test]
fn verdicts_and_extents_are_told() {
    let folder = folder();
    capture().write(folder.path().join("a.pcap"));
    let rows = twixt_in(folder.path(), "reorder -r a.pcap -F jsonl").expect(0).json_lines();
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[0]["verdict"], &rows[1]["verdict"]), (&"above".into(), &"unclear".into()));
    assert_eq!((&rows[0]["extent_mean"], &rows[0]["extent_max"]), (&1.0.into(), &1.into()));
    let bounded = twixt_in(folder.path(), "reorder -r a.pcap -F jsonl -a sampled").expect(0);
    assert!(bounded.json_lines().iter().all(|row| row["extent_max"].is_null()));
    let report = twixt_in(folder.path(), "reorder -r a.pcap").expect(0).silent().stdout;
    assert!(
        report.contains(
            "600 packets with data judged, 41 out of order, 0 retransmitted, 0 undecided"
        )
    );
    let table = twixt_in(folder.path(), "reorder -r a.pcap -F csv --top 1").expect(0).stdout;
    assert_eq!(table.lines().count(), 2);
}

#[test]
fn bad_input_is_named() {
    let folder = folder();
    let mut torn = capture().bytes();
    torn.truncate(torn.len() - 10);
    std::fs::write(folder.path().join("torn.pcap"), &torn).expect("the folder can be written to");
    let check = |arguments: &str, code: i32, said: &str| {
        twixt_in(folder.path(), &format!("reorder {arguments}")).expect(code).says(&[said]);
    };
    check("-r missing.pcap", 1, "no such file");
    check("-r torn.pcap", 3, "torn.pcap");
    check("-r torn.pcap udp", 4, "no packets");
    check("-r torn.pcap --threshold 2", 2, "between 0 and 1");
    check("-r torn.pcap --definition best", 2, "previous, highest");
    check("-r torn.pcap --prefix 33", 2, "prefix must be at most 32");
    check("-r torn.pcap --records 9", 2, "exact has no option --records");
    check("-r torn.pcap -a sampled --stale -3s", 2, "");
    twixt_fed(folder.path(), "reorder -r - -F json", &torn).expect(3);
}

fn sum(document: &Value, key: &str) -> u64 {
    let rows = document["prefixes"].as_array().expect("there are prefixes");
    rows.iter().map(|row| row[key].as_u64().expect("it is a number")).sum()
}

/// Late packets of real captures: out of order, and sent again.
#[track_caller]
fn check_real(path: &str, options: &str, out_of_order: u64, retransmitted: u64) {
    let path = require!(shared path).display().to_string();
    let words = ["reorder", "-F", "json", "-r", &path].into_iter();
    let document = twixt(words.chain(options.split_whitespace())).expect(0).json();
    let found = (sum(&document, "out_of_order"), sum(&document, "retransmitted"));
    assert_eq!(found, (out_of_order, retransmitted), "{path}");
}

/// Two independent programs agree on 37: see the reference's truth.
#[test]
fn the_reference_has_37_packets_out_of_order() {
    check_real("reference/tcp_rtt_reorder/synthetic_tcp.pcap", "", 37, 0);
    check_real("reference/tcp_rtt_reorder/synthetic_tcp.pcap", "--definition previous", 37, 0);
}

/// What their IP identifications say: nine overtaken, and none of the others.
#[test]
fn retransmissions_are_told_apart_from_reordering() {
    check_real("traces/reorder-retx/zeek-rdp-proprietary-encryption.pcap", "", 9, 0);
    check_real("traces/reorder-retx/zeek-206_example_b.pcap", "", 0, 108);
}
