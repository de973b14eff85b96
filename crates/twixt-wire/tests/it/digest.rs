//! What digests cover, what they do not, and that they never change.

use twixt_model::{DigestHash, DigestProfile, PacketDigest};
use twixt_wire::{Available, Digester, HashKey, Packet, available};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::build::{
    Tcp, V4, echo, ethernet, ipv4, ipv6, joined, mpls, parsed, sctp, timestamps, udp, vlan,
};

const PAYLOAD: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";

fn digester(profile: DigestProfile, payload_bytes: u8) -> Digester {
    Digester::new(profile, DigestHash::Xxh3, payload_bytes, HashKey::from_seed(1))
}

fn default() -> Digester {
    digester(DigestProfile::Default, 24)
}

#[track_caller]
fn digest_with(digester: &Digester, frame: &[u8]) -> PacketDigest {
    digester.digest(&parsed(frame).unwrap(), frame)
}

#[track_caller]
fn digest(ip: &[u8]) -> PacketDigest {
    let ether_type = if ip[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
    digest_with(&default(), &ethernet(ether_type, ip))
}

fn segment(header: &V4, tcp: &Tcp) -> Vec<u8> {
    header.carrying(6, &tcp.carrying(PAYLOAD))
}

#[track_caller]
fn check_same(change: impl FnOnce(&mut V4, &mut Tcp)) {
    let (mut header, mut tcp) = (V4::default(), Tcp::default());
    let before = digest(&segment(&header, &tcp));
    let length = segment(&header, &tcp).len() as u16;
    header.length = Some(length);
    change(&mut header, &mut tcp);
    assert_eq!(digest(&segment(&header, &tcp)), before);
}

#[track_caller]
fn check_differs(change: impl FnOnce(&mut V4, &mut Tcp)) {
    let (mut header, mut tcp) = (V4::default(), Tcp::default());
    let before = digest(&segment(&header, &tcp));
    change(&mut header, &mut tcp);
    assert_ne!(digest(&segment(&header, &tcp)), before);
}

#[test]
fn what_routers_change_is_not_covered() {
    check_same(|header, _| header.ttl = 3);
    check_same(|header, _| header.tos = 0xbb);
    check_same(|header, _| header.checksum = 1);
    check_same(|header, _| header.fragment = 0x8000);
    check_same(|_, tcp| tcp.checksum = 1);
}

#[test]
fn what_routers_leave_is_covered() {
    check_differs(|header, _| header.source[3] = 77);
    check_differs(|header, _| header.destination[3] = 77);
    check_differs(|header, _| header.identification = 77);
    check_differs(|header, _| header.fragment = 0x2000);
    check_differs(|header, _| header.length = Some(90));
    check_differs(|_, tcp| tcp.source = 77);
    check_differs(|_, tcp| tcp.destination = 77);
    check_differs(|_, tcp| tcp.sequence = 77);
    check_differs(|_, tcp| tcp.acknowledgement = 77);
    check_differs(|_, tcp| tcp.flags = 0x10);
    check_differs(|_, tcp| tcp.window = 77);
    check_differs(|_, tcp| tcp.urgent = 77);
    check_differs(|_, tcp| tcp.options[11] = 77);
}

#[test]
fn ipv4_options_are_covered_by_the_length_only() {
    let plain = default().record(&parsed(&frame_of(&[])).unwrap(), &frame_of(&[]));
    let mut other = default().record(&parsed(&frame_of(&[7; 8])).unwrap(), &frame_of(&[7; 8]));
    other[2..4].copy_from_slice(&plain[2..4]);
    assert_eq!(plain, other);
    let changed = frame_of(&[9; 8]);
    assert_eq!(digest_with(&default(), &frame_of(&[7; 8])), digest_with(&default(), &changed));

    fn frame_of(options: &[u8]) -> Vec<u8> {
        let header = V4 { options: options.to_vec(), ..V4::default() };
        ethernet(0x0800, &segment(&header, &Tcp::default()))
    }
}

#[test]
fn tags_labels_and_padding_are_not_covered() {
    let packet = segment(&V4::default(), &Tcp::default());
    let expected = digest(&packet);
    for frame in [
        ethernet(0x8100, &vlan(5, 0x0800, &packet)),
        ethernet(0x8847, &mpls(3, &packet)),
        joined(&[&ethernet(0x0800, &packet), b"trailer"]),
        ethernet(0x0800, &ipv4(4, &packet)),
    ] {
        assert_eq!(digest_with(&default(), &frame), expected);
    }
}

#[test]
fn padding_of_a_short_frame_is_not_payload() {
    let packet = ipv4(17, &udp(1, 2, b"x"));
    let padded = joined(&[&ethernet(0x0800, &packet), &[0xee; 17]]);
    assert_eq!(digest_with(&default(), &padded), digest(&packet));
}

#[test]
fn every_payload_byte_up_to_the_setting_is_covered() {
    for payload_bytes in [0, 1, 8, 23, 24, 200] {
        let digester = digester(DigestProfile::Default, payload_bytes);
        let covered = digester.identity().payload_bytes;
        assert_eq!(covered, payload_bytes.min(24));
        let frame = ethernet(0x0800, &ipv4(17, &udp(1, 2, PAYLOAD)));
        let expected = digest_with(&digester, &frame);
        for index in 0..PAYLOAD.len() {
            let mut changed = frame.clone();
            changed[14 + 28 + index] ^= 0x40;
            let same = digest_with(&digester, &changed) == expected;
            assert_eq!(same, index >= usize::from(covered), "byte {index}");
        }
    }
}

#[test]
fn options_of_a_syn_are_not_covered_but_its_payload_is() {
    let syn = |options: [u8; 4], payload: &[u8]| {
        let tcp = Tcp { flags: 0x02, options: options.to_vec(), ..Tcp::default() };
        digest(&ipv4(6, &tcp.carrying(payload)))
    };
    assert_eq!(syn([2, 4, 5, 0xb4], b"x"), syn([2, 4, 5, 0x50], b"x"));
    assert_ne!(syn([2, 4, 5, 0xb4], b"x"), syn([2, 4, 5, 0xb4], b"y"));
}

#[test]
fn options_beyond_twelve_bytes_are_not_covered() {
    let with = |last: u8| {
        let options = joined(&[&timestamps(1, 2), &[1, 1, 1, last]]);
        digest(&segment(&V4::default(), &Tcp { options, ..Tcp::default() }))
    };
    assert_eq!(with(0), with(1));
}

#[test]
fn checksums_of_other_protocols_are_not_covered() {
    for (protocol, transport, checksum) in [
        (17, udp(1, 2, PAYLOAD), 6..8),
        (132, sctp(1, 2, PAYLOAD), 8..12),
        (1, echo(1, 2), 2..4),
        (58, echo(1, 2), 2..4),
    ] {
        let before = digest(&ipv4(protocol, &transport));
        for index in 0..20 {
            let mut changed = transport.clone();
            changed[index] ^= 1;
            let same = digest(&ipv4(protocol, &changed)) == before;
            assert_eq!(same, checksum.contains(&index), "protocol {protocol}, byte {index}");
        }
    }
    // The checksum of another protocol is not known: all counts.
    assert_ne!(digest(&ipv4(89, &[0; 24])), digest(&ipv4(89, &[1; 24])));
}

#[test]
fn later_fragments_are_told_by_place_and_bytes() {
    let fragment = |word: u16, bytes: &[u8]| {
        digest(&V4 { fragment: word, ..V4::default() }.carrying(6, bytes))
    };
    assert_eq!(fragment(0x2005, PAYLOAD), fragment(0xa005, PAYLOAD));
    assert_ne!(fragment(0x2005, PAYLOAD), fragment(0x2006, PAYLOAD));
    assert_ne!(fragment(0x2005, PAYLOAD), fragment(0x0005, PAYLOAD));
    assert_ne!(fragment(5, &PAYLOAD[..30]), fragment(5, &PAYLOAD[1..31]));
}

#[test]
fn a_copy_is_the_same_packet_and_a_retransmission_is_not() {
    let sent = segment(&V4::default(), &Tcp::default());
    assert_eq!(digest(&sent), digest(&sent.clone()));
    check_differs(|header, _| header.identification += 1);
    check_differs(|_, tcp| tcp.options = timestamps(8, 9));
}

#[test]
fn translation_hides_behind_the_nat_profile() {
    let nat = digester(DigestProfile::Nat, 24);
    let packet = |header: V4, tcp: Tcp| ethernet(0x0800, &segment(&header, &tcp));
    let before = packet(V4::default(), Tcp::default());
    let translated = packet(
        V4 { source: [192, 0, 2, 1], checksum: 5, ..V4::default() },
        Tcp { source: 1, checksum: 6, ..Tcp::default() },
    );
    assert_eq!(digest_with(&nat, &before), digest_with(&nat, &translated));
    assert_ne!(digest_with(&default(), &before), digest_with(&default(), &translated));
    let other = packet(V4::default(), Tcp { sequence: 1, ..Tcp::default() });
    assert_ne!(digest_with(&nat, &before), digest_with(&nat, &other));
    let ping = |identifier, sequence| ethernet(0x0800, &ipv4(1, &echo(identifier, sequence)));
    assert_eq!(digest_with(&nat, &ping(1, 5)), digest_with(&nat, &ping(2, 5)));
    assert_ne!(digest_with(&nat, &ping(1, 5)), digest_with(&nat, &ping(1, 6)));
}

#[test]
fn the_headers_profile_covers_no_payload() {
    let headers = digester(DigestProfile::Headers, 24);
    assert_eq!(headers.identity().payload_bytes, 0);
    let with = |payload: &[u8]| {
        digest_with(&headers, &ethernet(0x0800, &ipv4(6, &Tcp::default().carrying(payload))))
    };
    assert_eq!(with(b"abc"), with(b"xyz"));
    assert_ne!(with(b"abc"), with(b"abcd"), "the length counts");
}

#[test]
fn the_headers_profile_does_not_care_where_behind_the_fixed_header_a_capture_is_cut() {
    let headers = digester(DigestProfile::Headers, 24);
    let whole = ethernet(0x0800, &segment(&V4::default(), &Tcp::default()));
    for kept in 54..whole.len() {
        assert_eq!(digest_with(&headers, &whole[..kept]), digest_with(&headers, &whole), "{kept}");
    }
    // The sequence number ends with byte 42 of the frame.
    assert_ne!(digest_with(&headers, &whole[..41]), digest_with(&headers, &whole));
}

/// What a capture cut to `kept` bytes of the IP packet has.
#[track_caller]
fn check_available(ip: &[u8], kept: usize, header: bool, options: bool, payload_bytes: u8) {
    let frame = ethernet(0x0800, ip);
    let frame = &frame[..14 + kept];
    let packet = parsed(frame).unwrap();
    assert_eq!(available(&packet, frame), Available { header, options, payload_bytes });
}

#[test]
fn what_a_cut_capture_has_is_told() {
    let tcp = segment(&V4::default(), &Tcp::default());
    check_available(&tcp, tcp.len(), true, true, 24);
    check_available(&tcp, 52 + 30, true, true, 24);
    check_available(&tcp, 52 + 10, true, true, 10);
    check_available(&tcp, 52, true, true, 0);
    check_available(&tcp, 51, true, false, 0);
    check_available(&tcp, 40, true, false, 0);
    check_available(&tcp, 39, false, false, 0);
    check_available(&tcp, 24, false, false, 0);
    let datagram = ipv4(17, &udp(1, 2, b"four"));
    check_available(&datagram, 32, true, true, 24);
    check_available(&datagram, 31, true, true, 3);
    check_available(&datagram, 27, false, false, 0);
    let esp = ipv4(50, PAYLOAD);
    check_available(&esp, 25, true, true, 5);
    let syn = Tcp { flags: 2, options: vec![2, 4, 5, 0xb4], ..Tcp::default() };
    check_available(&segment(&V4::default(), &syn), 40, true, true, 0);
}

/// The setting that `available` names makes the digests of whole and cut packets equal; one more
/// does not.
#[test]
fn a_common_setting_makes_cut_and_whole_captures_agree() {
    let whole = ethernet(0x0800, &segment(&V4::default(), &Tcp::default()));
    for kept in 14 + 52..whole.len() {
        let cut = &whole[..kept];
        let common = available(&parsed(cut).unwrap(), cut).payload_bytes;
        let agree = |payload_bytes| {
            let digester = digester(DigestProfile::Default, payload_bytes);
            digest_with(&digester, cut) == digest_with(&digester, &whole)
        };
        assert!(agree(common), "{kept} bytes");
        assert!(common == 24 || !agree(common + 1), "{kept} bytes");
    }
}

#[test]
fn keys_and_hash_functions_give_other_digests() {
    let frame = ethernet(0x0800, &segment(&V4::default(), &Tcp::default()));
    let with = |hash, seed| {
        let key = HashKey::from_seed(seed);
        digest_with(&Digester::new(DigestProfile::Default, hash, 24, key), &frame)
    };
    let all = [
        with(DigestHash::Xxh3, 1),
        with(DigestHash::Xxh3, 2),
        with(DigestHash::Sip13, 1),
        with(DigestHash::Sip13, 2),
    ];
    for (index, digest) in all.iter().enumerate() {
        assert!(!all[..index].contains(digest));
    }
}

#[test]
fn an_identity_says_all_that_must_be_equal() {
    let identity = digester(DigestProfile::Nat, 9).identity();
    assert_eq!((identity.profile, identity.hash), (DigestProfile::Nat, DigestHash::Xxh3));
    assert_eq!((identity.payload_bytes, identity.key_id), (9, HashKey::from_seed(1).id()));
}

/// The record, written out; the digests, computed with other implementations of XXH3 and SipHash.
/// Recorded synopses depend on both.
#[track_caller]
fn check_golden(frame: &[u8], record: &[&[u8]], xxh3: u64, siphash: u64) {
    let packet: Packet = parsed(frame).unwrap();
    let record = joined(record);
    assert_eq!(default().record(&packet, frame)[..], record[..]);
    assert_eq!(xxh3_64_with_seed(&record, 1), xxh3);
    assert_eq!(default().digest(&packet, frame), PacketDigest(xxh3));
    let key = HashKey::from_seed(1);
    let sip = Digester::new(DigestProfile::Default, DigestHash::Sip13, 24, key);
    assert_eq!(sip.digest(&packet, frame), PacketDigest(siphash));
}

#[test]
fn the_record_of_tcp_over_ipv4_never_changes() {
    let header = V4 { fragment: 0x2000, ..V4::default() };
    let frame = ethernet(0x8100, &vlan(5, 0x0800, &segment(&header, &Tcp::default())));
    let record: [&[u8]; 9] = [
        &[4, 6, 0, 88, 0x12, 0x34, 0x20, 0],
        &[10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[10, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0x9d, 0x78, 0x01, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8],
        &[0x80, 0x18, 0x01, 0xf5],
        &[0, 0, 0, 0],
        &[1, 1, 8, 10, 0, 0, 0, 7],
        &[0, 0, 0, 9],
        b"0123456789abcdefghijklmn",
    ];
    check_golden(&frame, &record, 0x37a0_bb22_cbd4_b639, 0xb8e2_1a8d_8435_e722);
}

#[test]
fn the_record_of_udp_over_ipv6_never_changes() {
    let fragment = [17, 0, 0, 1, 0xaa, 0xbb, 0xcc, 0xdd];
    let frame = ethernet(0x86dd, &ipv6(44, &joined(&[&fragment, &udp(53, 5353, b"answer")])));
    let record: [&[u8]; 6] = [
        &[6, 17, 0, 62, 0xcc, 0xdd, 0x20, 0],
        &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2],
        &[0, 53, 0x14, 0xe9, 0, 14, 0, 0],
        &[0; 24],
        b"answer\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    ];
    check_golden(&frame, &record, 0x2b6b_cf26_57a3_2c8e, 0xfd78_c597_c7a4_bd94);
}

#[test]
fn flow_hashes_are_directed_and_never_change() {
    let digester = default();
    let hash = |text: &str| digester.flow_hash(&text.parse().unwrap());
    let flow = "tcp 10.0.0.1:40312 > 10.0.1.9:443";
    assert_eq!(hash(flow).0, 0xb6e1_4030_29e3_36cd);
    for other in [
        "tcp 10.0.1.9:443 > 10.0.0.1:40312",
        "udp 10.0.0.1:40312 > 10.0.1.9:443",
        "tcp 10.0.0.1:40313 > 10.0.1.9:443",
        "tcp 10.0.0.1:40312 > 10.0.1.9:444",
        "tcp 10.0.0.2:40312 > 10.0.1.9:443",
        "tcp [a00:1::]:40312 > [a00:109::]:443",
    ] {
        assert_ne!(hash(flow), hash(other), "{other}");
    }
    let frame = ethernet(0x0800, &segment(&V4::default(), &Tcp::default()));
    assert_eq!(digester.packet_flow_hash(&parsed(&frame).unwrap()), hash(flow));
}

#[test]
fn address_hashes_follow_addresses_only() {
    let hashes = |source, destination, port| {
        let header = V4 { source, destination, ..V4::default() };
        let frame = ethernet(0x0800, &header.carrying(17, &udp(port, 2, b"")));
        default().address_hashes(&parsed(&frame).unwrap())
    };
    let (a, b) = hashes([10, 0, 0, 1], [10, 0, 0, 2], 1);
    assert_ne!(a, b);
    assert_eq!(hashes([10, 0, 0, 2], [10, 0, 0, 1], 9), (b, a));
}
