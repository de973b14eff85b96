//! What the packet path of the agent costs, beside a reader that only counts.
//!
//! Sends datagrams over a virtual cable and reads them at its other end, in a network namespace of
//! its own:
//!
//! ```text
//! cargo build --release -p twixt-agent --example agent_cost
//! sudo unshare --net target/release/examples/agent_cost
//! ```
//!
//! First one thread sends as much as the ring holds, then reads it: nothing is dropped, and the time
//! is the reader's alone. Then one thread sends as fast as it can while another reads; there the
//! sender is the slower one, so the reader's processor time is reported as well. Last, without
//! an interface: how long frames wait for a block in which an epoch is sealed, beside other blocks.

#![allow(clippy::unwrap_used, reason = "a program that cannot go on should stop there")]

use std::net::UdpSocket;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use twixt_capture::{BatchEnd, Frame, LiveOptions, LiveSource, RingSize, Stop};
use twixt_model::{DigestHash, DigestProfile, EpochRule, PointId, TimeSource, Timestamp};
use twixt_observe::{Meters, MetersConfig, PacketPath};
use twixt_synopsis::{Purpose, find};
use twixt_wire::{Digester, HashKey, Observer, ObserverOptions, PAYLOAD_BYTES_MAX};

/// Datagrams of a round: with their descriptions about two thirds of the ring.
const ROUND: u64 = 80_000;
const ROUNDS: usize = 5;
const PAYLOAD: [u8; 100] = [7; 100];
const FLOWS: u16 = 1000;
const FULL_SPEED: Duration = Duration::from_secs(1);
const EPOCH_NS: i64 = 1_000_000_000;
/// A block of the ring, as long as the kernel fills one under load.
const BLOCK: i64 = 1000;
const EPOCH_BLOCKS: i64 = 500;
const SEALED_EPOCHS: i64 = 20;

