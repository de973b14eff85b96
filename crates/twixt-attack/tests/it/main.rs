//! The captures that are attacked with, read by programs that are not ours.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it stands")]

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use twixt_attack::{GridCell, write_cell};
use twixt_testing::require;

/// Both transports, all lengths, lost and repeated packets, and return traffic.
const CELL: [&str; 6] = ["100", "pareto", "default", "queue", "2%", "10%"];
/// 30 000 packets and the answers to them: one for ten packets of a flow, and for what is left.
const UPSTREAM: std::ops::Range<usize> = 33_000..33_100;

fn captures() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_cell(GridCell::named(CELL), 1, folder.path()).unwrap();
    folder
}

fn output(program: &Path, words: &[&str], file: &Path) -> String {
    let output = Command::new(program).args(words).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn capinfos_reads_a_whole_capture_in_order() {
    let capinfos = require!(program "capinfos");
    let folder = captures();
    for name in ["upstream.pcap", "downstream.pcap"] {
        let text = output(&capinfos, &["-T", "-r", "-t", "-o", "-c"], &folder.path().join(name));
        let fields: Vec<&str> = text.trim().split('\t').collect();
        assert!(text.contains("nsecpcap") && fields.last() == Some(&"True"), "{text}");
        let packets = fields.iter().find_map(|field| field.parse::<usize>().ok()).unwrap();
        // Two per cent of the 30 000 are lost; four standard deviations of their number are 97.
        let lost = UPSTREAM.start - packets.min(UPSTREAM.start);
        let expected = if name == "upstream.pcap" { 0..1 } else { 400..700 };
        assert!(expected.contains(&lost) && packets < UPSTREAM.end, "{name}: {packets}");
    }
}

#[test]
fn tshark_finds_every_checksum_right() {
    let tshark = require!(program "tshark");
    let checks = ["ip", "tcp", "udp"].map(|layer| format!("{layer}.check_checksum:TRUE"));
    let mut words: Vec<&str> = checks.iter().flat_map(|check| ["-o", check.as_str()]).collect();
    words.extend(["-T", "fields", "-e", "ip.checksum.status", "-e", "tcp.checksum.status"]);
    words.extend(["-e", "udp.checksum.status", "-r"]);
    let folder = captures();
    let text = output(&tshark, &words, &folder.path().join("downstream.pcap"));
    // 1 is good; a packet has one of the two transports.
    let right = |line: &&str| ["1\t1\t", "1\t\t1"].contains(line);
    let transports =
        ["1\t1\t", "1\t\t1"].map(|good| text.lines().filter(|&line| line == good).count());
    assert!(transports.iter().all(|&count| count > 1_000), "{transports:?}");
    assert_eq!(text.lines().find(|line| !right(line)), None);
}

#[test]
fn tcpdump_agrees_on_addresses_hops_and_checksums() {
    let tcpdump = require!(program "tcpdump");
    let folder = captures();
    let text = output(&tcpdump, &["-nn", "-vv", "-r"], &folder.path().join("downstream.pcap"));
    let count = |part: &str| text.matches(part).count();
    // Forward packets crossed the router; those that return have yet to.
    assert!(count("ttl 63") > 28_000 && (3_000..3_100).contains(&count("ttl 64")));
    // Some ports make it look for protocols that are not there, which it reports as bad too.
    assert_eq!((count("bad cksum"), count("bad udp cksum"), count("incorrect")), (0, 0, 0));
    assert_eq!(count("ttl "), count("udp sum ok") + count("(correct)"));
}
