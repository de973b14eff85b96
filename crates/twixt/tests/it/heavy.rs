//! `twixt heavy`: the largest flows of a capture.

use serde_json::Value;
use twixt_testing::require;

use crate::support::{Capture, Packet, Run, folder, twixt, twixt_fed, twixt_in};

/// Flow `n` of `flows` sends `n` packets from port `n`, in turns; one more frame is not IP.
fn capture(flows: u16) -> Capture {
    let mut capture = Capture::default();
    for round in 0..flows {
        for flow in round + 1..=flows {
            let packet = Packet::udp(&format!("10.0.0.1:{flow}"), "10.0.1.9:53", round);
            capture.add(i64::from(round) * 1_000_000 + i64::from(flow), packet.frame());
        }
    }
    capture.add(0, vec![0; 60]);
    capture
}

fn heavy(flows: u16, options: &str) -> Run {
    let folder = folder();
    capture(flows).write(folder.path().join("a.pcap"));
    twixt_in(folder.path(), &format!("heavy -r a.pcap {options}"))
}

fn flows(document: &Value) -> Vec<(String, u64, u64)> {
    let rows = document["flows"].as_array().expect("there are flows").iter();
    let number = |flow: &Value, key: &str| flow[key].as_u64().expect("it is a number");
    let scope = |flow: &Value| flow["scope"].as_str().expect("a name").to_owned();
    rows.map(|flow| (scope(flow), number(flow, "packets"), number(flow, "bytes"))).collect()
}

/// Every algorithm counts exactly while there is room, and says how much memory it takes.
#[track_caller]
fn check_exact(options: &str) {
    let document = heavy(8, &format!("-F json {options}")).expect(0).json();
    let keys = ["algorithm", "entries", "synopsis_bytes", "flows"];
    assert!(keys.iter().all(|key| document.get(key).is_some()), "{document}");
    let found = flows(&document);
    assert_eq!(found.len(), 8);
    for (index, (scope, packets, bytes)) in found.into_iter().enumerate() {
        let size = 8 - index as u64;
        let expected = (format!("udp 10.0.0.1:{size} > 10.0.1.9:53"), size, size * 92);
        assert_eq!((scope, packets, bytes), expected, "{options}");
    }
    assert_eq!((&document["packets"], &document["bytes"]), (&36.into(), &(36 * 92).into()));
    assert!(document["synopsis_bytes"].as_u64() >= Some(8 * 72));
}

#[test]
fn flows_are_counted_exactly_where_there_is_room() {
    check_exact("");
    check_exact("-a exact");
    check_exact("-a rap --entries 8");
    check_exact("-a space-saving --entries 8");
    check_exact("-a rap-way --entries 64 --ways 8");
    check_exact("-a hashpipe");
    check_exact("-a precision --ways 4");
    check_exact("--memory 4KiB");
}

#[test]
fn large_flows_keep_their_counters_where_there_is_none() {
    for algorithm in ["space-saving", "rap", "rap-way --ways 4", "hashpipe", "precision"] {
        let document = heavy(60, &format!("-F json --entries 40 -a {algorithm}")).expect(0).json();
        let sizes: Vec<u64> = flows(&document).iter().map(|flow| flow.1).collect();
        assert!(sizes.len() <= 40 && sizes.is_sorted_by(|one, other| one >= other));
        for row in document["flows"].as_array().unwrap() {
            let port = row["scope"].as_str().unwrap().split([':', ' ']).nth(2).unwrap();
            let truth: u64 = port.parse().unwrap();
            assert!(row["packets_at_least"].as_u64().unwrap() <= truth, "{algorithm}: {row}");
            assert!(row["packets_at_most"].as_u64().is_none_or(|most| most >= truth), "{row}");
        }
    }
}

#[test]
fn flows_may_be_ordered_by_bytes_and_cut() {
    let mut capture = capture(5);
    let large = Packet::udp("10.9.9.9:9", "10.0.1.9:53", 1).payload(&[0; 1200]);
    capture.add(7, large.frame());
    let folder = folder();
    capture.write(folder.path().join("a.pcap"));
    let run = |options: &str| {
        twixt_in(folder.path(), &format!("heavy -r a.pcap -F jsonl --top 1 {options}")).expect(0)
    };
    assert_eq!(run("--by bytes").json_lines()[0]["scope"], "udp 10.9.9.9:9 > 10.0.1.9:53");
    assert_eq!(run("").json_lines()[0]["scope"], "udp 10.0.0.1:5 > 10.0.1.9:53");
    assert_eq!(run("--by packets").json_lines().len(), 1);
    assert_eq!(run("-c 3").json_lines()[0]["packets"], 1);
    assert_eq!(run("src port 3").json_lines()[0]["packets"], 3);
    assert_eq!(run("--toward 10.0.1.0/24").json_lines()[0]["packets"], 5);
}

