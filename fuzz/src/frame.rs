//! Frames of every link type: parsing, digests, filters, observations.

use std::sync::LazyLock;

use twixt_model::{DigestHash, DigestProfile, Needs, Timestamp};
use twixt_wire::{
    Digester, Filter, FrameBytes, HashKey, LinkType, Observer, ObserverOptions, PAYLOAD_BYTES_MAX,
    Packet, ParseOptions, available, parse,
};

use crate::FuzzResult;

/// What lies behind frames in memory.
const BEHIND: [u8; 128] = [0x45; 128];

/// The first byte of the input chooses among these, modulo their number. The last is unknown.
pub const LINK_TYPES: [LinkType; 13] = [
    LinkType::ETHERNET,
    LinkType::NULL,
    LinkType::PPP,
    LinkType::PPP_HDLC,
    LinkType::PPP_ETHER,
    LinkType::RAW,
    LinkType::CISCO_HDLC,
    LinkType::LOOP,
    LinkType::LINUX_SLL,
    LinkType::IPV4,
    LinkType::IPV6,
    LinkType::LINUX_SLL2,
    LinkType(9999),
];

/// Together they read every field that a filter can.
const FILTERS: [&str; 6] = [
    "net 10.0.0.0/8 or net 2001:db8::/32",
    "src port 53 or dst portrange 1000-2000",
    "proto 47 or tcp or icmp6",
    "vlan or vlan 5 or mpls",
    "dscp ef",
    "less 100 or greater 1500",
];

static DIGESTERS: LazyLock<Vec<Digester>> = LazyLock::new(|| {
    let key = HashKey::from_seed(1);
    let profiles = DigestProfile::ALL.iter();
    let pairs =
        profiles.flat_map(|&profile| DigestHash::ALL.iter().map(move |&hash| (profile, hash)));
    pairs.map(|(profile, hash)| Digester::new(profile, hash, PAYLOAD_BYTES_MAX, key)).collect()
});

static OBSERVER: LazyLock<Observer> = LazyLock::new(|| {
    let parsed = |text: &str| text.parse::<Filter>().expect("the filters are valid");
    Observer::new(ObserverOptions {
        needs: Needs { digest: true, flow: true, detail: true, group: true, exchange: false },
        outer: false,
        filter: None,
        classes: FILTERS.iter().map(|text| ((*text).to_owned(), parsed(text))).collect(),
        digester: DIGESTERS[0].clone(),
    })
    .expect("the classes are few and distinct")
});

/// Parses a frame: the first byte is its link type, the next two how much longer it was on the
/// wire, the rest the frame. An observer agrees with what is found by hand.
pub fn frame(bytes: &[u8]) -> FuzzResult {
    let Some((&[link, longer_low, longer_high], frame)) = bytes.split_first_chunk() else {
        return FuzzResult::Refused;
    };
    let link = LINK_TYPES[usize::from(link) % LINK_TYPES.len()];
    let wire_length = frame.len() as u32 + u32::from(u16::from_le_bytes([longer_low, longer_high]));
    let options = ParseOptions { outer: false, wire_length: Some(wire_length) };

    if let Ok(outermost) = parse(link, frame, ParseOptions { outer: true, ..options }) {
        exercise(&outermost, frame);
    }
    let observed = OBSERVER.observe_detailed(link, frame, wire_length, Timestamp::default());
    let innermost = parse(link, frame, options);
    assert_eq!(innermost.is_ok(), observed.is_ok());
    let memory = [frame, &BEHIND].concat();
    let within = FrameBytes::within(&memory, frame.len());
    assert_eq!(
        OBSERVER.observe_detailed(link, within, wire_length, Timestamp::default()),
        observed
    );
    let (Ok(packet), Ok((observation, detail))) = (innermost, observed) else {
        return FuzzResult::Refused;
    };
    exercise(&packet, frame);
    assert_eq!(observation.digest, DIGESTERS[0].digest(&packet, frame));
    assert_eq!(observation.length, packet.length());
    assert_eq!(detail.key, packet.flow_key());
    FuzzResult::Accepted
}

/// Does all that can be done with a packet.
fn exercise(packet: &Packet, frame: &[u8]) {
    let key = packet.flow_key();
    for digester in DIGESTERS.iter() {
        let _ = digester.digest(packet, frame);
        let _ = digester.address_hashes(packet);
        assert_eq!(digester.flow_hash(&key), digester.packet_flow_hash(packet));
    }
    let _ = available(packet, frame);
    let _ = (packet.tcp(frame), packet.icmp_echo(frame), packet.vlan(), packet.dscp());
    assert!(packet.payload(frame).len() <= packet.transport(frame).len());
    assert!(packet.has_ports() || (key.source_port, key.destination_port) == (0, 0));
}
