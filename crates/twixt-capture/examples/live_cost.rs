//! What reading an interface costs, bare and with a synopsis.
//!
//! Sends datagrams over a virtual cable and reads them at its other end, in a network namespace of
//! its own:
//!
//! ```text
//! cargo build --release -p twixt-capture --example live_cost
//! sudo unshare --net target/release/examples/live_cost
//! ```
//!
//! First one thread sends as much as the ring holds, then reads it: nothing is dropped, and the
//! time of a packet is that of sender, kernel and reader on one processor. Then one thread sends as
//! fast as it can while another reads. The bare reader does nothing but count.

#![allow(clippy::unwrap_used, reason = "a program that cannot go on should stop there")]

use std::net::UdpSocket;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use twixt_capture::{BatchEnd, Frame, LiveOptions, LiveSource, RingSize, Stop};
use twixt_model::{Batch, DigestHash, DigestProfile, Needs, Observation};
use twixt_synopsis::{ALGORITHMS, AnySynopsis};
use twixt_wire::{
    Digester, FrameBytes, HashKey, LinkType, Observer, ObserverOptions, PAYLOAD_BYTES_MAX,
};

/// Datagrams of a round: with their descriptions about two thirds of the ring.
const ROUND: u64 = 80_000;
const ROUNDS: usize = 7;
const PAYLOAD: [u8; 100] = [7; 100];
const FLOWS: u16 = 1000;
const FULL_SPEED: Duration = Duration::from_secs(3);

fn main() {
    lay_cable();
    let sender = Sender::new();
    let names = ["bare", "lda", "lds"];
    // The fastest of several rounds: others only ever make it slower. Sending is the same work
    // whoever reads.
    let rounds = names.map(|name| {
        let rounds = (0..ROUNDS).map(|_| round(&sender, &mut Reader::new(name)));
        rounds.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1))).expect("there are rounds")
    });
    let send_ns = rounds.iter().map(|round| round.0).fold(f64::INFINITY, f64::min);
    println!("sending, with all that the kernel does: {send_ns:.0} ns");
    println!("reader  read ns  packets/s  ratio  at full speed");
    for (name, (_, read_ns)) in names.into_iter().zip(rounds) {
        let (rate, dropped) = full_speed(&sender, &mut Reader::new(name));
        println!(
            "{name:<6} {read_ns:>8.1} {:>10.0} {:>6.2}  {rate:.0} packets/s, {dropped} dropped",
            1e9 / (send_ns + read_ns),
            (send_ns + rounds[0].1) / (send_ns + read_ns),
        );
    }
}

/// Two interfaces, and an address behind the far one to send to.
fn lay_cable() {
    for command in [
        "ip link add near type veth peer name far",
        "ip address add 10.0.0.1/24 dev near",
        "ip link set near up",
        "ip link set far up",
        "ip neighbour add 10.0.0.2 lladdr 02:00:00:00:00:02 dev near",
    ] {
        let mut words = command.split(' ');
        let status = Command::new(words.next().unwrap()).args(words).status().unwrap();
        assert!(status.success(), "{command}: run this as root, with unshare --net");
    }
    std::thread::sleep(Duration::from_millis(500));
}

struct Sender {
    socket: UdpSocket,
}

impl Sender {
    fn new() -> Self {
        Self { socket: UdpSocket::bind("10.0.0.1:5000").unwrap() }
    }

    fn send(&self, number: u64) {
        let port = 6000 + (number % u64::from(FLOWS)) as u16;
        // A full queue is no failure here: what was sent is known by what arrives.
        let _ = self.socket.send_to(&PAYLOAD, ("10.0.0.2", port));
    }
}

/// What is done with frames.
struct Reader {
    observer: Observer,
    synopsis: Option<Box<dyn AnySynopsis>>,
    waiting: Vec<Observation>,
    packets: u64,
}

impl Reader {
    const BATCH: usize = 256;

    fn new(name: &str) -> Self {
        let key = HashKey::from_seed(1);
        let algorithm = ALGORITHMS.iter().find(|algorithm| algorithm.name == name);
        let observer = Observer::new(ObserverOptions {
            needs: Needs { digest: true, flow: name == "lds", detail: false, group: false },
            outer: false,
            filter: None,
            classes: Vec::new(),
            digester: Digester::new(
                DigestProfile::Default,
                DigestHash::Xxh3,
                PAYLOAD_BYTES_MAX,
                key,
            ),
        });
        Self {
            observer: observer.unwrap(),
            synopsis: algorithm.map(|found| (found.start)(&Default::default()).unwrap()),
            waiting: Vec::with_capacity(Self::BATCH),
            packets: 0,
        }
    }

    #[inline]
    fn take(&mut self, frame: &Frame<'_>) {
        self.packets += 1;
        let Some(synopsis) = &mut self.synopsis else { return };
        let link = LinkType(frame.link_type);
        let bytes = FrameBytes::within(frame.memory, frame.bytes.len());
        let Ok(seen) = self.observer.observe(link, bytes, frame.wire_length, frame.time) else {
            return;
        };
        self.waiting.push(seen);
        if self.waiting.len() == Self::BATCH {
            synopsis.update_batch(Batch::of(&self.waiting));
            self.waiting.clear();
        }
    }
}

/// Nanoseconds per packet, of sending and of reading.
fn round(sender: &Sender, reader: &mut Reader) -> (f64, f64) {
    // Blocks are handed over when they are full; the last one is not, and not read.
    let ring = RingSize::default().with_longest_wait(RingSize::LONGEST_WAIT_MAX);
    let options = LiveOptions { wait: Duration::ZERO, ring, ..LiveOptions::default() };
    let mut source = LiveSource::open("far", &options).unwrap();
    let start = Instant::now();
    (0..ROUND).for_each(|number| sender.send(number));
    let sending = start.elapsed();
    let start = Instant::now();
    let mut reading = Duration::ZERO;
    loop {
        let before = reader.packets;
        source.read_batch(|frame| reader.take(&frame)).unwrap();
        if reader.packets == before {
            break;
        }
        reading = start.elapsed();
    }
    assert_eq!(source.counts().dropped, Some(0));
    let read_ns = reading.as_nanos() as f64 / reader.packets as f64;
    (sending.as_nanos() as f64 / ROUND as f64, read_ns)
}

/// Packets per second, and drops, while another thread sends as fast as it can.
fn full_speed(sender: &Sender, reader: &mut Reader) -> (f64, u64) {
    let stop = Stop::default();
    let options = LiveOptions { stop: stop.clone(), ..LiveOptions::default() };
    let mut source = LiveSource::open("far", &options).unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let start = Instant::now();
            let mut number = 0;
            while start.elapsed() < FULL_SPEED {
                (0..100).for_each(|_| {
                    sender.send(number);
                    number += 1;
                });
            }
            ended.store(true, Ordering::Relaxed);
        });
        while source.read_batch(|frame| reader.take(&frame)).unwrap() == BatchEnd::More {
            if ended.load(Ordering::Relaxed) {
                stop.set();
            }
        }
    });
    let rate = reader.packets as f64 / FULL_SPEED.as_secs_f64();
    (rate, source.counts().dropped.unwrap_or(0))
}
