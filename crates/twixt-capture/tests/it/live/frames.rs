//! Frames to send, and what was captured of them.

use std::time::Instant;

use twixt_capture::{BatchEnd, Frame, FrameDirection, LiveOptions, LiveSource, Stop};
use twixt_model::{TimeSource, Timestamp};
use twixt_testing::DEADLINE;

use crate::live::sender::Offload;

/// A frame as it was captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) bytes: Vec<u8>,
    pub(crate) wire_length: u32,
    pub(crate) time: Timestamp,
    pub(crate) time_source: TimeSource,
    pub(crate) direction: Option<FrameDirection>,
}

impl From<Frame<'_>> for Seen {
    fn from(frame: Frame<'_>) -> Self {
        Self {
            bytes: frame.bytes.to_vec(),
            wire_length: frame.wire_length,
            time: frame.time,
            time_source: frame.time_source,
            direction: frame.direction,
        }
    }
}

/// Opens an interface, to be stopped by [`frames_of`].
pub(crate) fn open(interface: &str, options: LiveOptions) -> (LiveSource, Stop) {
    let stop = Stop::default();
    let options = LiveOptions { stop: stop.clone(), ..options };
    (LiveSource::open(interface, &options).unwrap(), stop)
}

/// Reads until there are `count` frames, then stops the source and returns all that it captured.
pub(crate) fn frames_of((source, stop): &mut (LiveSource, Stop), count: usize) -> Vec<Seen> {
    let mut seen = read(source, |seen, _| seen.len() >= count);
    stop.set();
    seen.extend(read(source, |_, _| false));
    seen
}

/// Reads until `enough`, or the end, or too long.
pub(crate) fn read(
    source: &mut LiveSource,
    enough: impl Fn(&[Seen], &LiveSource) -> bool,
) -> Vec<Seen> {
    let start = Instant::now();
    let mut seen = Vec::new();
    while !enough(&seen, source)
        && source.read_batch(|frame| seen.push(frame.into())).unwrap() == BatchEnd::More
    {
        assert!(start.elapsed() < DEADLINE, "only {} frames came", seen.len());
    }
    seen
}

/// A UDP datagram over IPv4 in Ethernet; `number` is in its payload.
pub(crate) fn datagram(number: u32, payload_bytes: usize) -> Vec<u8> {
    Packet { transport: Transport::Udp, payload_bytes, number, ..Packet::default() }.frame()
}

/// A packet to be made.
#[derive(Clone, Copy)]
pub(crate) struct Packet {
    pub(crate) transport: Transport,
    pub(crate) v6: bool,
    pub(crate) payload_bytes: usize,
    /// At the start of the payload.
    pub(crate) number: u32,
    pub(crate) identification: u16,
    /// Ports and the last bytes of addresses, source first.
    pub(crate) ends: [(u8, u16); 2],
    pub(crate) tcp_flags: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
}

impl Default for Packet {
    fn default() -> Self {
        Self {
            transport: Transport::Tcp,
            v6: false,
            payload_bytes: 100,
            number: 0,
            identification: 0xfffe,
            ends: [(1, 1000), (2, 2000)],
            tcp_flags: 0x10,
        }
    }
}

impl Packet {
    pub(crate) fn frame(&self) -> Vec<u8> {
        let transport = self.transport_bytes();
        let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        bytes.extend(if self.v6 { [0x86, 0xdd] } else { [8, 0] });
        bytes.extend(self.network_header(transport.len()));
        bytes.extend(transport);
        bytes
    }

    /// How it is described to the kernel as a super-packet.
    pub(crate) fn offload(&self, piece_bytes: u16) -> Offload {
        let transport_at = if self.v6 { 54 } else { 34 };
        let (kind, header_bytes, checksum_at) = match (self.transport, self.v6) {
            (Transport::Tcp, false) => (1, 32, 16),
            (Transport::Tcp, true) => (4, 32, 16),
            (Transport::Udp, _) => (5, 8, 6),
        };
        let checksum = [transport_at, checksum_at];
        Offload { kind, headers_bytes: transport_at + header_bytes, piece_bytes, checksum }
    }

    fn network_header(&self, transport_bytes: usize) -> Vec<u8> {
        let protocol = if self.transport == Transport::Tcp { 6 } else { 17 };
        let [from, to] = self.ends.map(|(address, _)| address);
        let length = transport_bytes as u16;
        if self.v6 {
            let mut bytes = vec![0x60, 0, 0, 0];
            bytes.extend(length.to_be_bytes());
            bytes.extend([protocol, 64]);
            for last in [from, to] {
                bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
            }
            return bytes;
        }
        let mut bytes = vec![0x45, 0];
        bytes.extend((length + 20).to_be_bytes());
        bytes.extend(self.identification.to_be_bytes());
        bytes.extend([0x40, 0, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        let checksum = !sum(&bytes);
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    fn transport_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            self.ends.iter().flat_map(|(_, port)| port.to_be_bytes()).collect();
        match self.transport {
            Transport::Udp => {
                bytes.extend((self.payload_bytes as u16 + 8).to_be_bytes());
                bytes.extend([0, 0]);
            }
            Transport::Tcp => {
                // A sequence number near its end, and the timestamp option.
                bytes.extend([0xff, 0xff, 0xff, 0x00, 0, 0, 0, 9, 0x80, self.tcp_flags, 1, 0]);
                bytes.extend([0, 0, 0, 0, 1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 8]);
            }
        }
        bytes.extend(self.number.to_be_bytes());
        bytes.extend((4..self.payload_bytes).map(|at| (at * 7 + at / 256) as u8));
        bytes
    }
}

/// The sum of all words in ones' complement.
pub(crate) fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}
