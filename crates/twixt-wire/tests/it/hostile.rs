//! No bytes make anything panic.

use proptest::prelude::*;
use twixt_model::{DigestHash, DigestProfile};
use twixt_wire::{Digester, HashKey, LinkType, ParseOptions, available, parse};

use crate::build::{Tcp, V4, ethernet, ipv4, ipv6, joined, mpls, plain, pppoe, udp, vlan};

const LINKS: [u16; 15] = [0, 1, 9, 12, 14, 50, 51, 101, 104, 108, 113, 228, 229, 276, 9999];

/// Does all that can be done with a frame.
fn exercise(link: LinkType, frame: &[u8], wire_length: Option<u32>) {
    for outer in [false, true] {
        let Ok(packet) = parse(link, frame, ParseOptions { outer, wire_length }) else { continue };
        let digester =
            Digester::new(DigestProfile::Nat, DigestHash::Xxh3, 24, HashKey::from_seed(1));
        let _ = digester.digest(&packet, frame);
        // Another frame than the one that was parsed is a mistake, but no reason to panic.
        let _ = digester.digest(&packet, &frame[..frame.len() / 2]);
        let _ = (available(&packet, frame), available(&packet, &frame[..frame.len() / 2]));
        let _ = (packet.tcp(frame), packet.icmp_echo(frame), packet.payload(frame));
        let key = packet.flow_key();
        assert_eq!(digester.flow_hash(&key), digester.packet_flow_hash(&packet));
        assert!(packet.has_ports() || (key.source_port, key.destination_port) == (0, 0));
    }
}

/// One frame of every kind.
fn frames() -> Vec<Vec<u8>> {
    let tcp = ipv4(6, &Tcp::default().carrying(b"hello"));
    let inner = ethernet(0x0800, &tcp);
    let vxlan = udp(1, 4789, &joined(&[&[8, 0, 0, 0, 0, 0, 7, 0], &inner]));
    let geneve = udp(1, 6081, &joined(&[&[1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 0], &inner]));
    let gtp = joined(&[&[0x34, 255, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0], &tcp]);
    let gre = joined(&[&[0xb0, 0, 0x65, 0x58], &[0; 12], &inner]);
    let extensions = joined(&[&[44, 0], &[0; 6], &[51, 0, 0, 1, 0, 0, 0, 1]]);
    let authentication = joined(&[&[6, 4], &[0; 22], &Tcp::default().carrying(b"")]);
    let options = V4 { options: vec![1; 40], ..V4::default() };
    vec![
        inner.clone(),
        ethernet(0x0800, &options.carrying(17, &udp(1, 2, b"hello"))),
        ethernet(0x0800, &ipv4(17, &vxlan)),
        ethernet(0x0800, &ipv4(17, &geneve)),
        ethernet(0x0800, &ipv4(17, &udp(1, 2152, &gtp))),
        ethernet(0x86dd, &ipv6(47, &gre)),
        ethernet(0x86dd, &ipv6(60, &joined(&[&extensions, &authentication]))),
        ethernet(0x8100, &vlan(5, 0x8864, &pppoe(0x0021, &plain()))),
        ethernet(0x8847, &mpls(3, &joined(&[&[0; 4], &inner]))),
        ethernet(0x0800, &ipv4(47, &joined(&[&[0x10, 0, 0x22, 0xeb], &[0; 16], &inner]))),
    ]
}

#[test]
fn valid_frames_may_be_cut_anywhere() {
    for frame in frames() {
        exercise(LinkType::ETHERNET, &frame, None);
        for bytes in 0..frame.len() {
            exercise(LinkType::ETHERNET, &frame[..bytes], Some(frame.len() as u32));
        }
    }
}

#[test]
fn valid_frames_may_have_any_byte_changed() {
    for frame in frames() {
        for index in 0..frame.len() {
            for value in [0x00, 0x01, 0x40, 0x45, 0x60, 0x7f, 0x80, 0xff] {
                let mut changed = frame.clone();
                changed[index] = value;
                exercise(LinkType::ETHERNET, &changed, None);
            }
        }
    }
}

proptest! {
    #![proptest_config(twixt_testing::cases(3000))]

    #[test]
    fn arbitrary_bytes_of_any_link_type(
        link in prop::sample::select(LINKS.to_vec()),
        frame in prop::collection::vec(any::<u8>(), 0..200),
        wire_length in any::<Option<u32>>(),
    ) {
        exercise(LinkType(link), &frame, wire_length);
    }

    /// Random bytes behind a header that leads somewhere.
    #[test]
    fn arbitrary_bytes_behind_a_header(
        ether_type in prop::sample::select(vec![
            0x0800_u16, 0x86dd, 0x8100, 0x8847, 0x8864, 0x6558, 40,
        ]),
        first in prop::sample::select(vec![0x45_u8, 0x46, 0x4f, 0x60, 0x11, 0xaa, 0x00]),
        protocol in prop::sample::select(vec![0_u8, 4, 6, 17, 41, 44, 47, 51, 60, 135, 137]),
        mut frame in prop::collection::vec(any::<u8>(), 1..200),
        wire_length in any::<u32>(),
    ) {
        frame[0] = first;
        if let Some(byte) = frame.get_mut(if first >> 4 == 4 { 9 } else { 6 }) {
            *byte = protocol;
        }
        if let Some(high) = frame.get_mut(if first >> 4 == 4 { 2 } else { 4 }) {
            *high = 0;
        }
        exercise(LinkType::ETHERNET, &ethernet(ether_type, &frame), Some(wire_length));
    }
}