fn main() {
    lay_cable();
    let sender = UdpSocket::bind("10.0.0.1:5000").unwrap();
    let names = ["bare", "lda", "lds", "colate"];
    // In turns, so that all meet the same disturbance; the median of all blocks, since what disturbs
    // hits some of them only.
    let mut blocks: [Vec<f64>; 4] = Default::default();
    let mut send_ns = f64::INFINITY;
    for _ in 0..ROUNDS {
        for (blocks, name) in blocks.iter_mut().zip(names) {
            send_ns = send_ns.min(round(&sender, &mut Reader::new(name), blocks));
        }
    }
    let read_ns = blocks.map(median);
    println!("sending, with all that the kernel does: {send_ns:.0} ns a packet");
    println!("reader   read ns  alone  packets/s with the sender  ratio");
    for (name, own_ns) in names.into_iter().zip(read_ns) {
        let alone = read_ns[0] / own_ns;
        let rate = 1e9 / (send_ns + own_ns);
        let ratio = (send_ns + read_ns[0]) / (send_ns + own_ns);
        println!("{name:<7} {own_ns:>8.1} {alone:>6.2} {rate:>26.0} {ratio:>6.2}");
    }
    println!("at full speed, two threads:");
    println!("reader   packets/s  ratio  dropped  reader's processor ns a packet");
    let mut rates: [Vec<f64>; 4] = Default::default();
    let mut spent: [Vec<f64>; 4] = Default::default();
    let mut drops = [0; 4];
    for (turn, name) in (0..ROUNDS).flat_map(|_| names.into_iter().enumerate()) {
        let (rate, dropped, processor_ns) = full_speed(&sender, &mut Reader::new(name));
        rates[turn].push(rate);
        spent[turn].push(processor_ns);
        drops[turn] += dropped;
    }
    let [rates, spent] = [rates, spent].map(|values| values.map(median));
    for (turn, name) in names.into_iter().enumerate() {
        let (rate, ratio) = (rates[turn], rates[turn] / rates[0]);
        let (dropped, own_ns) = (drops[turn], spent[turn]);
        println!("{name:<7} {rate:>10.0} {ratio:>6.2} {dropped:>8} {own_ns:>15.1}");
    }
    println!("{BLOCK} frames a block, {SEALED_EPOCHS} epochs of {EPOCH_BLOCKS} blocks:");
    println!("reader   block us: median  longest  with a seal: median  longest");
    for name in &names[1..] {
        let [usual, sealing] = stalls(&mut Reader::new(name));
        let [(usual, longest), (sealing, stall)] = [usual, sealing].map(middle_and_longest);
        println!("{name:<7} {usual:>17.0} {longest:>8.0} {sealing:>20.0} {stall:>8.0}");
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

fn send(socket: &UdpSocket, number: u64) {
    let port = 6000 + (number % u64::from(FLOWS)) as u16;
    // A full queue is not a failure here: what was sent is known by what arrives.
    let _ = socket.send_to(&PAYLOAD, ("10.0.0.2", port));
}

/// What is done with frames.
struct Reader {
    path: Option<PacketPath<Meters>>,
    packets: u64,
    sealed: u64,
}

impl Reader {
    fn new(name: &str) -> Self {
        let path = find(Purpose::Delay, name).map(|algorithm| {
            let prototype = (algorithm.start)(&Default::default()).unwrap();
            let key = HashKey::from_seed(1);
            let digester =
                Digester::new(DigestProfile::Default, DigestHash::Xxh3, PAYLOAD_BYTES_MAX, key);
            let point = PointId("far".to_owned());
            let rule = EpochRule::every(EPOCH_NS).unwrap();
            let config = MetersConfig {
                time_source: TimeSource::Kernel,
                ..MetersConfig::new(point, rule, digester.identity())
            };
            let options = ObserverOptions {
                needs: prototype.needs(),
                outer: false,
                filter: None,
                classes: Vec::new(),
                digester,
            };
            let meters = Meters::new(&config, &[prototype.as_ref()]).unwrap();
            PacketPath::new(Observer::new(options).unwrap(), meters)
        });
        Self { path, packets: 0, sealed: 0 }
    }

    #[inline]
    fn take(&mut self, frame: &Frame<'_>) {
        self.packets += 1;
        if let Some(path) = &mut self.path {
            path.take(frame);
        }
    }

    /// As the agent does after each batch, without what follows sealing.
    fn end_batch(&mut self, source: &LiveSource) {
        if let Some(path) = &mut self.path {
            path.report_counts(source.counts(), None);
            self.sealed += std::iter::from_fn(|| path.sink_mut().poll_unsettled()).count() as u64;
        }
    }
}

/// Nanoseconds per packet of sending; those of reading, block by block, go to `blocks`.
fn round(sender: &UdpSocket, reader: &mut Reader, blocks: &mut Vec<f64>) -> f64 {
    // Blocks are handed over when they are full; the last one is not, and not read.
    let ring = RingSize::default().with_longest_wait(RingSize::LONGEST_WAIT_MAX);
    let options = LiveOptions { wait: Duration::ZERO, ring, ..LiveOptions::default() };
    let mut source = LiveSource::open("far", &options).unwrap();
    let start = Instant::now();
    (0..ROUND).for_each(|number| send(sender, number));
    let sending = start.elapsed();
    loop {
        let (before, start) = (reader.packets, Instant::now());
        source.read_batch(|frame| reader.take(&frame)).unwrap();
        reader.end_batch(&source);
        let packets = reader.packets - before;
        if packets == 0 {
            break;
        }
        blocks.push(start.elapsed().as_nanos() as f64 / packets as f64);
    }
    assert_eq!(source.counts().dropped, Some(0));
    sending.as_nanos() as f64 / ROUND as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Microseconds that blocks take, without and with a seal in them: 500 000 packets a second in the
/// time of the frames, so that guards and stashes are as full as under load.
fn stalls(reader: &mut Reader) -> [Vec<f64>; 2] {
    let mut times = [Vec::new(), Vec::new()];
    let mut bytes = datagram();
    let path = reader.path.as_mut().unwrap();
    for block in 0..SEALED_EPOCHS * EPOCH_BLOCKS {
        let start = Instant::now();
        let mut last = Timestamp::MIN;
        for index in 0..BLOCK {
            let number = block * BLOCK + index;
            last = Timestamp::from_nanos(number * (EPOCH_NS / (EPOCH_BLOCKS * BLOCK)));
            bytes[34..36].copy_from_slice(&(number as u16 % FLOWS).to_be_bytes());
            bytes[42..50].copy_from_slice(&number.to_be_bytes());
            path.take(&frame_of(&bytes, last));
        }
        path.sink_mut().advance(last);
        let sealed = std::iter::from_fn(|| path.sink_mut().poll_unsettled()).collect::<Vec<_>>();
        times[usize::from(!sealed.is_empty())].push(start.elapsed().as_nanos() as f64 / 1e3);
    }
    times
}

/// An Ethernet frame with a UDP datagram in it.
fn datagram() -> Vec<u8> {
    let mut bytes = vec![0; 42 + PAYLOAD.len()];
    bytes[12..14].copy_from_slice(&[8, 0]);
    bytes[14] = 0x45;
    bytes[16..18].copy_from_slice(&(28 + PAYLOAD.len() as u16).to_be_bytes());
    bytes[22..24].copy_from_slice(&[64, 17]);
    bytes[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    bytes[38..40].copy_from_slice(&(8 + PAYLOAD.len() as u16).to_be_bytes());
    bytes
}

fn frame_of(bytes: &[u8], time: Timestamp) -> Frame<'_> {
    Frame {
        time,
        bytes,
        memory: bytes,
        wire_length: bytes.len() as u32,
        link_type: 1,
        interface: 0,
        direction: None,
        time_source: TimeSource::Kernel,
    }
}

fn middle_and_longest(values: Vec<f64>) -> (f64, f64) {
    let longest = values.iter().copied().fold(0.0, f64::max);
    (median(values), longest)
}

/// Packets per second, drops, and the reader's time per packet, while another thread sends as fast
/// as it can.
fn full_speed(sender: &UdpSocket, reader: &mut Reader) -> (f64, u64, f64) {
    let stop = Stop::default();
    let options = LiveOptions { stop: stop.clone(), ..LiveOptions::default() };
    let mut source = LiveSource::open("far", &options).unwrap();
    let ended = AtomicBool::new(false);
    let before_ns = processor_ns();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let start = Instant::now();
            let mut number = 0;
            while start.elapsed() < FULL_SPEED {
                (0..100).for_each(|_| {
                    send(sender, number);
                    number += 1;
                });
            }
            ended.store(true, Ordering::Relaxed);
        });
        while source.read_batch(|frame| reader.take(&frame)).unwrap() == BatchEnd::More {
            reader.end_batch(&source);
            if ended.load(Ordering::Relaxed) {
                stop.set();
            }
        }
    });
    let spent_ns = processor_ns() - before_ns;
    let rate = reader.packets as f64 / FULL_SPEED.as_secs_f64();
    let dropped = source.counts().dropped.unwrap_or(0);
    (rate, dropped, spent_ns as f64 / reader.packets.max(1) as f64)
}

/// Time that this thread has spent on a processor.
fn processor_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}
