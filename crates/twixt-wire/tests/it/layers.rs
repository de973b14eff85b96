//! Link types and what lies below IP.

use twixt_wire::{LAYERS_MAX, LinkType, ParseOptions, Skip, parse};

use crate::build::{ethernet, ipv4, ipv6, joined, mpls, parsed, plain, pppoe, udp, vlan};

/// The frame holds the plain packet, or is skipped.
#[track_caller]
fn check(link: LinkType, frame: &[u8], expected: Result<(), Skip>) {
    let packet = parse(link, frame, ParseOptions::default());
    let ends = packet.map(|packet| (packet.source_port(), packet.destination_port()));
    assert_eq!(ends, expected.map(|()| (1000, 2000)));
}

#[track_caller]
fn check_ethernet(frame: &[u8], expected: Result<(), Skip>) {
    check(LinkType::ETHERNET, frame, expected);
}

fn plain6() -> Vec<u8> {
    ipv6(17, &udp(1000, 2000, b""))
}

#[test]
fn ip_follows_the_header_of_every_link_type() {
    let zeros = [0; 14];
    let sll2 = joined(&[&[0x08, 0], &[0; 18], &plain()]);
    check(LinkType::ETHERNET, &ethernet(0x0800, &plain()), Ok(()));
    check(LinkType::ETHERNET, &ethernet(0x86dd, &plain6()), Ok(()));
    check(LinkType::NULL, &joined(&[&[2, 0, 0, 0], &plain()]), Ok(()));
    check(LinkType::NULL, &joined(&[&[0, 0, 0, 2], &plain()]), Ok(()));
    check(LinkType::NULL, &joined(&[&[30, 0, 0, 0], &plain6()]), Ok(()));
    check(LinkType::NULL, &joined(&[&[7, 0, 0, 0], &plain()]), Err(Skip::NotIp));
    check(LinkType::LOOP, &joined(&[&[0, 0, 0, 24], &plain6()]), Ok(()));
    check(LinkType::LOOP, &joined(&[&[2, 0, 0, 0], &plain()]), Err(Skip::NotIp));
    check(LinkType::LINUX_SLL, &joined(&[&zeros, &[0x86, 0xdd], &plain6()]), Ok(()));
    check(LinkType::LINUX_SLL2, &sll2, Ok(()));
    check(LinkType::PPP, &joined(&[&[0xff, 3, 0, 0x21], &plain()]), Ok(()));
    check(LinkType::PPP, &joined(&[&[0, 0x57], &plain6()]), Ok(()));
    check(LinkType::PPP, &joined(&[&[0x21], &plain()]), Ok(()));
    check(LinkType::PPP, &joined(&[&[0xc0, 0x21], &plain()]), Err(Skip::NotIp));
    check(LinkType::PPP_HDLC, &joined(&[&[0xff, 3, 0, 0x21], &plain()]), Ok(()));
    check(LinkType::PPP_HDLC, &joined(&[&[0x0f, 0, 8, 0], &plain()]), Ok(()));
    check(LinkType::CISCO_HDLC, &joined(&[&[0x8f, 0, 0x86, 0xdd], &plain6()]), Ok(()));
    check(LinkType::PPP_ETHER, &pppoe(0x0021, &plain()), Ok(()));
    check(LinkType(147), &plain(), Err(Skip::UnsupportedLink));
}

#[test]
fn raw_ip_is_told_by_its_version() {
    for number in [12, 14, 101] {
        check(LinkType(number), &plain(), Ok(()));
        check(LinkType(number), &plain6(), Ok(()));
        check(LinkType(number), &[0x50; 60], Err(Skip::NotIp));
        check(LinkType(number), &[], Err(Skip::Truncated));
    }
    check(LinkType::IPV4, &plain(), Ok(()));
    check(LinkType::IPV4, &plain6(), Err(Skip::BadHeader));
    check(LinkType::IPV6, &plain6(), Ok(()));
    check(LinkType::IPV6, &plain(), Err(Skip::BadHeader));
}

