//! Headers as functions of what they carry.

use twixt_wire::{LinkType, Packet, ParseOptions, Skip, parse};

pub(crate) const A: [u8; 4] = [10, 0, 0, 1];
pub(crate) const B: [u8; 4] = [10, 0, 1, 9];
pub(crate) const A6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
pub(crate) const B6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

/// Parses an Ethernet frame that is whole.
pub(crate) fn parsed(frame: &[u8]) -> Result<Packet, Skip> {
    parse(LinkType::ETHERNET, frame, ParseOptions::default())
}

pub(crate) fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

pub(crate) fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    joined(&[&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], &ether_type.to_be_bytes(), payload])
}

/// What follows Ethernet type 0x8100.
pub(crate) fn vlan(number: u16, ether_type: u16, payload: &[u8]) -> Vec<u8> {
    joined(&[&(number | 0x6000).to_be_bytes(), &ether_type.to_be_bytes(), payload])
}

/// What follows Ethernet type 0x8847.
pub(crate) fn mpls(labels: usize, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for left in (0..labels).rev() {
        bytes.extend([0, 1, if left == 0 { 0x21 } else { 0x20 }, 64]);
    }
    joined(&[&bytes, payload])
}

/// What follows Ethernet type 0x8864.
pub(crate) fn pppoe(protocol: u16, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u16 + 2;
    joined(&[&[0x11, 0, 0, 7], &length.to_be_bytes(), &protocol.to_be_bytes(), payload])
}

/// An IPv4 header in the making.
#[derive(Clone)]
pub(crate) struct V4 {
    pub(crate) tos: u8,
    pub(crate) length: Option<u16>,
    pub(crate) identification: u16,
    pub(crate) fragment: u16,
    pub(crate) ttl: u8,
    pub(crate) checksum: u16,
    pub(crate) source: [u8; 4],
    pub(crate) destination: [u8; 4],
    pub(crate) options: Vec<u8>,
}

impl Default for V4 {
    fn default() -> Self {
        Self {
            tos: 0,
            length: None,
            identification: 0x1234,
            fragment: 0x4000,
            ttl: 64,
            checksum: 0xbeef,
            source: A,
            destination: B,
            options: Vec::new(),
        }
    }
}

impl V4 {
    pub(crate) fn carrying(&self, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let header_bytes = 20 + self.options.len();
        let length = self.length.unwrap_or((header_bytes + payload.len()) as u16);
        joined(&[
            &[0x40 | (header_bytes / 4) as u8, self.tos],
            &length.to_be_bytes(),
            &self.identification.to_be_bytes(),
            &self.fragment.to_be_bytes(),
            &[self.ttl, protocol],
            &self.checksum.to_be_bytes(),
            &self.source,
            &self.destination,
            &self.options,
            payload,
        ])
    }
}

pub(crate) fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    V4::default().carrying(protocol, payload)
}

pub(crate) fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u16;
    joined(&[&[0x6b, 0x8a, 0xbc, 0xde], &length.to_be_bytes(), &[next, 63], &A6, &B6, payload])
}

pub(crate) fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u16 + 8;
    joined(&[
        &source.to_be_bytes(),
        &destination.to_be_bytes(),
        &length.to_be_bytes(),
        &[0xab, 0xcd],
        payload,
    ])
}

/// A TCP header in the making.
#[derive(Clone)]
pub(crate) struct Tcp {
    pub(crate) source: u16,
    pub(crate) destination: u16,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) checksum: u16,
    pub(crate) urgent: u16,
    pub(crate) options: Vec<u8>,
}

impl Default for Tcp {
    fn default() -> Self {
        Self {
            source: 40_312,
            destination: 443,
            sequence: 0x0102_0304,
            acknowledgement: 0x0506_0708,
            flags: 0x18,
            window: 501,
            checksum: 0xcafe,
            urgent: 0,
            options: timestamps(7, 9),
        }
    }
}

impl Tcp {
    pub(crate) fn carrying(&self, payload: &[u8]) -> Vec<u8> {
        let offset = ((20 + self.options.len()) / 4) as u8;
        joined(&[
            &self.source.to_be_bytes(),
            &self.destination.to_be_bytes(),
            &self.sequence.to_be_bytes(),
            &self.acknowledgement.to_be_bytes(),
            &[offset << 4, self.flags],
            &self.window.to_be_bytes(),
            &self.checksum.to_be_bytes(),
            &self.urgent.to_be_bytes(),
            &self.options,
            payload,
        ])
    }
}

/// The timestamp option as most systems write it: after two bytes of padding.
pub(crate) fn timestamps(value: u32, echo: u32) -> Vec<u8> {
    joined(&[&[1, 1, 8, 10], &value.to_be_bytes(), &echo.to_be_bytes()])
}

pub(crate) fn sctp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    joined(&[
        &source.to_be_bytes(),
        &destination.to_be_bytes(),
        &[0, 0, 0, 1, 0xde, 0xad, 0xbe, 0xef],
        payload,
    ])
}

/// An echo request of ICMP.
pub(crate) fn echo(identifier: u16, sequence: u16) -> Vec<u8> {
    joined(&[
        &[8, 0, 0x11, 0x22],
        &identifier.to_be_bytes(),
        &sequence.to_be_bytes(),
        b"abcdefghijklmnop",
    ])
}

/// The packet that most tests are about: UDP from A:1000 to B:2000.
pub(crate) fn plain() -> Vec<u8> {
    ipv4(17, &udp(1000, 2000, b"payload of the packet"))
}
