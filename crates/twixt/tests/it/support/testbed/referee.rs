//! Captures by tcpdump, and an exact match of them that shares no code with what is tested.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};

use serde_json::Value;

use twixt_testing::run;

use super::super::number;
use super::load::{Datagrams, MARKER};
use super::{FILTER, Place, Testbed};

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// A running tcpdump.
pub(crate) struct Tcpdump {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Testbed {
    /// Starts tcpdump on an interface of R, for one direction, and waits until it captures.
    pub(crate) fn start_tcpdump(&self, interface: &str, direction: &str, file: &Path) -> Tcpdump {
        // 128 bytes hold all headers and the numbers in the datagrams.
        let line = format!(
            "-i {interface} -Q {direction} -s 128 -B 16384 -U --time-stamp-precision=nano -Z root -n"
        );
        let mut child = self
            .command(Place::R, "tcpdump")
            .args(line.split(' '))
            .arg("-w")
            .arg(file)
            .args(FILTER.split(' '))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("listening on") {
            assert!(stderr.read_line(&mut said).unwrap() > 0, "tcpdump: {said}");
        }
        Tcpdump { child, stderr }
    }
}

impl Tcpdump {
    /// Ends it, when its file has the last datagram. Returns how many packets it missed.
    pub(crate) fn end(mut self) -> u64 {
        run(&format!("kill -INT {}", self.child.id()));
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success(), "tcpdump: {said}");
        let dropped = said.lines().find(|line| line.ends_with("dropped by kernel"));
        let number = dropped.and_then(|line| line.split(' ').next()?.parse().ok());
        number.unwrap_or_else(|| panic!("tcpdump: {said}"))
    }
}

/// What became of packets between two points.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counted {
    pub(crate) packets: u64,
    pub(crate) lost: u64,
    pub(crate) mean_ns: f64,
}

/// How far a mean may be from the referee's: what users are promised. LDA and LDS leave out cells
/// that lost a packet, which makes them less exact than clocks are here.
const TOLERANCE: f64 = 0.02;

impl Counted {
    /// Puts the estimates of epochs together. An estimate speaks for every packet that arrived.
    #[track_caller]
    pub(crate) fn in_epochs<'a>(estimates: impl IntoIterator<Item = &'a Value>) -> Self {
        let (mut total, mut delays_ns, mut arrived) = (Self::default(), 0.0, 0);
        for row in estimates {
            let [packets, lost] = ["/packets", "/lost"].map(|key| number(row, key) as u64);
            total.packets += packets;
            total.lost += lost;
            if let Some(mean_ns) = row["mean_ns"].as_f64() {
                delays_ns += mean_ns * (packets - lost) as f64;
                arrived += packets - lost;
            }
        }
        let without_answer = total.packets - total.lost - arrived;
        assert!(without_answer * 50 <= total.packets, "no mean for {without_answer}: {total}");
        total.mean_ns = delays_ns / arrived.max(1) as f64;
        total
    }

    /// Checks that counts are equal, and the mean within [`TOLERANCE`].
    #[track_caller]
    pub(crate) fn check(self, what: &str, truth: Self) {
        let error = (self.mean_ns - truth.mean_ns) / truth.mean_ns;
        println!("{what}: {self}; referee: {truth}; off by {:.3} %", 100.0 * error);
        assert_eq!([self.packets, self.lost], [truth.packets, truth.lost], "{what}");
        assert!(error.abs() <= TOLERANCE, "{what}: {self} is not {truth}");
    }

    /// Checks counts of datagrams by the numbers in them.
    #[track_caller]
    pub(crate) fn check_datagrams(self, datagrams: Datagrams) {
        let lost = datagrams.sent - datagrams.received;
        assert_eq!([self.packets, self.lost], [datagrams.sent, lost]);
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { packets, lost, mean_ns } = self;
        write!(formatter, "{packets} packets, {lost} lost, mean {:.4} ms", mean_ns / 1e6)
    }
}

