//! Connections that say nothing, or half of something, and never end: agents are served meanwhile.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use twixt_testing::{resident_kib, wait_until};

use super::process::Process;
use super::sender::post;

/// Connections, unless the variable `TWIXT_IDLE_CONNECTIONS` says otherwise: 10000 is what a
/// collector must bear, and takes as many descriptors.
const CONNECTIONS: usize = 400;
/// What an idle connection may cost, in KiB: two buffers of a page and what TCP is known by, with
/// room. What connections share is not more than this either.
const CONNECTION_KIB: u64 = 24;
const SHARED_KIB: u64 = 32 << 10;

fn connections() -> usize {
    let asked = std::env::var("TWIXT_IDLE_CONNECTIONS").ok();
    asked.map_or(CONNECTIONS, |text| text.parse().unwrap())
}

/// A collector with limits.
fn start(folder: &std::path::Path, limits: &str) -> Process {
    let config = folder.join("collector.toml");
    std::fs::write(&config, format!("[limits]\n{limits}")).unwrap();
    let options = ["--metrics", "127.0.0.1:0", "--config", config.to_str().unwrap()];
    Process::start_with(folder, 0, &options)
}

/// Connects so often; every third one sends half a header.
fn crowd(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    let mut streams = Vec::with_capacity(count);
    for number in 0..count {
        let mut stream = TcpStream::connect(address).expect("there are descriptors enough");
        if number % 3 == 0 {
            let _ = stream.write_all(b"POST /v1/epochs HTTP/1.1\r\nhost: x\r\ncontent-le");
        }
        streams.push(stream);
    }
    streams
}

fn scrape(process: &Process) -> String {
    let mut stream = TcpStream::connect(process.metrics.unwrap()).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

/// A number among the collector's metrics; 0 if it is not there.
pub(crate) fn metric(process: &Process, name: &str) -> f64 {
    let page = scrape(process);
    let line = page.lines().find(|line| line.starts_with(&format!("twixt_collector_{name}")));
    line.map_or(0.0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

/// An empty body is malformed, and refused at once.
#[track_caller]
fn check_served(process: &Process) {
    let started = Instant::now();
    let answer = post(process.address, b"no epochs").unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    println!("an agent was answered in {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn idle_connections_cost_little_and_hold_up_nobody() {
    let count = connections();
    let folder = tempfile::tempdir().unwrap();
    let limits = format!(
        "connections_max = {0}\nconnections_per_address_max = {0}\nheader_time = \"5m\"\n",
        count + 10
    );
    let process = start(folder.path(), &limits);
    check_served(&process);
    let before_kib = resident_kib(process.id());
    let crowd = crowd(process.address, count);
    let open = || metric(&process, "connections_open");
    wait_until("all are let in, or as many as there are descriptors for", || {
        open() + metric(&process, "connections_refused_total") >= count as f64
    });
    let (held, grown_kib) = (open(), resident_kib(process.id()).saturating_sub(before_kib));
    println!("{held} of {count} connections are held, for {grown_kib} KiB");
    check_served(&process);
    assert!(held > 0.9 * count as f64, "{held}");
    assert!(grown_kib < SHARED_KIB + CONNECTION_KIB * count as u64, "{grown_kib} KiB");
    drop(crowd);
    wait_until("places are free again", || open() < 3.0);
}

#[test]
fn connections_too_many_are_told_so_counted_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let limits = "connections_max = 50\nconnections_per_address_max = 50\nheader_time = \"2s\"\n";
    let process = start(folder.path(), limits);
    let crowd = crowd(process.address, 200);
    let refused = || metric(&process, "connections_refused_total{reason=\"too-many\"}");
    wait_until("some are refused", || refused() >= 150.0);
    let mut told = 0;
    for mut stream in &crowd[50..] {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Ok(_) => assert!(answer.starts_with(b"HTTP/1.1 503 ") && answer.ends_with(b"\"}")),
            // What it had sent was never read.
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        told += usize::from(!answer.is_empty());
    }
    assert!(told >= 90, "two of three sent nothing before: {told}");
    // Idle connections make room for active ones.
    wait_until("the silent are gone", || {
        post(process.address, b"no epochs").is_ok_and(|answer| answer.starts_with("HTTP/1.1 400"))
    });
}
