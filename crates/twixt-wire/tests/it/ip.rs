//! IPv4, IPv6, TCP, UDP and the rest: what is read from their headers.

use std::net::IpAddr;

use twixt_model::TcpFields;
use twixt_wire::{EXTENSIONS_MAX, IcmpEcho, LinkType, Packet, ParseOptions, Skip, parse};

use crate::build::{
    A, A6, B, B6, Tcp, V4, echo, ethernet, ipv4, ipv6, joined, parsed, plain, sctp, timestamps, udp,
};

#[track_caller]
fn raw(packet: &[u8]) -> Packet {
    parse(LinkType::RAW, packet, ParseOptions::default()).unwrap()
}

#[track_caller]
fn check_skip(packet: &[u8], expected: Skip) {
    assert_eq!(parse(LinkType::RAW, packet, ParseOptions::default()), Err(expected));
}

#[test]
fn the_fields_of_ipv4() {
    let header = V4 { tos: 0xb8 | 1, fragment: 0x4000, options: vec![1; 8], ..V4::default() };
    let packet = raw(&header.carrying(6, &Tcp::default().carrying(b"hello")));
    assert_eq!((packet.source(), packet.destination()), (IpAddr::from(A), IpAddr::from(B)));
    assert_eq!((packet.source_port(), packet.destination_port()), (40_312, 443));
    assert_eq!((packet.version(), packet.protocol(), packet.ttl()), (4, 6, 64));
    assert_eq!((packet.length(), packet.identification()), (28 + 32 + 5, 0x1234));
    assert_eq!((packet.dscp(), packet.tcp_flags()), (46, 0x18));
    assert!(!packet.more_fragments() && packet.is_first_fragment() && !packet.is_cut());
    assert_eq!(packet.flow_key().to_string(), "tcp 10.0.0.1:40312 > 10.0.1.9:443");
}

#[test]
fn the_fields_of_ipv6() {
    let packet = raw(&ipv6(17, &udp(1, 2, b"hello")));
    assert_eq!((packet.source(), packet.destination()), (IpAddr::from(A6), IpAddr::from(B6)));
    assert_eq!((packet.version(), packet.protocol(), packet.ttl()), (6, 17, 63));
    assert_eq!((packet.length(), packet.identification(), packet.dscp()), (53, 0, 46));
    assert_eq!(packet.flow_key().to_string(), "udp [2001:db8::1]:1 > [2001:db8::2]:2");
}

#[test]
fn extension_headers_are_passed() {
    let options = |next: u8, units: u8| joined(&[&[next, units], &vec![0; 6 + 8 * units as usize]]);
    let authentication = joined(&[&[17, 4], &[0; 22]]);
    let chain = joined(&[
        &options(43, 0),
        &options(60, 2),
        &options(135, 1),
        &options(51, 0),
        &authentication,
        &udp(5, 6, b""),
    ]);
    let packet = raw(&ipv6(0, &chain));
    assert_eq!((packet.protocol(), packet.source_port()), (17, 5));
    let packet = raw(&ipv4(51, &joined(&[&authentication, &udp(5, 6, b"")])));
    assert_eq!((packet.protocol(), packet.source_port()), (17, 5));
    assert_eq!(raw(&ipv6(135, &options(59, 0))).protocol(), 135);
    assert_eq!(raw(&ipv6(59, b"")).protocol(), 59);
    check_skip(&ipv6(0, &options(17, 0).repeat(1)[..4]), Skip::BadHeader);
    check_skip(&ipv6(0, &joined(&[&[17, 9], &[0; 6], &udp(5, 6, b"")])), Skip::BadHeader);
    check_skip(&ipv6(60, &options(60, 0).repeat(EXTENSIONS_MAX + 1)), Skip::TooDeep);
}

#[test]
fn only_first_fragments_have_ports() {
    let first = V4 { fragment: 0x2000, ..V4::default() }.carrying(17, &udp(1, 2, &[0; 8]));
    let packet = raw(&first);
    assert_eq!((packet.source_port(), packet.more_fragments()), (1, true));
    let later = V4 { fragment: 0x2002, ..V4::default() }.carrying(17, &udp(1, 2, &[0; 8]));
    let packet = raw(&later);
    assert_eq!((packet.source_port(), packet.fragment_offset_bytes()), (0, 16));
    assert!(!packet.has_ports() && packet.more_fragments());
    let fragment6 = |word: u16| {
        let header = joined(&[&[17, 0], &word.to_be_bytes(), &[1, 2, 3, 4]]);
        raw(&ipv6(44, &joined(&[&header, &udp(1, 2, &[0; 8])])))
    };
    let (first, later) = (fragment6(1), fragment6(0x0010));
    assert_eq!((first.source_port(), first.identification()), (1, 0x0304));
    assert!(first.more_fragments() && !later.more_fragments());
    assert_eq!((later.source_port(), later.fragment_offset_bytes()), (0, 16));
    assert_eq!((later.protocol(), later.identification()), (17, 0x0304));
}

#[test]
fn protocols_without_ports_have_none() {
    for protocol in [1, 47, 50, 58, 89, 136, 255] {
        let packet = raw(&ipv4(protocol, &[0x11; 12]));
        assert_eq!(
            (packet.protocol(), packet.source_port(), packet.has_ports()),
            (protocol, 0, false)
        );
    }
    assert_eq!(raw(&ipv4(132, &sctp(7, 8, b""))).destination_port(), 8);
}