/// Finds every packet of a protocol again that the upstream capture has.
#[track_caller]
pub(crate) fn truth(upstream: &Path, downstream: &Path, protocol: u8) -> Counted {
    let mut later: HashMap<Vec<u8>, VecDeque<i64>> = HashMap::new();
    for packet in packets(downstream, protocol) {
        later.entry(packet.identity).or_default().push_back(packet.time_ns);
    }
    let (mut truth, mut delays_ns) = (Counted::default(), 0);
    for packet in packets(upstream, protocol) {
        truth.packets += 1;
        match later.get_mut(&packet.identity).and_then(VecDeque::pop_front) {
            Some(time_ns) => delays_ns += time_ns - packet.time_ns,
            None => truth.lost += 1,
        }
    }
    let unexplained: usize = later.values().map(VecDeque::len).sum();
    assert_eq!(unexplained, 0, "packets downstream that were not upstream");
    truth.mean_ns = delays_ns as f64 / (truth.packets - truth.lost).max(1) as f64;
    truth
}

/// When packets of a protocol that arrived passed upstream, and how long they took.
pub(crate) fn delays(upstream: &Path, downstream: &Path, protocol: u8) -> Vec<(i64, i64)> {
    let mut later: HashMap<Vec<u8>, VecDeque<i64>> = HashMap::new();
    for packet in packets(downstream, protocol) {
        later.entry(packet.identity).or_default().push_back(packet.time_ns);
    }
    let found = packets(upstream, protocol).into_iter().filter_map(|packet| {
        let time_ns = later.get_mut(&packet.identity)?.pop_front()?;
        Some((packet.time_ns, time_ns - packet.time_ns))
    });
    found.collect()
}

/// When packets of a protocol passed.
pub(crate) fn times_ns(capture: &Path, protocol: u8) -> Vec<i64> {
    packets(capture, protocol).into_iter().map(|packet| packet.time_ns).collect()
}

/// Whether a capture, which is still being written, has the last datagram.
pub(crate) fn has_marker(capture: &Path) -> bool {
    let bytes = std::fs::read(capture).unwrap();
    // It is in the last record, if it is there.
    let end = &bytes[bytes.len().saturating_sub(256)..];
    end.windows(MARKER.len()).any(|window| window == MARKER)
}

/// The longest frame of a capture.
pub(crate) fn longest_frame(capture: &Path) -> u32 {
    records(&std::fs::read(capture).unwrap()).map(|record| record.wire_bytes).max().unwrap_or(0)
}

struct Packet {
    time_ns: i64,
    /// All that was captured of it from the IP header on, without what a router changes and
    /// without checksums that adapters fill in.
    identity: Vec<u8>,
}

fn packets(capture: &Path, protocol: u8) -> Vec<Packet> {
    let bytes = std::fs::read(capture).unwrap();
    let mut packets = Vec::new();
    for Record { time_ns, frame, .. } in records(&bytes) {
        let mut identity = frame[14..].to_vec();
        if identity[9] != protocol {
            continue;
        }
        let header_bytes = usize::from(identity[0] & 15) * 4;
        let checksum_at = header_bytes + if protocol == TCP { 16 } else { 6 };
        identity[8] = 0; // time to live
        identity[10..12].fill(0); // checksum of the IP header
        identity[checksum_at..][..2].fill(0);
        packets.push(Packet { time_ns, identity });
    }
    packets
}

struct Record<'a> {
    time_ns: i64,
    wire_bytes: u32,
    frame: &'a [u8],
}

/// Records of a pcap file with nanoseconds: seconds, nanoseconds, captured and original length.
fn records(bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    assert_eq!(bytes[..4], 0xa1b2_3c4d_u32.to_ne_bytes(), "nanoseconds, of this machine");
    let mut rest = &bytes[24..];
    std::iter::from_fn(move || {
        let (header, after) = rest.split_at_checked(16)?;
        let word = |at: usize| u32::from_ne_bytes(header[4 * at..][..4].try_into().unwrap());
        let (frame, after) = after.split_at(word(2) as usize);
        rest = after;
        let time_ns = i64::from(word(0)) * 1_000_000_000 + i64::from(word(1));
        Some(Record { time_ns, wire_bytes: word(3), frame })
    })
}
