//! IPv4, IPv6 with its extension headers, and the ports behind them.

use twixt_model::protocol;

use super::{EXTENSIONS_MAX, Walk};
use crate::bytes::chunk;
use crate::packet::{FRAGMENT_OFFSET, MORE_FRAGMENTS, Packet};
use crate::skip::Skip;

/// Protocol numbers that are headers before the real one (RFC 7045, section 4).
mod extension {
    pub(super) const HOP_BY_HOP: u8 = 0;
    pub(super) const ROUTING: u8 = 43;
    pub(super) const FRAGMENT: u8 = 44;
    pub(super) const AUTHENTICATION: u8 = 51;
    pub(super) const NO_NEXT_HEADER: u8 = 59;
    pub(super) const DESTINATION_OPTIONS: u8 = 60;
    pub(super) const MOBILITY: u8 = 135;
}

impl Walk<'_> {
    #[inline]
    pub(super) fn ipv4(&self, at: usize, packet: &mut Packet) -> Result<(), Skip> {
        let header: &[u8; 20] = chunk(self.frame, at).ok_or(Skip::Truncated)?;
        let header_bytes = usize::from(header[0] & 0x0f) * 4;
        let length = match u16::from_be_bytes([header[2], header[3]]) {
            0 => self.wire_end.saturating_sub(at),
            length => usize::from(length),
        };
        if header[0] >> 4 != 4 || header_bytes < 20 || length < header_bytes {
            return Err(Skip::BadHeader);
        }
        if self.frame.len() < at + header_bytes {
            return Err(Skip::Truncated);
        }
        *packet = Packet {
            source: ipv4_bits([header[12], header[13], header[14], header[15]]),
            destination: ipv4_bits([header[16], header[17], header[18], header[19]]),
            identification: u16::from_be_bytes([header[4], header[5]]),
            fragment: u16::from_be_bytes([header[6], header[7]])
                & (MORE_FRAGMENTS | FRAGMENT_OFFSET),
            version: 4,
            protocol: header[9],
            ttl: header[8],
            traffic_class: header[1],
            ..self.placed(at, header_bytes, length)
        };
        if packet.protocol == extension::AUTHENTICATION {
            self.extensions(packet)?;
        }
        self.ports(packet)
    }

    #[inline]
    pub(super) fn ipv6(&self, at: usize, packet: &mut Packet) -> Result<(), Skip> {
        let header: &[u8; 40] = chunk(self.frame, at).ok_or(Skip::Truncated)?;
        let length = match u16::from_be_bytes([header[4], header[5]]) {
            0 if header[6] != extension::NO_NEXT_HEADER => self.wire_end.saturating_sub(at),
            payload => usize::from(payload) + 40,
        };
        if header[0] >> 4 != 6 || length < 40 {
            return Err(Skip::BadHeader);
        }
        *packet = Packet {
            source: ipv6_bits(header, 8),
            destination: ipv6_bits(header, 24),
            version: 6,
            protocol: header[6],
            ttl: header[7],
            traffic_class: header[0] << 4 | header[1] >> 4,
            ..self.placed(at, 40, length)
        };
        self.extensions(packet)?;
        self.ports(packet)
    }

    /// A packet of which only the place is known.
    #[inline]
    fn placed(&self, at: usize, header_bytes: usize, length: usize) -> Packet {
        // Offsets lie within FRAME_BYTES_MAX, lengths within the 32 bits of a wire length.
        Packet {
            ip_at: at as u32,
            transport_at: (at + header_bytes) as u32,
            end: self.frame.len().min(at + length) as u32,
            length: length as u32,
            vlan: self.vlan,
            mpls: u8::from(self.mpls),
            ..Packet::BLANK
        }
    }

    /// Steps over extension headers until a real protocol or a later fragment's bytes.
    #[inline]
    fn extensions(&self, packet: &mut Packet) -> Result<(), Skip> {
        for _ in 0..EXTENSIONS_MAX {
            if !is_extension(packet) {
                return Ok(());
            }
            let bytes = &self.frame[..packet.end as usize];
            let header: &[u8; 8] =
                chunk(bytes, packet.transport_at as usize).ok_or_else(|| missing(packet))?;
            let [next, length, ..] = *header;
            let header_bytes = match packet.protocol {
                // Binding messages with nothing behind them are the content.
                extension::MOBILITY if next == extension::NO_NEXT_HEADER => return Ok(()),
                extension::AUTHENTICATION => (u32::from(length) + 2) * 4,
                extension::FRAGMENT => {
                    note_fragment(packet, header);
                    8
                }
                _ => (u32::from(length) + 1) * 8,
            };
            packet.protocol = next;
            packet.transport_at += header_bytes;
            if packet.transport_at > packet.end {
                return Err(missing(packet));
            }
        }
        if is_extension(packet) { Err(Skip::TooDeep) } else { Ok(()) }
    }

    #[inline]
    fn ports(&self, packet: &mut Packet) -> Result<(), Skip> {
        if !packet.has_ports() {
            return Ok(());
        }
        let transport = packet.transport(self.frame);
        let Some(&[source_high, source_low, destination_high, destination_low]) =
            transport.first_chunk()
        else {
            return Err(missing(packet));
        };
        let flags = transport.get(13).copied().unwrap_or(0);
        packet.source_port = u16::from_be_bytes([source_high, source_low]);
        packet.destination_port = u16::from_be_bytes([destination_high, destination_low]);
        packet.tcp_flags = if packet.protocol == protocol::TCP { flags } else { 0 };
        Ok(())
    }
}

/// Whether what `transport_at` points to is a header that names another protocol.
#[inline]
fn is_extension(packet: &Packet) -> bool {
    let known = match packet.protocol {
        extension::AUTHENTICATION => true,
        extension::HOP_BY_HOP
        | extension::ROUTING
        | extension::FRAGMENT
        | extension::DESTINATION_OPTIONS
        | extension::MOBILITY => packet.version == 6,
        _ => false,
    };
    known && packet.is_first_fragment()
}

/// RFC 8200, section 4.5: the offset is in the upper 13 bits, more-fragments the lowest.
fn note_fragment(packet: &mut Packet, header: &[u8; 8]) {
    let word = u16::from_be_bytes([header[2], header[3]]);
    packet.fragment = word >> 3 | if word & 1 == 1 { MORE_FRAGMENTS } else { 0 };
    packet.identification = u16::from_be_bytes([header[6], header[7]]);
}

/// Why bytes are missing: the capture was cut, or the packet is shorter than it must be.
#[cold]
fn missing(packet: &Packet) -> Skip {
    if packet.is_cut() { Skip::Truncated } else { Skip::BadHeader }
}

#[inline]
fn ipv4_bits(bytes: [u8; 4]) -> u128 {
    u128::from(u32::from_be_bytes(bytes)) << 96
}

#[inline]
fn ipv6_bits(header: &[u8; 40], at: usize) -> u128 {
    u128::from_be_bytes(*chunk(header, at).expect("addresses end with the header"))
}
