//! Responses of servers, sides and spin bits of real captures, beside what tshark says of them.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use twixt_testing::require;

use super::tshark::nanos;
use super::{kind, rtt, samples};
use crate::support::{number, twixt_in};

/// Times of responses by when they began, as tshark measures them without putting segments together.
fn tshark_times(capture: &Path, field: &str) -> HashMap<i64, i64> {
    let run = Command::new("tshark")
        .args(["-n", "-o", "http.desegment_body:FALSE", "-o", "http.desegment_headers:FALSE"])
        .args(["-T", "fields", "-e", "frame.time_epoch", "-e", field, "-Y", field, "-r"])
        .arg(capture)
        .output()
        .expect("tshark runs");
    let text = String::from_utf8(run.stdout).expect("it is text");
    let row = |line: &str| {
        let (time, after) = line.split_once('\t')?;
        Some((nanos(time), nanos(after.split(',').next()?)))
    };
    text.lines().filter_map(row).collect()
}

/// Checks that each response of a protocol took as long as tshark says, but for so many; and how many
/// of tshark's are missing.
#[track_caller]
fn check(capture: &Path, part: &str, different: usize, missing: usize) {
    let theirs = tshark_times(capture, &format!("{part}.time"));
    let ours = samples(capture, "--kind server-response");
    let ours: Vec<&Value> = ours.iter().filter(|sample| sample["part"] == part).collect();
    let differs = |sample: &&&Value| {
        let after_ns = theirs.get(&number(sample, "/time_ns"));
        after_ns.is_none_or(|after_ns| (after_ns - number(sample, "/rtt_ns")).abs() > 1)
    };
    let found = ours.iter().filter(differs).count();
    println!("{}: {} of {part}, {found} differ", capture.display(), ours.len());
    assert!(!ours.is_empty() && found == different, "{found} differ");
    assert_eq!(theirs.len() - ours.len(), missing);
}

#[test]
fn responses_take_as_long_as_tshark_says() {
    let traces = require!(shared "traces");
    require!(program "tshark");
    let example = traces.join("pcapplusplus-mix/example.pcap");
    // One request of HTTP was retransmitted.
    check(&example, "http", 0, 1);
    check(&example, "dns", 0, 0);
    check(&traces.join("mercury-mix/emix.pcap"), "http", 0, 0);
    check(&traces.join("mercury-mix/emix.pcap"), "dns", 0, 0);
}

/// tshark, by who acknowledges: medians of 26.257 ms from servers, 0.026 ms from clients.
#[test]
fn sides_are_those_of_tshark() {
    let traces = require!(shared "traces");
    let document = rtt(&traces.join("dns-tcp-many/dns_udp_tcp_random.pcap"), "");
    let data = kind(&document, "tcp-sequence");
    let parts = data["parts"].as_array().expect("sides");
    let median = |name: &str| {
        let part = parts.iter().find(|part| part["part"] == name).expect("a side");
        number(part, "/percentiles/p50_ns") as f64 / 1e6
    };
    assert!((20.0..30.0).contains(&median("toward-servers")));
    assert!((0.01..0.05).contains(&median("toward-clients")));
    let matched: i64 = parts.iter().map(|part| number(part, "/matched")).sum();
    assert_eq!(matched, number(data, "/matched"), "every connection begins in the capture");
}

/// The capture is of a queue in the network; the server answers at once.
#[test]
fn a_queue_is_not_taken_for_the_server() {
    let traces = require!(shared "traces");
    let document = rtt(&traces.join("tbf-queue/upstream.pcap"), "");
    let wait = &kind(&document, "server-response")["first_byte"];
    assert_eq!(wait["mostly"], Value::Null, "{wait}");
    let dns = rtt(&traces.join("dns-tcp-many/dns_udp_tcp_random.pcap"), "");
    assert_eq!(kind(&dns, "server-response")["first_byte"]["mostly"], "network");
    let report = twixt_in(&traces.join("redart-wifi"), "rtt -r capture_4.pcap").expect(0).stdout;
    assert!(report.contains("waiting    mostly for the server: "), "{report}");
    assert!(report.contains("spin bit   usable in 0 of 13 connections"), "{report}");
}

#[test]
fn round_trips_are_split_by_code_point() {
    let traces = require!(shared "traces");
    let capture = traces.join("tbf-queue/upstream.pcap");
    let document = rtt(&capture, "--by dscp --kind tcp-timestamp");
    let found = kind(&document, "tcp-timestamp");
    let groups = found["groups"].as_array().expect("groups");
    assert!(groups.iter().all(|group| {
        group["scope"].as_str().is_some_and(|scope| scope.starts_with("class dscp "))
    }));
    let matched: i64 = groups.iter().map(|group| number(group, "/matched")).sum();
    assert_eq!(matched, number(found, "/matched"));
    let both = "rtt -r upstream.pcap --by dscp --class web=port 80";
    twixt_in(&traces.join("tbf-queue"), both).expect(2);
}
