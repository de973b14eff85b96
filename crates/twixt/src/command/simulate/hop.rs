//! What a router does to a packet that it forwards: one less to live.

use twixt_wire::LinkType;

/// VLAN tags before the IP header at most.
const TAGS_MAX: usize = 4;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad, and what was used before the latter.
const ETHERTYPES_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// Offsets from the start of the IP header.
const IPV4_TTL: usize = 8;
const IPV4_CHECKSUM: usize = 10;
const IPV6_HOP_LIMIT: usize = 7;

/// Lowers the time to live or hop limit of the outermost IP header by one; whether it did. Frames
/// whose IP header does not follow the link header or VLAN tags stay as they are, as do those that
/// have nothing left to live.
pub(super) fn forward(link: LinkType, frame: &mut [u8]) -> bool {
    let Some(at) = ip_offset(link, frame) else { return false };
    let header = &mut frame[at..];
    match header.first().map(|first| first >> 4) {
        Some(4) => lower_ttl(header),
        Some(6) => lower_hop_limit(header),
        _ => false,
    }
}

/// Where the outermost IP header begins.
fn ip_offset(link: LinkType, frame: &[u8]) -> Option<usize> {
    let typed = |type_at: usize, end: usize| is_ip(be16(frame, type_at)?).then_some(end);
    match link {
        LinkType::ETHERNET => behind_tags(frame),
        LinkType::LINUX_SLL => typed(14, 16),
        LinkType::LINUX_SLL2 => typed(0, 20),
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 => Some(0),
        _ => None,
    }
}

fn behind_tags(frame: &[u8]) -> Option<usize> {
    let mut type_at = 12;
    for _ in 0..=TAGS_MAX {
        match be16(frame, type_at)? {
            ether_type if is_ip(ether_type) => return Some(type_at + 2),
            ether_type if ETHERTYPES_VLAN.contains(&ether_type) => type_at += 4,
            _ => return None,
        }
    }
    None
}

fn is_ip(ether_type: u16) -> bool {
    matches!(ether_type, ETHERTYPE_IPV4 | ETHERTYPE_IPV6)
}

/// The checksum follows, as RFC 1624 says in section 3 (equation 3): the rest of the header need
/// not be right, nor there.
fn lower_ttl(header: &mut [u8]) -> bool {
    let (Some(before), Some(checksum)) = (be16(header, IPV4_TTL), be16(header, IPV4_CHECKSUM))
    else {
        return false;
    };
    if header[IPV4_TTL] == 0 {
        return false;
    }
    let after = before - 0x0100;
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    put16(header, IPV4_TTL, after);
    put16(header, IPV4_CHECKSUM, !fold(sum));
    true
}

fn lower_hop_limit(header: &mut [u8]) -> bool {
    match header.get_mut(IPV6_HOP_LIMIT) {
        Some(limit) if *limit > 0 => *limit -= 1,
        _ => return false,
    }
    true
}

/// The one's complement sum in 16 bits: carries are added at the bottom.
const fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use twixt_wire::{ParseOptions, parse};

    use super::*;

    const IPV6_HEADER: [u8; 48] = {
        let mut packet = [0; 48];
        packet[0] = 0x60;
        packet[5] = 8; // payload
        packet[6] = 17; // UDP
        packet[7] = 255; // hop limit
        packet
    };

    /// Over the whole header, as RFC 791 says.
    fn full_checksum(header: &[u8]) -> u16 {
        let words = (0..header.len()).step_by(2).filter(|&at| at != IPV4_CHECKSUM);
        !fold(words.map(|at| u32::from(be16(header, at).unwrap())).sum())
    }

    fn ipv4_header(ttl: u8, identification: u16) -> Vec<u8> {
        let mut header =
            vec![0x45, 0, 0, 28, 0, 0, 0x40, 0, ttl, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        put16(&mut header, 4, identification);
        let checksum = full_checksum(&header);
        put16(&mut header, IPV4_CHECKSUM, checksum);
        header.extend([0, 53, 0, 9, 0, 8, 0, 0]); // UDP
        header
    }

    #[test]
    fn the_checksum_is_what_the_whole_header_gives() {
        // Every identification runs the checksum through all of its values, carries included.
        for identification in 0..=u16::MAX {
            for ttl in [1, 2, 64, 255] {
                let mut header = ipv4_header(ttl, identification);
                assert!(forward(LinkType::RAW, &mut header));
                assert_eq!(header[IPV4_TTL], ttl - 1);
                let written = be16(&header, IPV4_CHECKSUM).unwrap();
                assert_eq!(written, full_checksum(&header[..20]), "{ttl} {identification}");
            }
        }
    }

    #[track_caller]
    fn check(link: LinkType, before_ip: &[u8], packet: &[u8], lowered: bool) {
        let frame: Vec<u8> = [before_ip, packet].concat();
        let mut forwarded = frame.clone();
        assert_eq!(forward(link, &mut forwarded), lowered);
        if !lowered {
            assert_eq!(forwarded, frame);
            return;
        }
        // The parser looks for the header by itself, and agrees.
        let options = ParseOptions { outer: true, ..ParseOptions::default() };
        let ttl = |frame: &[u8]| parse(link, frame, options).unwrap().ttl();
        assert_eq!(ttl(&forwarded), ttl(&frame) - 1);
        assert_eq!(forwarded[..before_ip.len()], *before_ip);
    }

    #[test]
    fn the_header_is_found_behind_what_precedes_it() {
        let ipv4 = ipv4_header(64, 1);
        let ethernet = |types: &[u8]| [&[2; 12], types].concat();
        check(LinkType::RAW, &[], &IPV6_HEADER, true);
        check(LinkType::ETHERNET, &ethernet(&[8, 0]), &ipv4, true);
        check(LinkType::ETHERNET, &ethernet(&[0x86, 0xdd]), &IPV6_HEADER, true);
        check(LinkType::ETHERNET, &ethernet(&[0x81, 0, 0, 7, 8, 0]), &ipv4, true);
        let two_tags = ethernet(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8, 8, 0]);
        check(LinkType::ETHERNET, &two_tags, &ipv4, true);
        check(LinkType::LINUX_SLL, &[&[0; 14][..], &[8, 0]].concat(), &ipv4, true);
        check(LinkType::LINUX_SLL2, &[&[8, 0][..], &[0; 18]].concat(), &ipv4, true);
    }

    #[test]
    fn what_is_not_understood_stays_as_it_is() {
        let ipv4 = ipv4_header(64, 1);
        let mpls = [&[2; 12][..], &[0x88, 0x47, 0, 0, 0x11, 0xff]].concat();
        check(LinkType::ETHERNET, &mpls, &ipv4, false);
        check(LinkType::ETHERNET, &[], &[2; 13], false);
        check(LinkType::PPP, &[0, 0x21], &ipv4, false);
        check(LinkType::RAW, &[], &ipv4[..11], false);
        check(LinkType::RAW, &[], &[], false);
        check(LinkType::RAW, &[], &ipv4_header(0, 1), false);
        check(LinkType::ETHERNET, &[2; 12], &[0x81, 0, 0, 7].repeat(30), false);
    }
}
