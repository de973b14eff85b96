//! The innermost packet that can be read is the one that is measured.

use twixt_wire::{LinkType, ParseOptions, Skip, parse};

use crate::build::{Tcp, V4, ethernet, ipv4, ipv6, joined, mpls, plain, udp, vlan};

/// Destination port, protocol and length of what is measured inside `outer`.
#[track_caller]
fn measured(frame: &[u8], outer: bool) -> (u8, u16, u32) {
    let options = ParseOptions { outer, wire_length: None };
    let packet = parse(LinkType::ETHERNET, frame, options).unwrap();
    (packet.protocol(), packet.destination_port(), packet.length())
}

/// The plain packet is found inside, and the tunnel where that is asked for.
#[track_caller]
fn check_inner(outer: &[u8], protocol: u8) {
    let ether_type = if outer[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
    let frame = ethernet(ether_type, outer);
    assert_eq!(measured(&frame, false), (17, 2000, plain().len() as u32));
    let (outermost, _, length) = measured(&frame, true);
    assert_eq!((outermost, length as usize), (protocol, outer.len()));
}

/// The tunnel itself is measured.
#[track_caller]
fn check_outer(outer: &[u8]) {
    let frame = ethernet(0x0800, outer);
    assert_eq!(measured(&frame, false), measured(&frame, true));
    assert_eq!(measured(&frame, false).2 as usize, outer.len());
}

fn vxlan(inner: &[u8]) -> Vec<u8> {
    udp(50_000, 4789, &joined(&[&[8, 0, 0, 0, 0, 0, 7, 0], inner]))
}

fn gre(flags: u8, ether_type: u16, rest: &[u8]) -> Vec<u8> {
    joined(&[&[flags, 0], &ether_type.to_be_bytes(), rest])
}

fn gtp(flags: u8, rest: &[u8]) -> Vec<u8> {
    udp(2152, 2152, &joined(&[&[flags, 255, 0, 0, 0, 0, 0, 1], rest]))
}

#[test]
fn ip_in_ip() {
    check_inner(&ipv4(4, &plain()), 4);
    check_inner(&ipv6(4, &plain()), 4);
    let six_in_four = ethernet(0x0800, &ipv4(41, &ipv6(17, &udp(1, 2000, b""))));
    assert_eq!(measured(&six_in_four, false), (17, 2000, 48));
    check_inner(&ipv4(137, &mpls(2, &plain())), 137);
}

#[test]
fn generic_routing_encapsulation() {
    check_inner(&ipv4(47, &gre(0, 0x0800, &plain())), 47);
    check_inner(&ipv4(47, &gre(0x20, 0x0800, &joined(&[&[9; 4], &plain()]))), 47);
    check_inner(&ipv6(47, &gre(0xb0, 0x0800, &joined(&[&[9; 12], &plain()]))), 47);
    check_inner(&ipv4(47, &gre(0, 0x6558, &ethernet(0x0800, &plain()))), 47);
    check_inner(&ipv4(47, &gre(0, 0x8847, &mpls(1, &plain()))), 47);
    let version_1 = |flags: [u8; 2], rest: &[u8]| {
        ipv4(47, &joined(&[&flags, &[0x88, 0x0b], rest, &[0xff, 3, 0, 0x21], &plain()]))
    };
    check_inner(&version_1([0x30, 0x01], &[0; 8]), 47);
    check_inner(&version_1([0x30, 0x81], &[0; 12]), 47);
    check_outer(&version_1([0x30, 0x02], &[0; 8]));
    check_outer(&ipv4(47, &gre(0x40, 0x0800, &plain())));
    check_outer(&ipv4(47, &gre(0, 0, &[])));
}

#[test]
fn mirrored_frames() {
    let frame = ethernet(0x0800, &plain());
    let type_2 = joined(&[&[0, 0, 0, 1], &[0x10, 0, 0, 0, 0, 0, 0, 0], &frame]);
    let plain_3 = joined(&[&[0, 0, 0, 1], &[0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &frame]);
    let long_3 =
        joined(&[&[0, 0, 0, 1], &[0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], &[0; 8], &frame]);
    check_inner(&ipv4(47, &gre(0, 0x88be, &frame)), 47);
    check_inner(&ipv4(47, &gre(0x10, 0x88be, &type_2)), 47);
    check_inner(&ipv4(47, &gre(0x10, 0x22eb, &plain_3)), 47);
    check_inner(&ipv4(47, &gre(0x10, 0x22eb, &long_3)), 47);
}

#[test]
fn vxlan_and_geneve() {
    let frame = ethernet(0x0800, &plain());
    check_inner(&ipv4(17, &vxlan(&frame)), 17);
    check_inner(&ipv6(17, &vxlan(&ethernet(0x8100, &vlan(9, 0x0800, &plain())))), 17);
    let unassigned = udp(1, 8472, &joined(&[&[8, 0, 0, 0, 0, 0, 7, 0], &frame]));
    check_inner(&ipv4(17, &unassigned), 17);
    let generic = |next, inner: &[u8]| {
        ipv4(17, &udp(1, 4790, &joined(&[&[0x0c, 0, 0, next, 0, 0, 7, 0], inner])))
    };
    check_inner(&generic(1, &plain()), 17);
    check_inner(&generic(3, &frame), 17);
    check_outer(&generic(4, &plain()));
    let geneve = |head: &[u8], inner: &[u8]| ipv4(17, &udp(1, 6081, &joined(&[head, inner])));
    check_inner(&geneve(&[0, 0, 0x65, 0x58, 0, 0, 7, 0], &frame), 17);
    check_inner(&geneve(&[1, 0, 0x08, 0, 0, 0, 7, 0, 1, 2, 3, 0], &plain()), 17);
    check_outer(&geneve(&[0x40, 0, 0x08, 0, 0, 0, 7, 0], &plain()));
    check_outer(&ipv4(17, &udp(1, 4789, &joined(&[&[0; 8], &frame]))));
}

#[test]
fn mobile_user_plane() {
    check_inner(&ipv4(17, &gtp(0x30, &plain())), 17);
    check_inner(&ipv4(17, &gtp(0x32, &joined(&[&[0, 1, 0, 0x85], &plain()]))), 17);
    let extended = joined(&[&[0, 0, 0, 0x85], &[1, 0, 9, 0], &plain()]);
    check_inner(&ipv4(17, &gtp(0x34, &extended)), 17);
    check_outer(&ipv4(17, &gtp(0x34, &joined(&[&[0, 0, 0, 0x85], &[0, 0, 9, 0], &plain()]))));
    check_outer(&ipv4(17, &gtp(0x20, &plain())));
}

#[test]
fn tunnels_in_tunnels() {
    let inner = ethernet(0x8847, &mpls(2, &ipv4(4, &plain())));
    check_inner(&ipv4(47, &gre(0, 0x86dd, &ipv6(17, &vxlan(&inner)))), 47);
}

#[test]
fn a_tunnel_whose_inside_cannot_be_read_is_measured_itself() {
    check_outer(&ipv4(17, &vxlan(&ethernet(0x0806, &[0; 46]))));
    check_outer(&ipv4(17, &vxlan(&ethernet(0x0800, &plain()[..10]))));
    check_outer(&ipv4(4, &[0; 40]));
    let whole = ethernet(0x0800, &ipv4(4, &plain()));
    assert_eq!(measured(&whole[..14 + 20 + 23], false).0, 4, "cut before the inner ports");
    assert_eq!(measured(&whole[..14 + 20 + 24], false).0, 17);
}

#[test]
fn padding_is_not_taken_for_the_inside() {
    let padded = joined(&[&ethernet(0x0800, &ipv4(4, &[])), &plain()]);
    assert_eq!(measured(&padded, false), (4, 0, 20));
}

#[test]
fn first_fragments_are_opened_and_later_ones_are_not() {
    let payload = vxlan(&ethernet(0x0800, &ipv4(6, &Tcp::default().carrying(&[1; 99]))));
    let first = V4 { fragment: 0x2000, ..V4::default() }.carrying(17, &payload[..80]);
    assert_eq!(measured(&ethernet(0x0800, &first), false), (6, 443, 151));
    let later = V4 { fragment: 10, ..V4::default() }.carrying(17, &payload[80..]);
    check_outer(&later);
}

#[test]
fn endless_tunnels_are_skipped() {
    let deep = (0..40).fold(plain(), |inner, _| ipv4(4, &inner));
    let packet = parse(LinkType::RAW, &deep, ParseOptions::default());
    assert_eq!(packet, Err(Skip::TooDeep));
    let outer = ParseOptions { outer: true, wire_length: None };
    assert_eq!(parse(LinkType::RAW, &deep, outer).unwrap().length() as usize, deep.len());
}