#[test]
fn the_fields_of_tcp() {
    let frame = ethernet(0x0800, &ipv4(6, &Tcp::default().carrying(b"hello")));
    let fields = parsed(&frame).unwrap().tcp(&frame).unwrap();
    let expected = TcpFields {
        sequence: 0x0102_0304,
        acknowledgement: 0x0506_0708,
        flags: 0x18,
        payload_bytes: 5,
        timestamps: Some((7, 9)),
    };
    assert_eq!(fields, expected);
    let frame = ethernet(0x0800, &plain());
    assert_eq!(parsed(&frame).unwrap().tcp(&frame), None);
}

#[test]
fn timestamps_are_found_among_other_options() {
    let with = |options: Vec<u8>| {
        let packet = ipv4(6, &Tcp { options, ..Tcp::default() }.carrying(b""));
        raw(&packet).tcp(&packet).unwrap().timestamps
    };
    assert_eq!(with(vec![]), None);
    assert_eq!(with(joined(&[&[2, 4, 5, 0xb4], &timestamps(1, 2), &[0; 4]])), Some((1, 2)));
    assert_eq!(with(joined(&[&[0, 0, 0, 0], &timestamps(1, 2)])), None);
    assert_eq!(with(joined(&[&[5, 0, 1, 1], &timestamps(1, 2)])), None);
    assert_eq!(with(joined(&[&[5, 200, 1, 1], &timestamps(1, 2)])), None);
    assert_eq!(with(vec![8, 10, 1, 1]), None);
}

#[test]
fn payload_lies_behind_the_header() {
    let tcp = ipv4(6, &Tcp::default().carrying(b"hello"));
    assert_eq!(raw(&tcp).payload(&tcp), b"hello");
    let datagram = joined(&[&ipv6(17, &udp(1, 2, b"hello")), b"padding"]);
    assert_eq!(raw(&datagram).payload(&datagram), b"hello");
    let esp = ipv4(50, b"hello");
    assert_eq!(raw(&esp).payload(&esp), b"hello");
    assert_eq!(raw(&esp).payload(b"another frame"), b"");
}

#[test]
fn echoes_are_told() {
    let request = ipv4(1, &echo(5, 6));
    let expected = IcmpEcho { reply: false, identifier: 5, sequence: 6 };
    assert_eq!(raw(&request).icmp_echo(&request), Some(expected));
    let reply = ipv6(58, &[129, 0, 0, 0, 0, 5, 0, 6]);
    let expected = IcmpEcho { reply: true, ..expected };
    assert_eq!(raw(&reply).icmp_echo(&reply), Some(expected));
    let unreachable = ipv4(1, &[3, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(raw(&unreachable).icmp_echo(&unreachable), None);
}

#[test]
fn contradictory_headers_are_bad() {
    let header = V4 { length: Some(19), ..V4::default() };
    check_skip(&header.carrying(17, &udp(1, 2, b"")), Skip::BadHeader);
    let mut short_header = plain();
    short_header[0] = 0x44;
    check_skip(&short_header, Skip::BadHeader);
    let header = V4 { length: Some(22), ..V4::default() };
    check_skip(&header.carrying(17, &udp(1, 2, b"")), Skip::BadHeader);
}

/// With a snap length, headers and ports are enough; the length is that of the whole packet.
#[test]
fn a_cut_packet_is_usable_from_its_ports_on() {
    for (whole, enough) in [
        (ipv4(6, &Tcp::default().carrying(&[1; 100])), 24),
        (ipv6(17, &udp(1, 2, &[1; 100])), 44),
        (ipv4(50, &[1; 100]), 20),
        (V4 { fragment: 5, ..V4::default() }.carrying(6, &[1; 100]), 20),
        (V4 { options: vec![1; 12], ..V4::default() }.carrying(17, &udp(1, 2, &[1; 9])), 36),
    ] {
        for bytes in 1..whole.len() {
            let packet = parse(LinkType::RAW, &whole[..bytes], ParseOptions::default());
            if bytes < enough {
                assert_eq!(packet, Err(Skip::Truncated), "{bytes} bytes");
            } else {
                let packet = packet.unwrap();
                assert_eq!((packet.length() as usize, packet.is_cut()), (whole.len(), true));
            }
        }
    }
}

#[test]
fn a_length_of_zero_means_what_the_wire_says() {
    let giant = V4 { length: Some(0), ..V4::default() }.carrying(6, &Tcp::default().carrying(b""));
    let frame = ethernet(0x0800, &giant);
    let with = |wire_length| {
        let options = ParseOptions { outer: false, wire_length };
        parse(LinkType::ETHERNET, &frame, options).unwrap()
    };
    assert_eq!(with(Some(70_014)).length(), 70_000);
    assert!(with(Some(70_014)).is_cut());
    assert_eq!(with(None).length() as usize, giant.len());
    let mut giant6 = ipv6(6, &Tcp::default().carrying(b""));
    giant6[4..6].fill(0);
    let options = ParseOptions { outer: false, wire_length: Some(90_000) };
    assert_eq!(parse(LinkType::RAW, &giant6, options).unwrap().length(), 90_000);
}
