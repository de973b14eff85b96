//! Digests of real packets: different packets have different digests, and packets that are
//! identical to the last bit are not mistaken for each other.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use twixt_capture::CaptureFile;
use twixt_model::{DigestHash, DigestProfile, PacketDigest};
use twixt_testing::require;
use twixt_wire::{Digester, HashKey, LinkType, PAYLOAD_BYTES_MAX, ParseOptions, Record, parse};

/// Packets, and how many of them are repetitions of one before.
#[derive(Debug, Default, PartialEq)]
struct Repetition {
    packets: u64,
    repeated: u64,
}

/// Fails if two packets that differ in what a digest covers have the same digest.
fn check(path: &Path, profile: DigestProfile) -> Repetition {
    let key = HashKey::from_passphrase("collisions");
    let digester = Digester::new(profile, DigestHash::Xxh3, PAYLOAD_BYTES_MAX, key);
    let mut seen: HashMap<PacketDigest, Record> = HashMap::new();
    let mut repetition = Repetition::default();
    CaptureFile::open(path).unwrap().read_to_end(|frame| {
        let options = ParseOptions { outer: false, wire_length: Some(frame.wire_length) };
        let Ok(packet) = parse(LinkType(frame.link_type), frame.bytes, options) else { return };
        repetition.packets += 1;
        let record = digester.record(&packet, frame.bytes);
        if let Some(other) = seen.insert(digester.digest(&packet, frame.bytes), record) {
            assert_eq!(other, record, "two different packets have one digest");
            repetition.repeated += 1;
        }
    });
    repetition
}

/// 64 bits: among the 160 000 packets of the largest trace a collision has a chance of 1 in 10^9.
#[test]
fn different_packets_have_different_digests() {
    let traces = require!(shared "traces");
    for name in [
        "composite-a/composite-a.pcap.gz",
        "encap-skydive/iperf-same-L2L3.pcap",
        "tbf-queue/upstream.pcap",
        "mptcp-twoside/client_1_tcp_only.pcapng",
    ] {
        for profile in [DigestProfile::Default, DigestProfile::Nat] {
            let repetition = check(&traces.join(name), profile);
            println!("{name}, {profile}: {repetition:?}");
            assert!(repetition.packets > 0, "{name}");
        }
    }
    // Two real TCP streams of iperf, which sends the same buffer over and over: its packets
    // are distinguished by their headers, but for 28 resets that are identical to the last bit.
    let iperf = check(&traces.join("tbf-queue/upstream.pcap"), DigestProfile::Default);
    assert_eq!(iperf, Repetition { packets: 12_815, repeated: 28 });
}

/// A real mix of traffic, with retransmissions and repetitions to the last bit, through a
/// segment that delays everything by 5 ms and loses one packet in fifty: a packet matched with
/// another one would have another delay.
#[test]
fn identical_packets_are_not_mispaired() {
    let traces = require!(shared "traces");
    let folder = tempfile::tempdir().unwrap();
    let twixt = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_twixt")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let (arrivals, out) = (traces.join("composite-a/composite-a.pcap.gz"), folder.path());
    let shown = |path: PathBuf| path.display().to_string();
    let made = twixt(&[
        "simulate",
        "--out",
        &shown(out.to_owned()),
        "--arrivals",
        &shown(arrivals),
        "--delay",
        "constant:5ms",
        "--loss",
        "uniform:0.02",
        "-F",
        "json",
    ]);
    let made: serde_json::Value = serde_json::from_slice(&made).unwrap();
    let (up, down) = (shown(out.join("upstream.pcap")), shown(out.join("downstream.pcap")));
    // In truth packets went both ways, here they all go downstream: a filter says so.
    let found = twixt(&["delay", &up, &down, "--one-pass", "-F", "json", "ip", "or", "ip6"]);
    let found: serde_json::Value = serde_json::from_slice(&found).unwrap();
    let all = &found["estimates"][0];
    assert_eq!(all["packets"], made["packets"]);
    assert_eq!(all["lost"], made["lost"]);
    assert_eq!(all["min_ns"].as_i64(), Some(5_000_000));
    assert_eq!(all["max_ns"].as_i64(), Some(5_000_000));
}
