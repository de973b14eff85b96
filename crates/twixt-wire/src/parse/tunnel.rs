//! Packets that carry packets: where the inside begins.
//!
//! Each function answers `None` for what it does not recognise; the packet is then measured as
//! it is.

use twixt_model::protocol;

use super::{Layer, Place, ip_by_version};
use crate::bytes::chunk;
use crate::packet::Packet;

/// Protocol numbers of IP in IP and its kin.
mod number {
    pub(super) const IPV4: u8 = 4;
    pub(super) const IPV6: u8 = 41;
    pub(super) const GRE: u8 = 47;
    pub(super) const MPLS: u8 = 137;
}

/// UDP destination ports of tunnels.
mod port {
    pub(super) const GTP_U: u16 = 2152;
    pub(super) const VXLAN: u16 = 4789;
    pub(super) const VXLAN_GENERIC: u16 = 4790;
    pub(super) const GENEVE: u16 = 6081;
    /// What Linux and its overlays used before there was an assignment, and still do.
    pub(super) const VXLAN_LINUX: u16 = 8472;
}

/// Extension headers of one GTP-U packet at most.
const GTP_EXTENSIONS_MAX: usize = 8;

/// Whether `packet` may be a tunnel: a cheap question that spares most packets the next one.
#[inline]
pub(super) fn is_possible(packet: &Packet) -> bool {
    let named = match packet.protocol {
        protocol::TCP => false,
        protocol::UDP => is_port(packet.destination_port),
        other => matches!(other, number::IPV4 | number::IPV6 | number::GRE | number::MPLS),
    };
    named && packet.is_first_fragment()
}

/// Whether UDP to this port may be a tunnel. In one straight line: ports cannot be foreseen.
#[inline(always)]
pub(super) const fn is_port(port: u16) -> bool {
    (port == port::VXLAN)
        | (port == port::VXLAN_GENERIC)
        | (port == port::VXLAN_LINUX)
        | (port == port::GENEVE)
        | (port == port::GTP_U)
}

/// The first layer inside `packet`, which is possibly a tunnel.
pub(super) fn inside(packet: &Packet, frame: &[u8]) -> Option<Place> {
    let at = packet.transport_at as usize;
    match (packet.protocol, packet.destination_port) {
        (protocol::UDP, port::VXLAN | port::VXLAN_GENERIC | port::VXLAN_LINUX) => {
            vxlan(frame, at + 8)
        }
        (protocol::UDP, port::GENEVE) => geneve(frame, at + 8),
        (protocol::UDP, port::GTP_U) => gtp_u(frame, at + 8),
        (number::IPV4, _) => Some(Place(Layer::Ipv4, at)),
        (number::IPV6, _) => Some(Place(Layer::Ipv6, at)),
        (number::GRE, _) => gre(frame, at),
        (number::MPLS, _) => Some(Place(Layer::EtherType(0x8847), at)),
        _ => None,
    }
}

/// RFC 7348, section 5: one bit must be set, the others do not count, except that of the generic
/// extension (draft-ietf-nvo3-vxlan-gpe), which says that not all content is Ethernet.
fn vxlan(frame: &[u8], at: usize) -> Option<Place> {
    const VALID: u8 = 0x08;
    const NEXT_PROTOCOL: u8 = 0x04;
    let &[flags, _, _, next, ..] = chunk::<8>(frame, at)?;
    let layer = match next {
        _ if flags & VALID == 0 => return None,
        _ if flags & NEXT_PROTOCOL == 0 => Layer::Ethernet,
        1 => Layer::Ipv4,
        2 => Layer::Ipv6,
        3 => Layer::Ethernet,
        _ => return None,
    };
    Some(Place(layer, at + 8))
}

/// RFC 8926, section 3.4: version 0, length of options in units of 4 bytes, Ethernet type.
fn geneve(frame: &[u8], at: usize) -> Option<Place> {
    let header: &[u8; 8] = chunk(frame, at)?;
    if header[0] >> 6 != 0 {
        return None;
    }
    let options_bytes = usize::from(header[0] & 0x3f) * 4;
    let ether_type = u16::from_be_bytes([header[2], header[3]]);
    Some(Place(Layer::EtherType(ether_type), at + 8 + options_bytes))
}

/// RFC 2784 and RFC 2890: checksum, key and sequence number take 4 bytes each. RFC 2637: version
/// 1 carries PPP, and has an acknowledgement number too.
fn gre(frame: &[u8], at: usize) -> Option<Place> {
    const CHECKSUM: u8 = 0x80;
    const ROUTING: u8 = 0x40;
    const KEY: u8 = 0x20;
    const SEQUENCE: u8 = 0x10;
    const ACKNOWLEDGEMENT: u8 = 0x80;
    let &[flags, version, type_high, type_low] = chunk(frame, at)?;
    let optional = (flags & (CHECKSUM | KEY | SEQUENCE)).count_ones() as usize * 4;
    let inner = at + 4 + optional;
    match version & 0x07 {
        0 if flags & ROUTING == 0 => {}
        1 => {
            let acknowledgement = usize::from(version & ACKNOWLEDGEMENT != 0) * 4;
            return Some(Place(Layer::Ppp, inner + acknowledgement));
        }
        _ => return None,
    }
    match u16::from_be_bytes([type_high, type_low]) {
        // Mirrored frames (ERSPAN): type I has no header of its own and no sequence number.
        0x88be if flags & SEQUENCE == 0 => Some(Place(Layer::Ethernet, inner)),
        0x88be => Some(Place(Layer::Ethernet, inner + 8)),
        0x22eb => {
            // The lowest bit of the header announces 8 more bytes.
            let header: &[u8; 12] = chunk(frame, inner)?;
            let more = usize::from(header[11] & 1) * 8;
            Some(Place(Layer::Ethernet, inner + 12 + more))
        }
        ether_type => Some(Place(Layer::EtherType(ether_type), inner)),
    }
}

/// 3GPP TS 29.281, section 5: version 1, message type 255 carries a user's packet. Any of three
/// bits adds 4 bytes; the last of them names an extension header if the extension bit is set.
fn gtp_u(frame: &[u8], at: usize) -> Option<Place> {
    const EXTENSION: u8 = 0x04;
    const OPTIONAL: u8 = 0x07;
    let &[flags, 255, ..] = chunk::<8>(frame, at)? else { return None };
    let inner = match flags {
        0x30 => at + 8,
        0x31..=0x37 if flags & EXTENSION != 0 => gtp_extensions(frame, at + 12)?,
        _ if flags & !OPTIONAL == 0x30 => at + 12,
        _ => return None,
    };
    ip_by_version(frame, inner).ok()
}

/// Where the extension headers end that begin at `at`. The byte before each says its type, or 0
/// for none; its own first byte says its length in units of 4 bytes.
fn gtp_extensions(frame: &[u8], mut at: usize) -> Option<usize> {
    for _ in 0..GTP_EXTENSIONS_MAX {
        if *frame.get(at - 1)? == 0 {
            return Some(at);
        }
        match *frame.get(at)? {
            0 => return None,
            units => at += usize::from(units) * 4,
        }
    }
    None
}
