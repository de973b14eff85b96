//! The bytes that packet digests are computed from.

use twixt_model::protocol;

use crate::bytes::chunk;
use crate::packet::Packet;

/// Length of a [`Record`].
pub const RECORD_BYTES: usize = 96;

/// Payload bytes that a digest covers at most.
pub const PAYLOAD_BYTES_MAX: u8 = 24;

/// What a packet digest hashes: the fields of a packet that no router changes, in big-endian
/// order at fixed places, zero where there is nothing.
///
/// | bytes | content |
/// |---|---|
/// | 0 | 4 or 6 |
/// | 1 | protocol; of IPv6, that after the extension headers |
/// | 2..4 | IP length: total length, or payload length + 40; of offloaded giants the low 16 bits |
/// | 4..6 | identification; of IPv6, the low 16 bits of that in the fragment header |
/// | 6..8 | fragment offset in units of 8 bytes, and the more-fragments bit (0x2000) |
/// | 8..24 | source, IPv4 in the first four bytes |
/// | 24..40 | destination, likewise |
/// | 40..60 | header of TCP (20), UDP (8) or SCTP (12) with its checksum zeroed |
/// | 60..72 | first 12 bytes of TCP options, unless SYN is set: routers clamp the segment size there |
/// | 72..96 | first payload bytes |
///
/// Of protocols without a place for their header, and of fragments other than the first, all is
/// payload; the checksum of ICMP is zeroed there. Never covered: TTL, header checksum, DSCP and
/// ECN, flow label, IPv4 options, IPv6 extension headers, VLAN tags, MPLS labels.
///
/// [`DigestProfile::Headers`](twixt_model::DigestProfile::Headers) zeroes the options and the payload: captures may be cut behind the
/// fixed transport header. [`Nat`](twixt_model::DigestProfile::Nat) zeroes addresses and ports, and bytes 4..6 of ICMP, where echoes have
/// the identifier that translators use in place of a port (RFC 5508, section 3.1).
pub type Record = [u8; RECORD_BYTES];

pub(super) const HEADER_AT: usize = 40;
pub(super) const OPTIONS_BYTES: usize = 12;
pub(super) const PAYLOAD_AT: usize = 72;

/// What a capture has of the bytes that a record holds. Digests of one packet from two captures
/// are equal only where both have what the digest covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Available {
    /// The transport header is whole. Without it no profile gives comparable digests.
    pub header: bool,
    /// The TCP options that the record holds are there, or it holds none.
    pub options: bool,
    /// The largest setting of `payload_bytes` with which the digest does not depend on the cut:
    /// [`PAYLOAD_BYTES_MAX`] for packets that have all that the record holds, however short.
    pub payload_bytes: u8,
}

/// What the capture has of the bytes that the packet's record holds.
#[must_use]
pub fn available(packet: &Packet, frame: &[u8]) -> Available {
    if !packet.is_cut() {
        return Available { header: true, options: true, payload_bytes: PAYLOAD_BYTES_MAX };
    }
    let transport = packet.transport(frame);
    let header_bytes = packet.transport_header_bytes(transport);
    let fixed_bytes = fixed_header_bytes(packet);
    let options_bytes = match packet.protocol {
        protocol::TCP if fixed_bytes > 0 && !packet.is_syn() => {
            header_bytes.saturating_sub(fixed_bytes).min(OPTIONS_BYTES)
        }
        _ => 0,
    };
    let header = transport.len() >= fixed_bytes;
    Available {
        header,
        options: header && transport.len() >= fixed_bytes + options_bytes,
        payload_bytes: transport
            .len()
            .saturating_sub(header_bytes)
            .min(usize::from(PAYLOAD_BYTES_MAX)) as u8,
    }
}

/// A record as little-endian numbers of 8 bytes: composed in registers, written once. Bytes
/// written one by one and read back at once as numbers would stall the processor.
pub(super) type Words = [u64; RECORD_BYTES / 8];

/// The record of a packet under the default profile with all payload bytes.
pub(super) fn words(packet: &Packet, frame: &[u8]) -> Words {
    let transport = packet.transport(frame);
    let whole = || content([0; 4], prefix(transport, 24));
    let content = match packet.protocol {
        _ if !packet.is_first_fragment() => whole(),
        protocol::TCP => tcp(packet, transport),
        protocol::UDP => {
            let [first, ..] = prefix::<4>(transport, 8);
            content([first & !UDP_CHECKSUM, 0, 0, 0], payload(transport, 8))
        }
        protocol::SCTP => {
            let [first, second, ..] = prefix::<4>(transport, 12);
            content([first, second & !SCTP_CHECKSUM, 0, 0], payload(transport, 12))
        }
        protocol::ICMP | protocol::ICMPV6 => {
            let mut content = whole();
            content[ICMP_WORD - HEADER_AT / 8] &= !ICMP_CHECKSUM;
            content
        }
        _ => whole(),
    };
    let ([a, b, c, d, e], [f, g, h, i, j, k, l]) = (ip_words(packet), content);
    [a, b, c, d, e, f, g, h, i, j, k, l]
}

