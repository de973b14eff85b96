//! No client takes more than its share.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use twixt_delivery::UPLOAD_PATH;
use twixt_measure::Sealed;
use twixt_synopsis::{Purpose, find};

use crate::epochs::{Agent, EPOCH_NS, body, epoch_now};
use crate::running::{Running, client, config, send};

#[test]
fn bodies_that_are_too_large_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.limits.body_bytes_max = 10_000;
    let collector = Running::start(config);
    let large = vec![0; 10_001];
    let check = |headers: &[(&str, &str)], body: &[u8]| {
        assert_eq!(send(&client(), &collector.url(), headers, body).status, 413);
    };
    check(&[], &large);
    let bomb = zstd::encode_all(&*vec![0; 1 << 28], 3).unwrap();
    check(&[("content-encoding", "zstd")], &bomb[..bomb.len().min(10_000)]);
    // Without an announced length.
    let mut stream = TcpStream::connect(collector.addresses.listen).unwrap();
    write!(stream, "POST {UPLOAD_PATH} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        .unwrap();
    write!(stream, "2711\r\n").unwrap();
    stream.write_all(&large).unwrap();
    write!(stream, "\r\n0\r\n\r\n").unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
}

#[test]
fn one_request_has_epochs_of_few_days() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start(config(folder.path()));
    let day = 24 * 3_600 * 1_000_000_000 / EPOCH_NS;
    let epochs: Vec<_> =
        (0..65).flat_map(|days| Agent::at("up").seal(epoch_now() - days * day, 1)).collect();
    assert_eq!(collector.send(&body(&epochs)).status, 413);
    assert_eq!(collector.send(&body(&epochs[..64])).counts(), (64, 0));
}

#[test]
fn who_sends_too_much_waits_and_others_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    (config.limits.epochs_per_second, config.limits.epochs_burst) = (1, 3);
    let collector = Running::start(config);
    let epochs = Agent::at("up").seal(epoch_now() - 20, 12);
    assert_eq!(collector.send(&body(&epochs)).counts(), (12, 0));
    let answer = collector.send(&body(&epochs[..1]));
    assert_eq!(answer.status, 429);
    assert!(answer.retry_seconds.is_some_and(|seconds| (8..=9).contains(&seconds)), "{answer:?}");
    assert!(collector.metrics().contains("requests_total{code=\"429\"} 1\n"));
}

/// Waits until the other end closes, and returns what it sent.
fn closed(stream: &mut TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("still open"),
        _ => said,
    }
}

#[test]
fn who_is_slow_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.limits.header_time = Duration::from_millis(300);
    config.limits.body_time = Duration::from_millis(300);
    let collector = Running::start(config);
    let connect = || TcpStream::connect(collector.addresses.listen).unwrap();
    let started = Instant::now();
    let mut silent = connect();
    let mut header = connect();
    write!(header, "POST {UPLOAD_PATH} HT").unwrap();
    let mut late = connect();
    write!(late, "POST {UPLOAD_PATH} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nTWXE")
        .unwrap();
    assert!(closed(&mut late).starts_with(b"HTTP/1.1 408"));
    assert_eq!((closed(&mut silent), closed(&mut header)), (vec![], vec![]));
    assert!(started.elapsed() < Duration::from_secs(10));
    // Meanwhile others are served.
    let answer = collector.send(&body(&Agent::at("up").seal(epoch_now(), 1)));
    assert_eq!(answer.counts(), (1, 0));
}

#[test]
fn connections_are_limited() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.limits.connections_per_address_max = 2;
    config.limits.header_time = Duration::from_millis(500);
    let collector = Running::start(config);
    let connect = || TcpStream::connect(collector.addresses.listen).unwrap();
    let (mut one, mut two) = (connect(), connect());
    assert!(closed(&mut connect()).starts_with(b"HTTP/1.1 503"));
    assert!(collector.metrics().contains("{reason=\"too-many-of-one-address\"} 1\n"));
    closed(&mut one);
    closed(&mut two);
    let answer = collector.send(&body(&Agent::at("up").seal(epoch_now(), 1)));
    assert_eq!(answer.counts(), (1, 0));
}

/// Counters without packets take a bit each on their way, and 19 bytes each when they are there:
/// a few small bodies took gigabytes.
#[test]
fn blank_cells_take_no_more_memory_than_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.limits.memory_bytes_max = 64 << 20;
    let collector = Running::start(config);
    let blank = |counters: i64, epochs: i64| {
        let settings = toml::toml! { counters = counters };
        let synopsis = (find(Purpose::Delay, "colate").unwrap().start)(&settings).unwrap();
        let epochs = Agent::at("up").seal(epoch_now() - 100, epochs).into_iter();
        let blank = epochs.map(|sealed| Sealed { synopsis: synopsis.duplicate(), ..sealed });
        zstd::encode_all(&*body(&blank.collect::<Vec<_>>()), 3).unwrap()
    };
    let send = |packed: &[u8]| {
        let encoding = [("content-encoding", "zstd")];
        send(&client(), &collector.url(), &encoding, packed)
    };
    let fitting = blank(250_000, 1);
    assert!(fitting.len() < 10_000, "{} bytes are few", fitting.len());
    assert_eq!(send(&fitting).counts(), (1, 0));
    let many = send(&blank(250_000, 8));
    assert_eq!(many.status, 413, "{many:?}");
    assert!(many.text.contains("send fewer at a time"), "{many:?}");
    let large = send(&blank(2_000_000, 1));
    assert!(large.reasons()[0].contains("raise memory_max"), "{large:?}");
    assert_eq!(send(&fitting).counts(), (0, 1), "all memory was given back");
    assert!(collector.metrics().contains("twixt_collector_memory_max_bytes 67108864\n"));
}
