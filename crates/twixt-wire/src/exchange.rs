//! Questions and answers of DNS, NTP, ICMP, QUIC, HTTP/1 and TLS: what of a packet tells which answer belongs
//! to which question. Knows nothing of time, and keeps nothing from packet to packet.
//!
//! Protocol and ports decide first, so that other packets cost a comparison or two.

mod segment;

use twixt_model::{Exchange, mix, protocol};

use crate::bytes::{be16, be32, chunk};
use crate::packet::{IcmpEcho, Packet};

const DNS_PORT: u16 = 53;
const NTP_PORT: u16 = 123;

impl Packet {
    /// The question or answer that the packet is; `None` for anything else, later fragments, and
    /// what was cut before that could be decided.
    #[must_use]
    #[inline]
    pub fn exchange(&self, frame: &[u8]) -> Option<Exchange> {
        match self.protocol {
            protocol::UDP if self.is_first_fragment() => self.udp_exchange(frame),
            protocol::TCP if self.is_first_fragment() => {
                let payload = self.payload(frame);
                if self.uses(DNS_PORT) { dns_over_tcp(payload) } else { segment::message(payload) }
            }
            protocol::ICMP | protocol::ICMPV6 => {
                let IcmpEcho { reply, identifier, sequence } = self.icmp_echo(frame)?;
                let id = u32::from(identifier) << 16 | u32::from(sequence);
                Some(Exchange::IcmpEcho { id, reply })
            }
            _ => None,
        }
    }

    /// The same, written in place of `None`: what was just written in parts is slow to copy as a whole.
    #[inline(always)]
    pub(crate) fn write_exchange(&self, frame: &[u8], place: &mut Option<Exchange>) {
        if self.protocol != protocol::TCP || self.has_payload() {
            (*self).write_exchange_if_any(frame, place);
        }
    }

    /// Whether it is longer than headers are: most segments without data end here.
    #[inline(always)]
    const fn has_payload(&self) -> bool {
        const TCP_HEADER_BYTES_MIN: u32 = 20;
        self.length > self.transport_at - self.ip_at + TCP_HEADER_BYTES_MIN
    }

    /// Writes nothing unless it is one: most that might be are none.
    #[inline(never)]
    fn write_exchange_if_any(self, frame: &[u8], place: &mut Option<Exchange>) {
        if let Some(exchange) = self.exchange(frame) {
            *place = Some(exchange);
        }
    }

    fn udp_exchange(&self, frame: &[u8]) -> Option<Exchange> {
        let payload = self.payload(frame);
        if self.uses(DNS_PORT) {
            dns(payload)
        } else if self.uses(NTP_PORT) {
            ntp(payload)
        } else {
            quic(payload)
        }
    }

    const fn uses(&self, port: u16) -> bool {
        self.source_port == port || self.destination_port == port
    }
}

/// A message of DNS (RFC 1035, section 4.1.1): id, then the bit that tells answers from queries.
fn dns(message: &[u8]) -> Option<Exchange> {
    let header: &[u8; 12] = chunk(message, 0)?;
    Some(Exchange::Dns { id: be16(header, 0)?, response: header[2] & 0x80 != 0 })
}

/// A message behind its length (RFC 1035, section 4.2.2), if one begins with the segment. The
/// first of several in a segment stands for them.
fn dns_over_tcp(segment: &[u8]) -> Option<Exchange> {
    const HEADER_BYTES: u16 = 12;
    let length = be16(segment, 0)?;
    // What begins in the middle of a message rarely looks like one: opcodes above 6 and the bit
    // that must be zero are not in use.
    let flags = be16(segment, 4)?;
    let plausible = length >= HEADER_BYTES && flags & 0x7800 <= 6 << 11 && flags & 0x0040 == 0;
    plausible.then(|| dns(&segment[2..])).flatten()
}

/// Modes client and server (RFC 5905, section 7.3): the server returns the client's transmit
/// timestamp as its origin timestamp.
fn ntp(message: &[u8]) -> Option<Exchange> {
    let header: &[u8; 48] = chunk(message, 0)?;
    let at = |start: usize| chunk(header, start).copied().map(u64::from_be_bytes);
    match header[0] & 0x07 {
        3 => Some(Exchange::Ntp { stamp: at(40)?, response: false }),
        4 => Some(Exchange::Ntp { stamp: at(24)?, response: true }),
        _ => None,
    }
}

/// Versions of QUIC whose packets are known: 1 (RFC 9000), 2 (RFC 9369), drafts towards 1, and
/// numbers that implementations use for experiments with 1.
const QUIC_V1: u32 = 1;
const QUIC_V2: u32 = 0x6b33_43cf;
const QUIC_DRAFTS: std::ops::RangeInclusive<u32> = 0xff00_0016..=0xff00_00ff;
const QUIC_EXPERIMENTS: std::ops::RangeInclusive<u32> = 0xf0f0_f000..=0xf0f0_ffff;
/// Connection ids are no longer than this (RFC 9000, section 17.2).
const CONNECTION_ID_BYTES_MAX: u8 = 20;
/// No packet with a short header is smaller: a byte, a packet number, and what header protection
/// samples (RFC 9001, section 5.4.2).
const QUIC_SHORT_BYTES_MIN: usize = 21;

