//! Frames that need no walk, because nearly all are so: Ethernet, perhaps one VLAN tag, IPv4
//! without options or IPv6 without extension headers, and behind it TCP or UDP with a whole header.
//!
//! Everything else is left to the walk, tunnels, fragments and damage included.

use twixt_model::protocol;

use super::ethernet::ether_type;
use super::tunnel;
use crate::packet::{FRAGMENT_OFFSET, MORE_FRAGMENTS, NO_VLAN, Packet};
use crate::window::Window;

const TCP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;

/// The packet in an Ethernet frame of so many bytes, as the walk would find it; `None` if it takes
/// more to tell. Untagged IPv4 only, so that all places are known when compiling.
#[inline(always)]
pub(crate) fn usual(window: Window<'_>, frame_bytes: usize, outer: bool) -> Option<Packet> {
    match window.be16(12) {
        ether_type::IPV4 => ipv4::<14>(window, frame_bytes, outer, NO_VLAN),
        _ => None,
    }
}

/// What is usual in some networks only.
#[inline]
pub(super) fn rarer(window: Window<'_>, frame_bytes: usize, outer: bool) -> Option<Packet> {
    let vlan = window.be16(14) & 0x0fff;
    match (window.be16(12), window.be16(16)) {
        (ether_type::IPV6, _) => ipv6::<14>(window, frame_bytes, outer, NO_VLAN),
        (ether_type::VLAN, ether_type::IPV4) => ipv4::<18>(window, frame_bytes, outer, vlan),
        (ether_type::VLAN, ether_type::IPV6) => ipv6::<18>(window, frame_bytes, outer, vlan),
        _ => None,
    }
}

#[inline(always)]
fn ipv4<const AT: usize>(
    window: Window<'_>,
    frame_bytes: usize,
    outer: bool,
    vlan: u16,
) -> Option<Packet> {
    let (first, second) = (window.be32(AT), window.be32(AT + 4));
    let (length, fragment) =
        (u32::from(first as u16), second as u16 & (MORE_FRAGMENTS | FRAGMENT_OFFSET));
    let protocol = window.byte(AT + 9);
    let end = frame_bytes.min(AT + length as usize);
    let transport = Transport::at::<20, AT>(window, end, protocol);
    if (first >> 24 != 0x45) | (fragment != 0) | !transport.is_usual(outer) {
        return None;
    }
    Some(Packet {
        source: u128::from(window.be32(AT + 12)) << 96,
        destination: u128::from(window.be32(AT + 16)) << 96,
        ip_at: AT as u32,
        transport_at: AT as u32 + 20,
        end: end as u32,
        length,
        identification: (second >> 16) as u16,
        fragment: 0,
        source_port: transport.source_port,
        destination_port: transport.destination_port,
        vlan,
        version: 4,
        protocol,
        ttl: window.byte(AT + 8),
        traffic_class: (first >> 16) as u8,
        tcp_flags: transport.tcp_flags,
        mpls: 0,
    })
}

#[inline(always)]
fn ipv6<const AT: usize>(
    window: Window<'_>,
    frame_bytes: usize,
    outer: bool,
    vlan: u16,
) -> Option<Packet> {
    let (first, second) = (window.be32(AT), window.be32(AT + 4));
    let (payload_bytes, protocol) = (second >> 16, (second >> 8) as u8);
    let end = frame_bytes.min(AT + 40 + payload_bytes as usize);
    let transport = Transport::at::<40, AT>(window, end, protocol);
    if (first >> 28 != 6) | (payload_bytes == 0) | !transport.is_usual(outer) {
        return None;
    }
    Some(Packet {
        source: u128::from_be_bytes(*window.chunk(AT + 8)?),
        destination: u128::from_be_bytes(*window.chunk(AT + 24)?),
        ip_at: AT as u32,
        transport_at: AT as u32 + 40,
        end: end as u32,
        length: payload_bytes + 40,
        identification: 0,
        fragment: 0,
        source_port: transport.source_port,
        destination_port: transport.destination_port,
        vlan,
        version: 6,
        protocol,
        ttl: second as u8,
        traffic_class: (first >> 20) as u8,
        tcp_flags: transport.tcp_flags,
        mpls: 0,
    })
}

