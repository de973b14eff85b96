//! `twixt rtt`: round trips of real and synthetic captures, beside what others find in them.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;
use twixt_testing::require;

use crate::support::{number, twixt, twixt_in};

mod response;
mod tshark;

/// Runs `twixt rtt` on a capture and takes its document.
#[track_caller]
fn rtt(file: &Path, arguments: &str) -> Value {
    let file = file.to_str().expect("a path in UTF-8");
    let arguments =
        ["rtt", "-r", file, "-F", "json"].into_iter().chain(arguments.split_whitespace());
    twixt(arguments).expect(0).json()
}

/// One kind of a document.
#[track_caller]
fn kind<'a>(document: &'a Value, name: &str) -> &'a Value {
    let kinds = document["kinds"].as_array().expect("there are kinds");
    kinds.iter().find(|kind| kind["kind"] == name).unwrap_or_else(|| panic!("no {name}"))
}

/// Single round trips: scope, length, and when they ended.
#[track_caller]
fn samples(file: &Path, arguments: &str) -> Vec<Value> {
    let file = file.to_str().expect("a path in UTF-8");
    let arguments = ["rtt", "-r", file, "--samples", "-F", "jsonl"]
        .into_iter()
        .chain(arguments.split_whitespace());
    let run = twixt(arguments).expect(0);
    let lines = run.stdout.lines();
    lines.map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// Checks that a value in nanoseconds, in milliseconds, is within a fraction of what is stated.
#[track_caller]
fn check_ms(kind: &Value, key: &str, stated_ms: f64, fraction: f64) {
    let found_ms = number(kind, key) as f64 / 1e6;
    assert!((found_ms / stated_ms - 1.0).abs() <= fraction, "{key}: {found_ms} for {stated_ms}");
}

const DART_KINDS: &str = "--kind tcp-handshake-server,tcp-handshake-client,tcp-sequence";

/// What the authors of Dart find with unlimited memory: 1873 samples of data and 120 of
/// handshakes; median 2.636 ms, p95 3.042 ms of the former.
#[test]
fn data_round_trips_are_those_of_dart() {
    let folder = require!(shared "reference/tcp_rtt_reorder");
    let capture = folder.join("synthetic_tcp.pcap");
    let document = rtt(&capture, "");
    let data = kind(&document, "tcp-sequence");
    assert_eq!((number(data, "/matched"), number(data, "/ambiguous")), (1873, 37));
    let legs = ["tcp-handshake-server", "tcp-handshake-client"];
    let legs: i64 = legs.iter().map(|leg| number(kind(&document, leg), "/matched")).sum();
    assert_eq!(legs + number(data, "/matched"), 1993);
    let ms = |key: &str| format!("{:.3}", number(data, key) as f64 / 1e6);
    assert_eq!(ms("/percentiles/p50_ns"), "2.636");
    assert_eq!(ms("/percentiles/p95_ns"), "3.042");

    // Flow by flow and in order. Their times are cut to whole microseconds at both ends.
    let mut ours: HashMap<String, Vec<f64>> = HashMap::new();
    for sample in samples(&capture, DART_KINDS) {
        let scope = sample["scope"].as_str().expect("a flow").to_owned();
        ours.entry(scope).or_default().push(number(&sample, "/rtt_ns") as f64 / 1e6);
    }
    let text = std::fs::read_to_string(folder.join("dart_authors_rtt_syn.txt")).expect("readable");
    let mut flows = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (key, times) = line.rsplit_once(" : ").expect("a flow and its times");
        let part: Vec<&str> = key.split(['\'', ',', '(', ')']).map(str::trim).collect();
        let numbers: Vec<&str> = part
            .iter()
            .copied()
            .filter(|part| part.starts_with(|c: char| c.is_ascii_digit()))
            .collect();
        let [source, destination, from, to] = numbers[..] else { panic!("{key}") };
        let found = &ours[&format!("tcp {source}:{from} > {destination}:{to}")];
        let theirs: Vec<f64> =
            times.split(' ').map(|time| time.parse().expect("a number")).collect();
        assert_eq!(found.len(), theirs.len(), "{key}");
        assert!(found.iter().zip(&theirs).all(|(ours, theirs)| (ours - theirs).abs() < 0.0021));
        flows += 1;
    }
    assert_eq!(flows, ours.len());
}