/// First byte: form bit, then a bit that is always set (RFC 9000, sections 17.2 and 17.3).
fn quic(datagram: &[u8]) -> Option<Exchange> {
    let first = *datagram.first()?;
    match first & 0xc0 {
        0xc0 => quic_long(first, datagram),
        0x40 if datagram.len() >= QUIC_SHORT_BYTES_MIN => {
            Some(Exchange::QuicShort { spin: first & 0x20 != 0 })
        }
        _ => None,
    }
}

fn quic_long(first: u8, datagram: &[u8]) -> Option<Exchange> {
    let version = be32(datagram, 1)?;
    let initial_type = match version {
        QUIC_V1 => 0,
        QUIC_V2 => 1,
        other if QUIC_DRAFTS.contains(&other) || QUIC_EXPERIMENTS.contains(&other) => 0,
        _ => return None,
    };
    let (destination_id, rest) = connection_id(datagram.get(5..)?)?;
    let (source_id, _) = connection_id(rest)?;
    let initial = (first >> 4) & 0x03 == initial_type;
    Some(Exchange::QuicLong { initial, source_id, destination_id })
}

/// A number for the connection id at the start, and what follows it.
fn connection_id(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&length, rest) = bytes.split_first()?;
    if length > CONNECTION_ID_BYTES_MAX {
        return None;
    }
    let (id, rest) = rest.split_at_checked(usize::from(length))?;
    let number = id.chunks(8).fold(u64::from(length), |number, part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        mix(number ^ u64::from_le_bytes(word))
    });
    Some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(found: Option<Exchange>, expected: Option<Exchange>) {
        assert_eq!(found, expected);
    }

    fn message(id: u16, flags: u16) -> Vec<u8> {
        [&id.to_be_bytes()[..], &flags.to_be_bytes(), &[0; 8]].concat()
    }

    #[test]
    fn dns_tells_queries_from_answers() {
        check(dns(&message(7, 0x0100)), Some(Exchange::Dns { id: 7, response: false }));
        check(dns(&message(7, 0x8180)), Some(Exchange::Dns { id: 7, response: true }));
        check(dns(&message(7, 0)[..11]), None);
        let over_tcp = |length: u16, flags| {
            dns_over_tcp(&[&length.to_be_bytes()[..], &message(9, flags)].concat())
        };
        check(over_tcp(12, 0x8180), Some(Exchange::Dns { id: 9, response: true }));
        check(over_tcp(11, 0x8180), None);
        check(over_tcp(12, 0x7800), None);
    }

    #[test]
    fn ntp_answers_return_the_stamp() {
        let mut bytes = [0; 48];
        bytes[0] = 0x23;
        bytes[40..].copy_from_slice(&5_u64.to_be_bytes());
        check(ntp(&bytes), Some(Exchange::Ntp { stamp: 5, response: false }));
        bytes[0] = 0x24;
        bytes[24..32].copy_from_slice(&6_u64.to_be_bytes());
        check(ntp(&bytes), Some(Exchange::Ntp { stamp: 6, response: true }));
        bytes[0] = 0x25;
        check(ntp(&bytes), None);
        check(ntp(&bytes[..47]), None);
    }

    fn long(first: u8, version: u32, destination: &[u8], source: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first];
        bytes.extend(version.to_be_bytes());
        for id in [destination, source] {
            bytes.push(id.len() as u8);
            bytes.extend(id);
        }
        bytes
    }

    #[test]
    fn quic_gives_both_connection_ids() {
        let ids = |bytes: &[u8]| match quic(bytes) {
            Some(Exchange::QuicLong { initial, source_id, destination_id }) => {
                Some((initial, source_id, destination_id))
            }
            _ => None,
        };
        let (_, client, _) = ids(&long(0xc0, QUIC_V1, b"chosen by", b"client")).unwrap();
        let (initial, _, back) = ids(&long(0xd0, QUIC_V2, b"client", b"server")).unwrap();
        assert!(initial && back == client);
        assert!(!ids(&long(0xe0, QUIC_V1, b"", b"")).unwrap().0, "a handshake packet");
        assert_eq!(ids(&long(0xc0, 0x1234, b"a", b"b")), None, "an unknown version");
        assert_eq!(ids(&long(0x80, QUIC_V1, b"a", b"b")), None, "the fixed bit is not set");
        assert_eq!(ids(&long(0xc0, QUIC_V1, &[0; 21], b"b")), None);
        let whole = long(0xc0, QUIC_V1, b"chosen by", b"client");
        assert!((0..whole.len()).all(|length| quic(&whole[..length]).is_none()));
    }

    #[test]
    fn the_spin_bit_is_that_of_short_headers() {
        check(quic(&[0x60; 21]), Some(Exchange::QuicShort { spin: true }));
        check(quic(&[0x40; 21]), Some(Exchange::QuicShort { spin: false }));
        check(quic(&[0x40; 20]), None);
        check(quic(&[0x16; 60]), None);
    }
}
