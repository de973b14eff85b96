//! Etherparse as referee: it builds packets, and its reading of packets must be ours.

use std::net::IpAddr;

use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice, VlanId};
use proptest::prelude::*;
use twixt_wire::Packet;

use crate::build::{Tcp, V4, ethernet, ipv6, joined, parsed, udp, vlan};

/// What both readers say of a packet.
#[derive(Debug, PartialEq)]
struct Reading {
    addresses: (IpAddr, IpAddr),
    protocol: u8,
    ttl: u8,
    length: u32,
    fragment: (u32, bool),
    vlan: Option<u16>,
    ports: (u16, u16),
    payload: Vec<u8>,
}

fn ours(packet: &Packet, frame: &[u8]) -> Reading {
    Reading {
        addresses: (packet.source(), packet.destination()),
        protocol: packet.protocol(),
        ttl: packet.ttl(),
        length: packet.length(),
        fragment: (packet.fragment_offset_bytes(), packet.more_fragments()),
        vlan: packet.vlan(),
        ports: (packet.source_port(), packet.destination_port()),
        payload: packet.payload(frame).to_vec(),
    }
}

fn theirs(frame: &[u8]) -> Reading {
    let sliced = SlicedPacket::from_ethernet(frame).expect("the frame is valid");
    let vlan = sliced.vlan_ids().first().map(|number| number.value());
    let (ports, payload) = match &sliced.transport {
        Some(TransportSlice::Udp(udp)) => {
            ((udp.source_port(), udp.destination_port()), udp.payload())
        }
        Some(TransportSlice::Tcp(tcp)) => {
            ((tcp.source_port(), tcp.destination_port()), tcp.payload())
        }
        _ => ((0, 0), sliced.ip_payload().map_or(&[][..], |payload| payload.payload)),
    };
    let payload = payload.to_vec();
    match sliced.net.expect("it is IP") {
        NetSlice::Ipv4(ip) => Reading {
            addresses: (ip.header().source_addr().into(), ip.header().destination_addr().into()),
            protocol: ip.payload().ip_number.0,
            ttl: ip.header().ttl(),
            length: ip.header().total_len().into(),
            fragment: (
                u32::from(ip.header().fragments_offset().value()) * 8,
                ip.header().more_fragments(),
            ),
            vlan,
            ports,
            payload,
        },
        NetSlice::Ipv6(ip) => Reading {
            addresses: (ip.header().source_addr().into(), ip.header().destination_addr().into()),
            protocol: ip.payload().ip_number.0,
            ttl: ip.header().hop_limit(),
            length: u32::from(ip.header().payload_length()) + 40,
            fragment: (0, false),
            vlan,
            ports,
            payload,
        },
        NetSlice::Arp(_) => unreachable!("the frame carries IP"),
    }
}

#[track_caller]
fn check(frame: &[u8]) {
    assert_eq!(ours(&parsed(frame).unwrap(), frame), theirs(frame), "{frame:02x?}");
}

proptest! {
    #![proptest_config(twixt_testing::cases(500))]

    #[test]
    fn packets_that_the_referee_built(
        six: bool, tcp: bool, tags in prop::option::of((0_u16..4096, 0_u16..4096)),
        ttl: u8, ports: (u16, u16), source: [u8; 16], destination: [u8; 16],
        payload in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        // Ports of tunnels would make us look inside.
        let to = if [2152, 4789, 4790, 6081, 8472].contains(&ports.1) { 1 } else { ports.1 };
        let start = PacketBuilder::ethernet2([1; 6], [2; 6]);
        let short = |bytes: [u8; 16]| [bytes[0], bytes[1], bytes[2], bytes[3]];
        let number = |number| VlanId::try_new(number).unwrap();
        let ip = match (tags, six) {
            (None, true) => start.ipv6(source, destination, ttl),
            (None, false) => start.ipv4(short(source), short(destination), ttl),
            (Some((outer, inner)), true) => {
                start.double_vlan(number(outer), number(inner)).ipv6(source, destination, ttl)
            }
            (Some((outer, _)), false) => {
                start.single_vlan(number(outer)).ipv4(short(source), short(destination), ttl)
            }
        };
        let mut frame = Vec::new();
        if tcp {
            ip.tcp(ports.0, to, 7, 8).ack(9).write_to_vec(&mut frame, &payload).unwrap();
        } else {
            ip.udp(ports.0, to).write_to_vec(&mut frame, &payload).unwrap();
        }
        check(&frame);
    }

    #[test]
    fn ipv4_with_options_and_fragments(
        words in 0_usize..11, fragment: u16, protocol in prop::sample::select(vec![6_u8, 17, 89]),
        tags in 0_usize..4, tos: u8, payload in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let transport = match protocol {
            6 => Tcp { options: vec![1; words * 4], ..Tcp::default() }.carrying(&payload),
            17 => udp(1, 2, &payload),
            _ => payload,
        };
        let header = V4 { options: vec![1; words * 4], fragment, tos, ..V4::default() };
        let packet = header.carrying(protocol, &transport);
        // Fragments are not opened by the referee, not even the first.
        if fragment & 0x3fff == 0 || fragment & 0x1fff != 0 {
            let frame = (0..tags).fold((0x0800, packet), |(ether_type, inner), tag| {
                (0x8100, vlan(tag as u16, ether_type, &inner))
            });
            let frame = ethernet(frame.0, &frame.1);
            let mut reading = ours(&parsed(&frame).unwrap(), &frame);
            reading.payload.truncate(theirs(&frame).payload.len());
            prop_assert_eq!(reading, theirs(&frame));
        }
    }

    #[test]
    fn ipv6_with_extension_headers(
        chain in prop::collection::vec((prop::sample::select(vec![60_u8, 43, 51]), 0_u8..4), 0..5),
        payload in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut bytes = udp(1, 2, &payload);
        let mut next = 17;
        for (number, units) in chain {
            let header = match number {
                51 => joined(&[&[next, units + 1], &vec![0; (usize::from(units) + 3) * 4 - 2]]),
                _ => joined(&[&[next, units], &vec![0; 6 + usize::from(units) * 8]]),
            };
            bytes = joined(&[&header, &bytes]);
            next = number;
        }
        check(&ethernet(0x86dd, &ipv6(next, &bytes)));
    }
}