/// pping on the same capture: mean 19.9 ms, deviation 8.7, p95 42.3.
#[test]
fn timestamps_give_what_pping_finds() {
    let traces = require!(shared "traces");
    let document = rtt(&traces.join("tbf-queue/upstream.pcap"), "--kind tcp-timestamp");
    let found = kind(&document, "tcp-timestamp");
    check_ms(found, "/mean_ns", 19.9, 0.01);
    check_ms(found, "/stddev_ns", 8.7, 0.01);
    check_ms(found, "/percentiles/p95_ns", 42.3, 0.01);
}

/// tshark has 160 round trips above 50 ms of segments that were sent again. We have none.
#[test]
fn no_round_trip_comes_from_a_segment_that_was_sent_again() {
    let traces = require!(shared "traces");
    let capture = traces.join("tbf-queue/upstream.pcap");
    let sent = tshark::segments(&capture);
    for (arguments, most) in [("", 0), ("-a fridge --entry-probability 1", 0)] {
        let slow = samples(&capture, &format!("--kind tcp-sequence {arguments}"))
            .into_iter()
            .filter(|sample| number(sample, "/rtt_ns") > 50_000_000);
        let (mut again, mut slow_ones) = (0, 0);
        for sample in slow {
            let sent_ns = number(&sample, "/time_ns") - number(&sample, "/rtt_ns");
            let end = sent.at(sent_ns).expect("a segment was sent then");
            again += u32::from(sent.times_sent(end) > 1);
            slow_ones += 1;
        }
        println!(
            "{arguments:?}: {slow_ones} above 50 ms, {again} of segments that were retransmitted"
        );
        assert!(again <= most && slow_ones > 0);
    }
}

#[test]
fn handshakes_and_data_agree_with_tshark() {
    let traces = require!(shared "traces");
    for (truth, capture) in tshark::CAPTURES {
        let capture = traces.join(capture);
        let truth = tshark::Truth::read(&traces.join(format!("truth/{truth}.tsv.gz")));
        // Ours are some of theirs, to the nanosecond.
        for (kind, theirs) in [
            ("tcp-sequence", &truth.data),
            ("tcp-handshake-server,tcp-handshake-client", &truth.handshakes),
        ] {
            let ours = samples(&capture, &format!("--kind {kind}"));
            let strangers = ours.iter().filter(|sample| !theirs.has(sample)).count();
            println!("{}: {} {kind}, {strangers} unknown to tshark", capture.display(), ours.len());
            assert!(strangers as f64 <= truth.tolerance * ours.len() as f64, "{kind}");
        }
        // Theirs are ours, but for FINs (two a stream at most) and what was sent again or came out
        // of order, once our doubts are put aside. A table of four million loses a few.
        let plain = "--kind tcp-sequence -a simple --entries 4194304 --flows 0";
        let plain = samples(&capture, plain);
        let of_some_length = plain.iter().filter(|sample| number(sample, "/rtt_ns") != 0);
        let common = of_some_length.filter(|sample| truth.data.has(sample)).count();
        let missing = truth.data.count() - common;
        let explained = 2 * truth.streams + truth.sent_again + 3;
        assert!(missing <= explained, "{missing} missing, {explained} explained");
        truth.check_handshakes(&capture_handshakes(&capture));
    }
}

