//! Programs of others read what we write, and we read what they send: tshark, nfdump, softflowd.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use twixt_testing::{require, wait_until};

use crate::support::{Capture, MILLISECOND, Packet, command, folder, number, twixt_in};

/// Twelve flows of different sizes, some IPv4 TCP, some UDP.
fn capture() -> Capture {
    let mut capture = Capture::default();
    for index in 0..600_u16 {
        let flow = index % 12;
        let source = format!("10.0.0.{}:{}", 1 + flow, 5_000 + flow);
        let packet = match flow % 2 {
            0 => Packet::udp(&source, "10.0.1.9:53", index),
            _ => Packet::tcp(&source, "10.0.1.9:443", index),
        };
        capture.add(i64::from(index) * 3 * MILLISECOND + i64::from(flow), packet.frame());
    }
    capture
}

/// Our records of a file, by flow: packets, bytes, first and last.
type Flows = BTreeMap<String, (i64, i64, i64, i64)>;

/// Records of a document, added up by flow.
fn flows(document: &Value) -> Flows {
    let mut flows = Flows::new();
    for record in document["records"].as_array().expect("a list") {
        let scope = record["scope"].as_str().expect("a flow").to_owned();
        let field = |name: &str| number(record, name);
        let flow = flows.entry(scope).or_insert((0, 0, i64::MAX, i64::MIN));
        flow.0 += field("/packets");
        flow.1 += field("/bytes");
        flow.2 = flow.2.min(field("/first_ns"));
        flow.3 = flow.3.max(field("/last_ns"));
    }
    flows
}

fn imported(folder: &Path, file: &str) -> Flows {
    flows(&twixt_in(folder, &format!("flow import {file} -F json")).expect(0).json())
}