/// What stands for the IP header.
#[inline(always)]
pub(super) fn ip_words(packet: &Packet) -> [u64; HEADER_AT / 8] {
    let ip = u64::from(packet.version) << 56
        | u64::from(packet.protocol) << 48
        | u64::from(packet.length as u16) << 32
        | u64::from(packet.identification) << 16
        | u64::from(packet.fragment);
    let ([source_1, source_2], [destination_1, destination_2]) =
        (halves(packet.source), halves(packet.destination));
    [ip.swap_bytes(), source_1, source_2, destination_1, destination_2]
}

/// Places of checksums in the words that hold them.
pub(super) const TCP_CHECKSUM: u64 = 0xffff; // bytes 16..18 of the header, third word
pub(super) const UDP_CHECKSUM: u64 = 0xffff << 48; // bytes 6..8, first word
const SCTP_CHECKSUM: u64 = 0xffff_ffff; // bytes 8..12, second word
const ICMP_CHECKSUM: u64 = 0xffff << 16; // bytes 2..4, first word
pub(super) const ICMP_IDENTIFIER: u64 = 0xffff << 32; // bytes 4..6, first word
/// Where ICMP begins: the first word of payload.
pub(super) const ICMP_WORD: usize = PAYLOAD_AT / 8;

/// The record from byte 40 on. Header and options lie there as they do in the packet.
#[inline]
fn tcp(packet: &Packet, transport: &[u8]) -> [u64; 7] {
    let header_bytes = packet.transport_header_bytes(transport);
    let kept = if packet.is_syn() { 20 } else { header_bytes.min(20 + OPTIONS_BYTES) };
    let mut header = prefix::<4>(transport, kept);
    header[2] &= !TCP_CHECKSUM;
    content(header, payload(transport, header_bytes))
}

#[inline]
fn payload(transport: &[u8], header_bytes: usize) -> [u64; 3] {
    prefix(transport.get(header_bytes..).unwrap_or(&[]), 24)
}

#[inline]
fn content([a, b, c, d]: [u64; 4], [e, f, g]: [u64; 3]) -> [u64; 7] {
    [a, b, c, d, e, f, g]
}

/// The first `count` bytes of `source`, or as many as there are, then zeros.
#[inline]
fn prefix<const WORDS: usize>(source: &[u8], count: usize) -> [u64; WORDS] {
    if source.is_empty() {
        return [0; WORDS];
    }
    if source.len() < WORDS * 8 {
        return short_prefix(source, count);
    }
    std::array::from_fn(|index| word(source, index) & first_bytes(count, index))
}

#[inline]
fn short_prefix<const WORDS: usize>(source: &[u8], count: usize) -> [u64; WORDS] {
    std::array::from_fn(|index| {
        let rest = source.get(index * 8..).unwrap_or(&[]);
        let whole = if rest.len() >= 8 { word(rest, 0) } else { partial_word(rest) };
        whole & first_bytes(count, index)
    })
}

#[inline(always)]
pub(super) fn word(source: &[u8], index: usize) -> u64 {
    chunk(source, index * 8).copied().map_or(0, u64::from_le_bytes)
}

/// A word of fewer than 8 bytes.
#[inline]
fn partial_word(rest: &[u8]) -> u64 {
    rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// Keeps of word `index` what belongs to the first `count` bytes.
#[inline]
pub(super) fn first_bytes(count: usize, index: usize) -> u64 {
    match count.saturating_sub(index * 8) {
        0 => 0,
        kept @ 1..8 => (1 << (kept * 8)) - 1,
        _ => u64::MAX,
    }
}

/// An address as the two words of its bytes.
#[inline(always)]
pub(super) fn halves(address: u128) -> [u64; 2] {
    [((address >> 64) as u64).swap_bytes(), (address as u64).swap_bytes()]
}

/// The bytes of little-endian numbers.
#[inline]
pub(super) fn bytes<const WORDS: usize, const BYTES: usize>(words: [u64; WORDS]) -> [u8; BYTES] {
    const { assert!(WORDS * 8 == BYTES) };
    let mut bytes = [0; BYTES];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn fixed_header_bytes(packet: &Packet) -> usize {
    match packet.protocol {
        _ if !packet.is_first_fragment() => 0,
        protocol::TCP => 20,
        protocol::UDP => 8,
        protocol::SCTP => 12,
        _ => 0,
    }
}
