//! Headers of simulated packets, as a capture cut after the headers holds them.
//!
//! Ethernet, IPv4, then TCP, or UDP with eight bytes of payload that number the packet. The rest
//! of the payload is all zeros, and the checksums are right for that. No two packets of a flow
//! look alike: the identification counts packets, and where its 16 bits start over, another field
//! of the header counts that.

use std::net::{IpAddr, Ipv4Addr};

use twixt_model::{FlowKey, mix, protocol, tcp_flag};

use crate::{Direction, SimulatedPacket};

/// Headers of IP and TCP: no packet is smaller.
pub const HEADERS_BYTES: u32 = 40;

const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
const UDP_NUMBER_BYTES: usize = 8;
const TCP_BYTES: usize = 20;
const FRAME_MAX: usize = ETHERNET_BYTES + IPV4_BYTES + TCP_BYTES;

const ETHERTYPE_IPV4: u16 = 0x0800;
const DO_NOT_FRAGMENT: u16 = 0x4000;
/// As many hosts set it; the router between the points takes one away.
const FIRST_TTL: u8 = 64;

/// The headers of a packet, and how long it was with its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedFrame {
    buffer: [u8; FRAME_MAX],
    captured: usize,
    wire_length: u32,
}

/// Random bits that fix the initial sequence numbers of the two hosts of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hosts {
    pub(crate) sender: u64,
    pub(crate) receiver: u64,
}

impl SimulatedFrame {
    /// What was captured, from the Ethernet header on.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.captured]
    }

    /// How many bytes the frame had before it was cut.
    #[must_use]
    pub const fn wire_length(&self) -> u32 {
        self.wire_length
    }

    /// The frame of a packet after so many routers: of a segment's two points, after none and one.
    pub(crate) fn build(
        key: &FlowKey,
        packet: &SimulatedPacket,
        direction: Direction,
        hosts: Hosts,
        routers: u8,
    ) -> Self {
        let mut writer = Writer::new();
        writer.ethernet(routers);
        let transport_bytes = (packet.length as usize).saturating_sub(IPV4_BYTES) as u16;
        let ttl = FIRST_TTL.saturating_sub(routers);
        writer.ipv4(key, packet.length as u16, hosts.number(packet) as u16, ttl);
        if key.protocol == protocol::TCP {
            writer.tcp(key, &TcpNumbers::of(packet, direction, hosts), transport_bytes);
        } else {
            writer.udp(key, u64::from(packet.sequence), transport_bytes);
        }
        let wire_length = packet.length + ETHERNET_BYTES as u32;
        Self { buffer: writer.buffer, captured: writer.written, wire_length }
    }
}

impl Hosts {
    /// Counts the packets of a flow. The start is drawn, so that flows do not all begin with the
    /// same identification.
    pub(crate) const fn number(self, packet: &SimulatedPacket) -> u64 {
        (mix(self.sender) & 0xffff) + packet.sequence as u64
    }
}

/// The two counters of a TCP header.
pub(crate) struct TcpNumbers {
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
}

impl TcpNumbers {
    /// What a forward packet sends is what return packets acknowledge. The field that has nothing
    /// to say for its direction counts how often the identification started over.
    pub(crate) fn of(packet: &SimulatedPacket, direction: Direction, hosts: Hosts) -> Self {
        let (own, other) = (hosts.sender as u32, hosts.receiver as u32);
        let turns = (hosts.number(packet) >> 16) as u32;
        let offset = packet.payload_offset;
        let (sequence, acknowledgement) =
            if direction == Direction::Forward { (offset, turns) } else { (turns, offset) };
        Self {
            sequence: own.wrapping_add(sequence),
            acknowledgement: other.wrapping_add(acknowledgement),
        }
    }
}

struct Writer {
    buffer: [u8; FRAME_MAX],
    written: usize,
}

impl Writer {
    const fn new() -> Self {
        Self { buffer: [0; FRAME_MAX], written: 0 }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.buffer[self.written..self.written + bytes.len()].copy_from_slice(bytes);
        self.written += bytes.len();
    }

    /// Locally administered addresses: hosts' neighbours on the two sides of the segment.
    fn ethernet(&mut self, routers: u8) {
        let side = routers.wrapping_mul(2) & 0x7f;
        self.put(&[2, 0, 0, 0, 0, side + 2]);
        self.put(&[2, 0, 0, 0, 0, side + 1]);
        self.put(&ETHERTYPE_IPV4.to_be_bytes());
    }

    /// RFC 791, section 3.1.
    fn ipv4(&mut self, key: &FlowKey, length: u16, identification: u16, ttl: u8) {
        let start = self.written;
        self.put(&[0x45, 0]);
        self.put(&length.to_be_bytes());
        self.put(&identification.to_be_bytes());
        self.put(&DO_NOT_FRAGMENT.to_be_bytes());
        self.put(&[ttl, key.protocol, 0, 0]);
        self.put(&octets(key.source));
        self.put(&octets(key.destination));
        let checksum = folded(sum(&self.buffer[start..self.written]));
        self.buffer[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
    }

    /// RFC 9293, section 3.1. No options.
    fn tcp(&mut self, key: &FlowKey, numbers: &TcpNumbers, length: u16) {
        let start = self.written;
        self.put(&key.source_port.to_be_bytes());
        self.put(&key.destination_port.to_be_bytes());
        self.put(&numbers.sequence.to_be_bytes());
        self.put(&numbers.acknowledgement.to_be_bytes());
        self.put(&[0x50, tcp_flag::ACK, 0xff, 0xff]);
        self.put(&[0; 4]);
        let checksum = self.transport_checksum(key, start, length);
        self.buffer[start + 16..start + 18].copy_from_slice(&checksum.to_be_bytes());
    }

    /// RFC 768.
    fn udp(&mut self, key: &FlowKey, number: u64, length: u16) {
        let start = self.written;
        self.put(&key.source_port.to_be_bytes());
        self.put(&key.destination_port.to_be_bytes());
        self.put(&length.to_be_bytes());
        self.put(&[0; 2]);
        let number: [u8; UDP_NUMBER_BYTES] = number.to_be_bytes();
        self.put(&number);
        // Zero would say that there is no checksum.
        let checksum = match self.transport_checksum(key, start, length) {
            0 => u16::MAX,
            checksum => checksum,
        };
        self.buffer[start + 6..start + 8].copy_from_slice(&checksum.to_be_bytes());
    }

    fn transport_checksum(&self, key: &FlowKey, start: usize, length: u16) -> u16 {
        let addresses = sum(&octets(key.source)) + sum(&octets(key.destination));
        let pseudo_header = addresses + u32::from(key.protocol) + u32::from(length);
        folded(pseudo_header + sum(&self.buffer[start..self.written]))
    }
}

const _: () = assert!(UDP_BYTES + UDP_NUMBER_BYTES <= TCP_BYTES, "the buffer fits both");

/// Synthetic flows are IPv4 only.
fn octets(address: IpAddr) -> [u8; 4] {
    match address {
        IpAddr::V4(address) => address.octets(),
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED.octets(),
    }
}

/// Sum of 16-bit words, for bytes of even number.
fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum()
}

/// The Internet checksum of RFC 1071 from a sum of words.
const fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