#[test]
fn tshark_reads_what_we_write() {
    require!(program "tshark");
    let folder = folder();
    capture().write(folder.path().join("in.pcap"));
    twixt_in(folder.path(), "flow export -r in.pcap -w out.ipfix --sampling 0.999999 --point 7")
        .expect(0);
    let fields = [
        "cflow.srcaddr",
        "cflow.srcport",
        "cflow.packets",
        "cflow.octets",
        "cflow.abstimestart",
        "cflow.abstimeend",
        "cflow.digest_hash_value",
        "cflow.selector_id_total_pkts_observed",
        "cflow.hash_selected_range_max",
    ];
    let output = Command::new("tshark")
        .args(["-r", "out.ipfix", "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=;"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .current_dir(folder.path())
        .env("TZ", "UTC")
        .output()
        .expect("tshark starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let columns: Vec<Vec<String>> = text
        .lines()
        .next()
        .expect("one message")
        .split('\t')
        .map(|column| column.split(';').map(str::to_owned).collect())
        .collect();
    let ours = imported(folder.path(), "out.ipfix");
    for (index, source) in columns[0].iter().enumerate() {
        let scope = |name: &str, port: u16| {
            format!("{name} {source}:{} > 10.0.1.9:{port}", columns[1][index])
        };
        let (packets, bytes, first, last) =
            ours.get(&scope("udp", 53)).or(ours.get(&scope("tcp", 443))).expect("the flow is ours");
        assert_eq!(columns[2][index], packets.to_string());
        assert_eq!(columns[3][index], bytes.to_string());
        assert_eq!(tshark_time(&columns[4][index]), since_midnight(*first));
        assert_eq!(tshark_time(&columns[5][index]), since_midnight(*last));
    }
    assert_eq!((columns[0].len(), ours.len()), (12, 12));
    assert_eq!(columns[6].len(), 12, "labels: {:?}", columns[6]);
    assert_eq!(columns[7].last().map(String::as_str), Some("600"));
    // Announced before the first record, and again with the achieved rate.
    assert!(columns[8].len() == 2 && columns[8][0] == columns[8][1], "{:?}", columns[8]);
}

/// Nanoseconds since midnight of `Nov 14, 2023 22:13:20.123456789 UTC`.
fn tshark_time(text: &str) -> i64 {
    let clock = text.split_whitespace().find(|word| word.contains(':')).expect("a time");
    let parts: Vec<i64> =
        clock.split([':', '.']).map(|part| part.parse().expect("a number")).collect();
    let [hours, minutes, seconds, nanos] = parts[..] else { panic!("{text} is no time") };
    ((hours * 60 + minutes) * 60 + seconds) * 1_000 * MILLISECOND + nanos
}

fn since_midnight(time_ns: i64) -> i64 {
    time_ns % (86_400_000 * MILLISECOND)
}

/// A process of a test, ended with it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that is free now.
fn free_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("there are ports");
    socket.local_addr().expect("it is bound").port()
}

#[test]
fn nfcapd_reads_what_we_send() {
    require!(program "nfcapd");
    require!(program "nfdump");
    let folder = folder();
    capture().write(folder.path().join("in.pcap"));
    let flows_folder = folder.path().join("flows");
    std::fs::create_dir(&flows_folder).expect("a folder can be made");
    let port = free_port();
    let mut collector = Running(
        Command::new("nfcapd")
            .args(["-b", "127.0.0.1", "-p", &port.to_string(), "-t", "3600", "-l"])
            .arg(&flows_folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("nfcapd starts"),
    );
    // It says that it is ready; what comes before is lost. It must be able to say more later.
    let mut said = BufReader::new(collector.0.stderr.take().expect("it was asked for")).lines();
    let _ready = said.by_ref().map_while(Result::ok).find(|line| line.contains("Startup"));
    twixt_in(folder.path(), "flow export -r in.pcap -w ours.ipfix --time-unit milli").expect(0);
    let send = format!("flow export -r in.pcap --to 127.0.0.1:{port} --time-unit milli");
    twixt_in(folder.path(), &send).expect(0);
    wait_until("nfcapd has read all that was sent", || waiting_bytes(port) == 0);
    terminate(&collector.0);
    let _ = collector.0.wait();
    let output = Command::new("nfdump")
        .args(["-R", ".", "-q", "-N", "-o", "fmt:%pr,%sap,%dap,%pkt,%byt,%ts,%te"])
        .current_dir(&flows_folder)
        .env("TZ", "UTC")
        .output()
        .expect("nfdump starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let theirs: Flows = text.lines().filter_map(nfdump_flow).collect();
    let ours: Flows = imported(folder.path(), "ours.ipfix")
        .into_iter()
        .map(|(scope, (packets, bytes, first, last))| {
            (scope, (packets, bytes, since_midnight(first), since_midnight(last)))
        })
        .collect();
    assert_eq!(theirs, ours, "{text}");
}

/// What a UDP socket of this machine has received and its program has not read.
fn waiting_bytes(port: u16) -> u64 {
    let sockets = std::fs::read_to_string("/proc/net/udp").expect("the kernel tells");
    let port = format!(":{port:04X}");
    let fields = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let socket = fields.into_iter().find(|fields| fields[1].ends_with(&port));
    let (_, waiting) = socket.expect("somebody listens")[4].split_once(':').expect("two queues");
    u64::from_str_radix(waiting, 16).expect("hexadecimal")
}

/// A line of nfdump; times since midnight.
fn nfdump_flow(line: &str) -> Option<(String, (i64, i64, i64, i64))> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [protocol, source, destination, packets, bytes, first, last] = fields[..] else {
        return None;
    };
    let protocol = if protocol == "6" { "tcp" } else { "udp" };
    let scope = format!("{protocol} {source} > {destination}");
    let whole = |text: &str| text.parse::<i64>().expect("a number");
    let time = |text: &str| {
        let clock: Vec<i64> = text[11..].split([':', '.']).map(whole).collect();
        let [hours, minutes, seconds, millis] = clock[..] else { panic!("{text} is no time") };
        (((hours * 60 + minutes) * 60 + seconds) * 1_000 + millis) * MILLISECOND
    };
    Some((scope, (whole(packets), whole(bytes), time(first), time(last))))
}

/// Asks a process to end, so that it writes what it holds.
fn terminate(child: &Child) {
    let _ = Command::new("kill").arg(child.id().to_string()).status();
}

/// What softflowd makes of a capture of so many flows, as our collector reads it.
fn softflowd(capture: &Path, flows: usize, options: &[&str], filter: &[&str]) -> Value {
    let listen = format!("flow import --listen udp:127.0.0.1:0 -c {flows} --for 2m -F json");
    let mut collector = command()
        .args(listen.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut line = String::new();
    let mut said = BufReader::new(collector.stderr.take().expect("it was asked for"));
    said.read_line(&mut line).expect("it says where it listens");
    let address = line.split_whitespace().last().expect("an address");
    let _exporter = Running(
        Command::new("softflowd")
            .args(["-D", "-c", "none", "-n", address, "-r"])
            .arg(capture)
            .args(options)
            .args(filter)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("softflowd starts"),
    );
    let output = collector.wait_with_output().expect("the collector ends");
    serde_json::from_slice(&output.stdout).expect("the collector writes JSON")
}

/// Every way in which softflowd stamps flows gives our own records, within its resolution.
#[test]
fn we_read_what_softflowd_sends() {
    require!(program "softflowd");
    let traces = require!(shared "traces");
    // With its path it would be longer than softflowd takes.
    let folder = folder();
    let capture = folder.path().join("d.pcap");
    std::fs::copy(traces.join("tbf-queue/downstream.pcap"), &capture).expect("it can be copied");
    // One direction only: softflowd stamps both with the times of the conversation.
    let filter = ["src", "host", "10.201.1.1"];
    twixt_in(folder.path(), "flow export -r d.pcap -w ours.ipfix src host 10.201.1.1").expect(0);
    let ours = imported(folder.path(), "ours.ipfix");
    let cases: [(&[&str], i64); 6] = [
        (&["-v", "5"], MILLISECOND),
        (&["-v", "9"], 1_000 * MILLISECOND),
        (&["-v", "10"], 2 * MILLISECOND),
        (&["-v", "10", "-A", "milli"], MILLISECOND),
        (&["-v", "10", "-A", "micro"], MILLISECOND / 1_000),
        (&["-v", "9", "-A", "milli"], MILLISECOND),
    ];
    for (options, resolution_ns) in cases {
        let document = softflowd(&capture, ours.len(), options, &filter);
        let theirs = flows(&document);
        assert_eq!(theirs.keys().collect::<Vec<_>>(), ours.keys().collect::<Vec<_>>());
        for (scope, &(packets, bytes, first, last)) in &ours {
            let found = theirs[scope];
            assert_eq!((found.0, found.1), (packets, bytes), "{options:?} {scope}");
            for (found, expected) in [(found.2, first), (found.3, last)] {
                let apart_ns = (found - expected).abs();
                assert!(apart_ns <= resolution_ns, "{options:?} {scope}: {apart_ns} ns");
            }
        }
        let stated = document["records"][0]["resolution_ns"].as_i64().expect("a number");
        assert_eq!(stated, resolution_ns, "{options:?}");
        println!("{options:?}: {} flows agree within {resolution_ns} ns", ours.len());
    }
}

/// softflowd at both sides of a real queue: first and last packets are late by what they really
/// were, within the resolution of both.
#[test]
fn records_of_softflowd_at_both_sides_give_delays() {
    require!(program "softflowd");
    let traces = require!(shared "traces");
    let folder = folder();
    let both = ["upstream", "downstream"].map(|point| {
        let capture = folder.path().join(format!("{point}.pcap"));
        let trace = traces.join(format!("tbf-queue/{point}.pcap"));
        std::fs::copy(trace, &capture).expect("it can be copied");
        let export = format!("flow export -r {point}.pcap -w {point}.ipfix src host 10.201.1.1");
        twixt_in(folder.path(), &export).expect(0);
        let ours = imported(folder.path(), &format!("{point}.ipfix"));
        let options = ["-v", "10", "-A", "milli"];
        let theirs = softflowd(&capture, ours.len(), &options, &["src", "host", "10.201.1.1"]);
        (ours, flows(&theirs))
    });
    let [(ours_up, theirs_up), (ours_down, theirs_down)] = &both;
    for (scope, up) in ours_up {
        let delays =
            |up: &(i64, i64, i64, i64), down: &(i64, i64, i64, i64)| [down.2 - up.2, down.3 - up.3];
        let exact = delays(up, &ours_down[scope]);
        let coarse = delays(&theirs_up[scope], &theirs_down[scope]);
        for (exact_ns, coarse_ns) in exact.into_iter().zip(coarse) {
            assert!((exact_ns - coarse_ns).abs() <= MILLISECOND, "{scope}: {exact_ns} {coarse_ns}");
        }
        println!("{scope}: exact {exact:?} ns, by records {coarse:?} ns");
    }
    assert_eq!(ours_up.len(), 3);
}

/// Writes what softflowd makes of a capture to a file of IPFIX.
fn softflowd_file(capture: &Path, file: &Path) {
    let collector = UdpSocket::bind("127.0.0.1:0").expect("there are ports");
    collector.set_nonblocking(true).expect("it can be set");
    let address = collector.local_addr().expect("it is bound").to_string();
    let mut exporter = Running(
        Command::new("softflowd")
            .args(["-D", "-c", "none", "-v", "10", "-A", "milli", "-n", &address, "-r"])
            .arg(capture)
            .args(["src", "host", "10.201.1.1"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("softflowd starts"),
    );
    let (mut messages, mut datagram) = (Vec::new(), [0; 65_536]);
    let mut has_ended = false;
    wait_until("softflowd has ended, and all that it sent is read", || {
        while let Ok(length) = collector.recv(&mut datagram) {
            messages.extend_from_slice(&datagram[..length]);
        }
        std::mem::replace(&mut has_ended, exporter.0.try_wait().is_ok_and(|end| end.is_some()))
    });
    std::fs::write(file, messages).expect("it can be written");
}

/// Delays out of milliseconds and times alone agree with those out of nanoseconds and labels,
/// where records lost nothing; the others are left out.
#[test]
fn flow_pair_tells_delays_out_of_records_of_softflowd() {
    require!(program "softflowd");
    let traces = require!(shared "traces");
    let folder = folder();
    for point in ["upstream", "downstream"] {
        let capture = folder.path().join(format!("{point}.pcap"));
        let trace = traces.join(format!("tbf-queue/{point}.pcap"));
        std::fs::copy(trace, &capture).expect("it can be copied");
        softflowd_file(&capture, &folder.path().join(format!("{point}-ms.ipfix")));
        let export = format!("flow export -r {point}.pcap -w {point}.ipfix src host 10.201.1.1");
        twixt_in(folder.path(), &export).expect(0);
    }
    let pair = |up: &str, down: &str| {
        let pair = format!("flow pair {up}.ipfix {down}.ipfix --estimator endpoint -F json");
        twixt_in(folder.path(), &pair).expect(0).json()
    };
    let (exact, coarse) = (pair("upstream", "downstream"), pair("upstream-ms", "downstream-ms"));
    assert_eq!(
        (number(&exact, "/resolution_ns"), number(&coarse, "/resolution_ns")),
        (1, 1_000_000)
    );
    assert_eq!(exact["config"]["associate"], "label");
    assert_eq!(coarse["config"]["associate"], "timing");
    // Two of three flows lost packets: their times alone prove nothing.
    assert_eq!(number(&coarse, "/records/doubtful") + number(&coarse, "/records/unmatched"), 2);
    let mean = |document: &Value, scope: &str| {
        let estimates = document["estimates"].as_array().expect("a list");
        let found = estimates.iter().find(|estimate| estimate["scope"] == scope);
        found.and_then(|estimate| estimate["mean_ns"].as_i64())
    };
    let mut compared = 0;
    for estimate in coarse["estimates"].as_array().expect("a list") {
        let scope = estimate["scope"].as_str().expect("a flow");
        let Some(coarse_ns) = mean(&coarse, scope) else { continue };
        let exact_ns = mean(&exact, scope).expect("labels find more");
        assert!((exact_ns - coarse_ns).abs() <= MILLISECOND, "{scope}: {exact_ns} {coarse_ns}");
        println!("{scope}: {exact_ns} ns by labels, {coarse_ns} ns by milliseconds");
        compared += 1;
    }
    assert!(compared >= 1);
}

/// Five packets of a hundred, chosen by BOB at both sides: the mean of a real queue (19.98 ms) is
/// found. Its 38 delays deviate by 8.7 ms each and are correlated: 1.5 ms is one such error.
#[test]
fn flow_pair_finds_the_mean_of_a_real_queue() {
    let traces = require!(shared "traces");
    let folder = folder();
    for point in ["upstream", "downstream"] {
        let capture = traces.join(format!("tbf-queue/{point}.pcap"));
        let capture = capture.display();
        let export = format!(
            "flow export -r {capture} -w {point}.ipfix --toward 10.201.2.0/24 --select-hash bob \
             --sampling 0.05 --inactive-timeout 100ms"
        );
        twixt_in(folder.path(), &export).expect(0);
    }
    let found =
        twixt_in(folder.path(), "flow pair upstream.ipfix downstream.ipfix --by all -F json");
    let mean_ns = number(&found.expect(0).json(), "/estimates/0/mean_ns");
    assert!((mean_ns - 19_981_907).abs() < 1_500_000, "{mean_ns}");
}