#[test]
fn people_and_spreadsheets_get_tables() {
    let report = heavy(50, "").expect(0).silent().stdout;
    assert!(report.contains("(rap, 1 024 counters"), "{report}");
    assert!(report.contains("… and 20 more"), "{report}");
    assert!(report.contains("1 skipped:"), "{report}");
    let table = heavy(3, "-F csv").expect(0).stdout;
    assert!(table.starts_with("scope,packets,bytes,packets_at_least,packets_at_most,source,"));
    assert_eq!(table.lines().count(), 4);
}

#[test]
fn standard_input_is_a_capture_too() {
    let folder = folder();
    let run = twixt_fed(folder.path(), "heavy -r - -F json", &capture(4).bytes());
    assert_eq!(run.expect(0).json()["flows"].as_array().map(Vec::len), Some(4));
}

#[test]
fn bad_input_is_named() {
    let folder = folder();
    let mut torn = capture(4).bytes();
    torn.truncate(torn.len() - 10);
    std::fs::write(folder.path().join("torn.pcap"), torn).unwrap();
    std::fs::write(folder.path().join("text"), "no capture").unwrap();
    Capture::default().write(folder.path().join("empty.pcap"));
    let check = |arguments: &str, code: i32, said: &str| {
        twixt_in(folder.path(), &format!("heavy {arguments}")).expect(code).says(&[said]);
    };
    check("-r missing.pcap", 1, "no such file");
    check("-r text", 1, "not a pcap");
    check("-r empty.pcap", 4, "no packets");
    check("-r torn.pcap tcp", 4, "no packets");
    check("-r torn.pcap", 3, "torn.pcap");
    check("-r torn.pcap -a lda", 2, "unknown algorithm \"lda\"");
    check("-r torn.pcap -a rap --ways 4", 2, "rap has no option --ways");
    check("-r torn.pcap --entries 0", 2, "entries must be");
    check("-r torn.pcap -a exact --memory 1MiB", 2, "grows with traffic");
    check("-r torn.pcap --memory 10B", 2, "too few");
    check("-r torn.pcap --class a=udp", 2, "has no classes");
    check("-r torn.pcap port", 2, "filter");
}

/// Run by hand, `cargo nextest run -p twixt --run-ignored only large_flows_of_a_real`: prints the
/// table of the documentation.
#[test]
#[ignore = "prints a table for the documentation"]
fn large_flows_of_a_real_capture() {
    let capture = require!(shared "traces/composite-a/composite-a.pcap.gz");
    let run = |options: String| {
        let words = format!("heavy -F json -r {} {options}", capture.display());
        twixt(words.split_whitespace()).expect(0).json()
    };
    let truth = run("-a exact".to_owned());
    let truth = flows(&truth);
    println!("{} flows", truth.len());
    println!("| algorithm | memory | entries | of the largest 20 | of the largest 100 | error |");
    for algorithm in ["space-saving", "rap", "rap-way", "hashpipe", "precision"] {
        for memory in ["8KiB", "16KiB", "64KiB"] {
            let document = run(format!("-a {algorithm} --memory {memory}"));
            let found: std::collections::BTreeMap<String, u64> =
                flows(&document).into_iter().map(|flow| (flow.0, flow.1)).collect();
            let present = |most: usize| {
                truth[..most].iter().filter(|flow| found.contains_key(&flow.0)).count()
            };
            let errors: Vec<f64> = truth[..100]
                .iter()
                .filter_map(|flow| Some((*found.get(&flow.0)? as f64 / flow.1 as f64 - 1.0).abs()))
                .collect();
            let error = 100.0 * errors.iter().sum::<f64>() / errors.len() as f64;
            let (entries, twenty, hundred) = (&document["entries"], present(20), present(100));
            println!(
                "| {algorithm} | {memory} | {entries} | {twenty} | {hundred} | {error:.1} % |"
            );
            assert!(memory != "64KiB" || twenty == 20, "{algorithm}: {twenty} of 20");
        }
    }
}