/// What follows the IP header.
struct Transport {
    source_port: u16,
    destination_port: u16,
    tcp_flags: u8,
    is_udp: bool,
    /// It is TCP or UDP, and the header is all there.
    is_whole: bool,
}

impl Transport {
    #[inline(always)]
    fn at<const HEADER: usize, const AT: usize>(
        window: Window<'_>,
        end: usize,
        protocol: u8,
    ) -> Self {
        let (is_tcp, is_udp) = (protocol == protocol::TCP, protocol == protocol::UDP);
        let (ports, flags) = (window.be32(AT + HEADER), window.byte(AT + HEADER + 13));
        let header_bytes = if is_tcp { TCP_BYTES } else { UDP_BYTES };
        Self {
            source_port: (ports >> 16) as u16,
            destination_port: ports as u16,
            tcp_flags: flags & u8::from(is_tcp).wrapping_neg(),
            is_udp,
            is_whole: (is_tcp | is_udp) & (end >= AT + HEADER + header_bytes),
        }
    }

    /// Whether nothing can be inside that is wanted instead.
    #[inline(always)]
    fn is_usual(&self, outer: bool) -> bool {
        let is_tunnel = tunnel::is_port(self.destination_port) & self.is_udp & !outer;
        self.is_whole & !is_tunnel
    }
}

#[cfg(test)]
mod tests {
    use twixt_model::mix;

    use super::super::{ParseOptions, parse, walk};
    use super::*;
    use crate::LinkType;
    use crate::window::Space;

    const TUNNEL_PORTS: [u16; 5] = [2152, 4789, 4790, 6081, 8472];

    /// An Ethernet frame drawn from `seed`, most often IP with TCP or UDP, cut anywhere.
    fn drawn(seed: u64) -> Vec<u8> {
        let mut frame: Vec<u8> = (0..140).map(|at| mix(seed << 8 | at) as u8).collect();
        let draw = |shift: u32, most: u64| (mix(!seed) >> shift) % most;
        let mut at = 14;
        if draw(0, 4) == 0 {
            frame[12..14].copy_from_slice(&ether_type::VLAN.to_be_bytes());
            at = 18;
        }
        let protocol = [protocol::TCP, protocol::UDP, protocol::UDP, 1, 47, 4][draw(8, 6) as usize];
        let (kind, first, header_bytes) = match draw(4, 2) {
            0 => (ether_type::IPV4, if draw(12, 8) == 0 { 0x46 } else { 0x45 }, 20),
            _ => (ether_type::IPV6, 0x60, 40),
        };
        frame[at - 2..at].copy_from_slice(&kind.to_be_bytes());
        frame[at] = first;
        let length_at = if header_bytes == 20 { 2 } else { 4 };
        let length = [0, 20, 28, 40, 60, 90, 110, 1500][draw(16, 8) as usize];
        frame[at + length_at..][..2].copy_from_slice(&u16::to_be_bytes(length));
        frame[at + if header_bytes == 20 { 9 } else { 6 }] = protocol;
        if header_bytes == 20 && draw(20, 4) > 0 {
            frame[at + 6..at + 8].copy_from_slice(&[0x40, 0]);
        }
        if draw(24, 4) == 0 {
            let port = TUNNEL_PORTS[draw(26, 5) as usize];
            frame[at + header_bytes + 2..][..2].copy_from_slice(&port.to_be_bytes());
        }
        if draw(32, 2) == 0 {
            frame.truncate(draw(34, 141) as usize);
        }
        frame
    }

    #[test]
    fn equal_to_what_the_walk_finds() {
        let mut found = 0;
        for seed in 0..50_000 {
            let frame = drawn(seed);
            let options = ParseOptions { outer: seed % 2 == 0, wire_length: Some(1514) };
            let mut space = Space::default();
            let window = Window::of((&frame).into(), &mut space);
            let outer = options.outer;
            let quick = usual(window, frame.len(), outer).or(rarer(window, frame.len(), outer));
            found += u64::from(quick.is_some());
            let walked = walk(LinkType::ETHERNET, &frame, options);
            assert_eq!(parse(LinkType::ETHERNET, &frame, options), walked, "seed {seed}");
        }
        assert!(found > 5_000, "{found} of 50000 are usual");
    }
}
