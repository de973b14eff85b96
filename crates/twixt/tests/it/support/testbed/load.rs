//! Traffic from A to B: TCP connections that send all they can, and datagrams that are numbered.
//!
//! Sender and receiver are separate processes, since a process is in one
//! namespace: this program, started again with [`ROLE`] set.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use twixt_testing::{pace, wait_until};

use super::referee::has_marker;
use super::{Place, Testbed};

/// The test through which this program is started again.
const TEST: &str = "support::testbed::load::traffic";
const ROLE: &str = "TWIXT_TEST_LOAD_ROLE";
const LENGTH_MS: &str = "TWIXT_TEST_LOAD_MS";
const CONNECTIONS: &str = "TWIXT_TEST_LOAD_CONNECTIONS";

const CONNECTION_ADDRESS: &str = "10.0.2.1:7000";
/// Flows of datagrams, each with a length of its own.
const FLOWS: u32 = 8;
const DATAGRAM_ADDRESS: &str = "10.0.2.1:7001";
/// Between two datagrams of a flow.
const PAUSE: Duration = Duration::from_millis(10);
/// Nothing is under way any more after such silence: a full queue is 40 ms long.
const SILENCE: Duration = Duration::from_millis(500);
/// The last datagram.
pub(super) const MARKER: &[u8] = b"that was all";

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// Datagrams, and connections that fill the queue until it drops.
    Heavy,
    /// Datagrams only; nothing is lost.
    Light,
}

impl Traffic {
    const fn connections(self) -> usize {
        match self {
            Self::Heavy => 3,
            Self::Light => 0,
        }
    }
}

/// How many numbered datagrams there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagrams {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// Traffic that is under way.
pub(crate) struct Load {
    sender: Child,
    receiver: Child,
}

impl Testbed {
    /// Starts traffic that lasts so long.
    pub(crate) fn start_load(&self, traffic: Traffic, length: Duration) -> Load {
        let start = |place, role| self.start_role(place, role, traffic, length);
        let mut receiver = start(Place::B, "receive");
        read_number(receiver.stdout.as_mut().unwrap(), "listening ");
        Load { sender: start(Place::A, "send"), receiver }
    }

    fn start_role(&self, place: Place, role: &str, traffic: Traffic, length: Duration) -> Child {
        self.command(place, std::env::current_exe().unwrap())
            .args(["--exact", TEST, "--ignored", "--nocapture"])
            .env(ROLE, role)
            .env(LENGTH_MS, length.as_millis().to_string())
            .env(CONNECTIONS, traffic.connections().to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

impl Testbed {
    /// Waits until all was sent, nothing is under way any more, and the captures of R in `folder`
    /// have all of it: a last datagram has passed. It is counted as well.
    pub(crate) fn finish_load(&self, load: Load, folder: &Path) -> Datagrams {
        let datagrams = load.finish();
        let marked = self.start_role(Place::A, "mark", Traffic::Light, Duration::ZERO);
        assert!(marked.wait_with_output().unwrap().status.success());
        for point in ["r-in", "r-out"] {
            let capture = folder.join(format!("{point}.pcap"));
            wait_until("the last datagram is captured", || has_marker(&capture));
        }
        Datagrams { sent: datagrams.sent + 1, received: datagrams.received + 1 }
    }
}

impl Load {
    /// Waits until all was sent and nothing is under way any more.
    fn finish(mut self) -> Datagrams {
        let sent = read_number(self.sender.stdout.as_mut().unwrap(), "sent ");
        let received = read_number(self.receiver.stdout.as_mut().unwrap(), "received ");
        for mut child in [self.sender, self.receiver] {
            child.wait().unwrap();
        }
        Datagrams { sent, received }
    }
}

/// Not a test: this program is started again through it, to send or to receive.
#[test]
#[ignore = "a role in tests of the testbed"]
fn traffic() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let number = |name| std::env::var(name).unwrap().parse::<u32>().unwrap();
    let length = Duration::from_millis(number(LENGTH_MS).into());
    let connections = number(CONNECTIONS) as usize;
    match role.as_str() {
        "send" => println!("sent {}", send(length, connections)),
        "mark" => {
            let socket = UdpSocket::bind("10.0.1.1:0").unwrap();
            assert_eq!(socket.send_to(MARKER, DATAGRAM_ADDRESS).unwrap(), MARKER.len());
        }
        _ => println!("received {}", receive(length, connections)),
    }
}

/// The number after a word that a line begins with.
fn read_number(said: &mut impl Read, word: &str) -> u64 {
    // One byte at a time: what follows is read by the next.
    let mut line = Vec::new();
    let mut byte = [0];
    while said.read(&mut byte).unwrap() == 1 {
        line.extend(byte);
        if byte == *b"\n" {
            let text = String::from_utf8_lossy(&line).into_owned();
            if let Some((_, number)) = text.split_once(word) {
                return number.trim().parse().unwrap();
            }
            line.clear();
        }
    }
    panic!("nobody said {word:?}");
}

fn send(length: Duration, connections: usize) -> u64 {
    let end = Instant::now() + length;
    let connections: Vec<_> =
        (0..connections).map(|_| thread::spawn(move || send_bytes(end))).collect();
    let sent = send_datagrams(end);
    connections.into_iter().for_each(|connection| connection.join().unwrap());
    sent
}

fn send_bytes(end: Instant) {
    let mut stream = TcpStream::connect(CONNECTION_ADDRESS).unwrap();
    let bytes: Vec<u8> = (0..1 << 16).map(|at: u32| (at / 3 + at / 1000) as u8).collect();
    while Instant::now() < end {
        stream.write_all(&bytes).unwrap();
    }
}

fn send_datagrams(end: Instant) -> u64 {
    let socket = || UdpSocket::bind("10.0.1.1:0").unwrap();
    let sockets: Vec<_> = (0..FLOWS).map(|_| socket()).collect();
    let mut sent = 0;
    for number in 0_u32.. {
        for (flow, socket) in (0..).zip(&sockets) {
            let mut bytes = [flow, number].map(u32::to_be_bytes).concat();
            bytes.resize(100 + 100 * flow as usize, 0);
            socket.send_to(&bytes, DATAGRAM_ADDRESS).unwrap();
            sent += 1;
        }
        if Instant::now() >= end {
            break;
        }
        pace(PAUSE);
    }
    sent
}

/// Counts datagrams until every connection has ended and nothing comes any more.
fn receive(length: Duration, connections: usize) -> usize {
    let listener = TcpListener::bind(CONNECTION_ADDRESS).unwrap();
    let datagrams = UdpSocket::bind(DATAGRAM_ADDRESS).unwrap();
    datagrams.set_read_timeout(Some(SILENCE)).unwrap();
    println!("listening 1");
    let ended = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&ended);
    thread::spawn(move || {
        for stream in listener.incoming().take(connections) {
            let counting = Arc::clone(&counting);
            thread::spawn(move || {
                std::io::copy(&mut stream.unwrap(), &mut std::io::sink()).unwrap();
                counting.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    let is_over = || ended.load(Ordering::Relaxed) == connections;
    let start = Instant::now();
    // If a sender dies, the receiver must not wait forever.
    let latest = start + length + Duration::from_secs(60);
    let (mut seen, mut bytes) = (HashSet::new(), [0; 2048]);
    while Instant::now() < latest {
        match datagrams.recv(&mut bytes) {
            Ok(_) => drop(seen.insert(<[u8; 8]>::try_from(&bytes[..8]).unwrap())),
            Err(_) if start.elapsed() > length && is_over() => break,
            Err(_) => {}
        }
    }
    seen.len()
}