/// None if the capture has no complete handshake.
fn capture_handshakes(capture: &Path) -> Vec<Value> {
    let file = capture.to_str().expect("a path in UTF-8");
    let run = twixt(["rtt", "-r", file, "--samples", "-F", "jsonl", "--kind", "tcp-handshake"]);
    run.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// A table whose bias is large and unknown stated an interval without width.
#[test]
fn a_plain_table_has_no_interval() {
    let traces = require!(shared "traces");
    let capture = traces.join("dns-tcp-many/dns_udp_tcp_random.pcap");
    let document = rtt(&capture, "-a simple --entries 16");
    let dns = kind(&document, "dns");
    assert!(number(dns, "/mean_ns") > 0 && number(dns, "/percentiles/p50_ns") > 0);
    for key in ["/ci95_low_ns", "/ci95_high_ns", "/percentiles_ci95/p50_ns"] {
        assert_eq!(dns.pointer(key), Some(&Value::Null), "{key}");
    }
    assert!(dns["reason"].as_str().expect("said").contains("plain table"));
    let folder = traces.join("dns-tcp-many");
    let report = twixt_in(&folder, "rtt -r dns_udp_tcp_random.pcap -a simple --entries 16");
    let report = report.expect(0).stdout;
    assert!(report.contains("± –") && report.contains("no interval"), "{report}");
}

#[test]
fn weights_are_those_of_the_authors() {
    let path = require!(shared "reference/fridge/weights.json");
    let text = std::fs::read_to_string(path).expect("readable");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let rows = document["rows"].as_array().expect("rows");
    assert!(rows.len() > 20);
    for row in rows {
        let value = |key: &str| row[key].as_f64().expect("a number");
        let (entries, insertions) = (value("M") as u32, value("x_insertions") as u32);
        let weight = twixt_synopsis::rtt::fridge_weight(entries, value("p"), insertions);
        assert!((weight / value("weight") - 1.0).abs() < 1e-12, "{row}: {weight}");
    }
}

/// A small fridge beside the referee, on a capture of many conversations.
#[test]
fn a_fridge_finds_as_many_as_the_referee() {
    let traces = require!(shared "traces");
    let capture = traces.join("zeek-echo/echo-connections.pcap.gz");
    let exact = rtt(&capture, "--kind tcp-sequence");
    let fridge = rtt(&capture, "--kind tcp-sequence -a fridge --memory 32KiB --longest 100ms");
    let (exact, found) = (kind(&exact, "tcp-sequence"), kind(&fridge, "tcp-sequence"));
    assert!(number(&fridge, "/synopsis_bytes") <= 34 * 1024, "{}", fridge["synopsis_bytes"]);
    let (truth, weighted) = (number(exact, "/matched") as f64, found["weighted"].as_f64());
    let ratio = weighted.expect("a number") / truth;
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
    // One in a thousand of these take 40 ms, the rest some 60 µs.
    let median = number(exact, "/percentiles/p50_ns") as f64;
    check_ms(found, "/percentiles/p50_ns", median / 1e6, 0.1);
}

#[test]
fn the_document_has_the_keys_of_the_contract() {
    let traces = require!(shared "traces");
    let document = rtt(&traces.join("dns-tcp-many/dns_udp_tcp_random.pcap"), "--by port -a fridge");
    assert_eq!(document["algorithm"], "fridge");
    let dns = kind(&document, "dns");
    for key in ["/requests", "/responses", "/matched", "/mean_ns", "/stddev_ns", "/horizon_ns"] {
        assert!(number(dns, key) > 0, "{key}");
    }
    let keys: Vec<&String> = dns["percentiles"].as_object().expect("percentiles").keys().collect();
    assert_eq!(keys, ["p50_ns", "p90_ns", "p95_ns", "p99_ns", "p999_ns"]);
    assert!(dns["population"].as_str().expect("said").contains("query"));
    let last = dns["cdf"].as_array().and_then(|cdf| cdf.last()).expect("a distribution");
    assert_eq!(last[1], 1.0);
    let scopes: Vec<&str> = dns["groups"]
        .as_array()
        .expect("groups")
        .iter()
        .filter_map(|g| g["scope"].as_str())
        .collect();
    assert!(scopes.contains(&"udp port 53"), "{scopes:?}");
}

#[test]
fn epochs_add_up_to_the_whole() {
    let traces = require!(shared "traces");
    let capture = traces.join("tbf-queue/upstream.pcap");
    for algorithm in ["exact", "fridge"] {
        let document = rtt(&capture, &format!("--epoch 500ms -a {algorithm}"));
        let whole = rtt(&capture, &format!("-a {algorithm}"));
        let epochs = document["epochs"].as_array().expect("epochs");
        assert!(epochs.len() >= 10);
        let in_epochs: i64 = epochs
            .iter()
            .flat_map(|epoch| epoch["kinds"].as_array().expect("kinds"))
            .filter(|kind| kind["kind"] == "tcp-timestamp")
            .map(|kind| number(kind, "/matched"))
            .sum();
        assert_eq!(in_epochs, number(kind(&document, "tcp-timestamp"), "/matched"));
        if algorithm == "exact" {
            assert_eq!(kind(&document, "tcp-timestamp"), kind(&whole, "tcp-timestamp"));
        }
    }
}

#[test]
fn spin_bits_and_handshakes_of_quic_are_found() {
    let traces = require!(shared "traces");
    let document = rtt(&traces.join("qns-twoside/quic-15ms-left.pcap"), "");
    check_ms(kind(&document, "quic-handshake"), "/mean_ns", 769.126, 0.001);
    let document = rtt(&traces.join("spindump/trace_quic_titalia_qrloss.pcap"), "");
    assert!(number(kind(&document, "quic-spin"), "/matched") > 10);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let traces = require!(shared "traces");
    let folder = traces.join("tbf-queue");
    for (arguments, said) in [
        ("--samples", "-F jsonl"),
        ("--kind tls", "unknown kind of round trip"),
        ("--by size", "use all, flow"),
        ("-a lda", "unknown algorithm"),
        ("-a exact --entries 5", "no option --entries"),
        ("-a fridge --entries 5 --memory 64KiB", "either --memory"),
        ("-a fridge --memory 100", "too few"),
        ("--toward 10.0.0.0/8", "both directions"),
    ] {
        twixt_in(&folder, &format!("rtt -r upstream.pcap {arguments}")).expect(2).says(&[said]);
    }
    twixt_in(&folder, "rtt -r upstream.pcap --kind dns").expect(4).says(&["no round trip"]);
    twixt_in(&folder, "rtt -r upstream.pcap -a fridge --memory 64KiB --kind tcp-sequence")
        .expect(0);
}

#[test]
fn people_get_a_table_and_programs_get_rows() {
    let traces = require!(shared "traces");
    let folder = traces.join("tbf-queue");
    let table = twixt_in(&folder, "rtt -r upstream.pcap").expect(0).silent().stdout;
    assert!(table.contains("tcp-timestamp") && table.contains("19.85 ms"), "{table}");
    let csv = twixt_in(&folder, "rtt -r upstream.pcap -F csv --by flow").expect(0).stdout;
    assert!(csv.starts_with("scope,kind,requests,responses,matched,weighted,mean_ns"), "{csv}");
    assert!(csv.lines().any(|line| line.starts_with("tcp 10.201.1.1:")));
    let plan = "plan fridge --rate 1Mpps --longest 2s --memory 16KiB -F json";
    let plan = twixt_in(&folder, plan).expect(0).json();
    assert!(number(&plan, "/synopsis_bytes") <= 16 * 1024);
    assert!(number(&plan, "/horizon_ns") > 2_000_000_000);
    let expected = plan["expected"].as_array().expect("errors");
    assert!(expected.iter().all(|row| row["relative_error"].as_f64().is_some_and(|e| e > 0.0)));
    twixt_in(&folder, "plan fridge --rate 1Mpps --memory 100").expect(2);
}