#[test]
fn link_types_have_names() {
    assert_eq!(LinkType(1).to_string(), "Ethernet");
    assert_eq!(LinkType(12).to_string(), "raw IP");
    assert_eq!(LinkType(147).to_string(), "link type 147");
    assert!(!LinkType(147).is_supported());
}

#[test]
fn tags_and_labels_are_passed() {
    check_ethernet(&ethernet(0x8100, &vlan(5, 0x0800, &plain())), Ok(()));
    check_ethernet(&ethernet(0x88a8, &vlan(5, 0x8100, &vlan(6, 0x86dd, &plain6()))), Ok(()));
    check_ethernet(&ethernet(0x9100, &vlan(5, 0x8847, &mpls(2, &plain()))), Ok(()));
    let interface_tag = joined(&[&[0; 4], &[0x81, 0], &vlan(5, 0x0800, &plain())]);
    check_ethernet(&ethernet(0x8926, &interface_tag), Ok(()));
    check_ethernet(&ethernet(0x8847, &mpls(1, &plain())), Ok(()));
    check_ethernet(&ethernet(0x8848, &mpls(7, &plain6())), Ok(()));
    check_ethernet(&ethernet(0x8864, &pppoe(0x0021, &plain())), Ok(()));
    check_ethernet(&ethernet(0x8100, &vlan(5, 0x8864, &pppoe(0x0057, &plain6()))), Ok(()));
}

#[test]
fn a_pseudowire_with_control_word_carries_ethernet() {
    let inner = joined(&[&[0, 0, 0, 1], &ethernet(0x0800, &plain())]);
    check_ethernet(&ethernet(0x8847, &mpls(2, &inner)), Ok(()));
}

#[test]
fn llc_with_snap_carries_ip_and_without_it_does_not() {
    let snap = joined(&[&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &plain()]);
    check_ethernet(&ethernet(snap.len() as u16, &snap), Ok(()));
    let spanning_tree = [0x42, 0x42, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    check_ethernet(&ethernet(38, &spanning_tree), Err(Skip::NotIp));
    let vendor = joined(&[&[0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0], &plain()]);
    check_ethernet(&ethernet(vendor.len() as u16, &vendor), Err(Skip::NotIp));
}

#[test]
fn what_is_not_ip_is_skipped_for_its_reason() {
    check_ethernet(&ethernet(0x0806, &[0; 46]), Err(Skip::Arp));
    check_ethernet(&ethernet(0x8100, &vlan(5, 0x0806, &[0; 46])), Err(Skip::Arp));
    check_ethernet(&ethernet(0x88cc, &[0; 46]), Err(Skip::NotIp));
    check_ethernet(&ethernet(0x8863, &[0; 46]), Err(Skip::NotIp));
    check_ethernet(&ethernet(0x8864, &pppoe(0xc021, &[0; 46])), Err(Skip::NotIp));
    check_ethernet(&ethernet(0x0800, &plain6()), Err(Skip::BadHeader));
    check_ethernet(&[0; 13], Err(Skip::Truncated));
    check_ethernet(&ethernet(0x0800, &ipv4(17, &[])), Err(Skip::BadHeader));
}

#[test]
fn too_many_layers_are_skipped() {
    let tagged = |tags: usize| {
        let inner = (1..tags).fold(vlan(0, 0x0800, &plain()), |inner, _| vlan(1, 0x8100, &inner));
        ethernet(0x8100, &inner)
    };
    // Ethernet, the last tag's content and IP itself are layers too.
    check_ethernet(&tagged(LAYERS_MAX - 3), Ok(()));
    check_ethernet(&tagged(LAYERS_MAX - 1), Err(Skip::TooDeep));
}

#[test]
fn the_outermost_tag_counts_and_labels_are_noticed() {
    let tagged = ethernet(0x88a8, &vlan(5, 0x8100, &vlan(6, 0x0800, &plain())));
    assert_eq!(parsed(&tagged).unwrap().vlan(), Some(5));
    let bare = parsed(&ethernet(0x0800, &plain())).unwrap();
    assert_eq!((bare.vlan(), bare.is_mpls()), (None, false));
    assert!(parsed(&ethernet(0x8847, &mpls(1, &plain()))).unwrap().is_mpls());
}
