//! Observations: only what is needed, for what is selected, in the right class.

use twixt_model::{
    ClassId, DigestHash, DigestProfile, FlowHash, FlowKey, GroupId, GroupPrefixes, Needs,
    PacketDigest, Timestamp,
};
use twixt_wire::{
    CLASSES_MAX, Digester, FrameBytes, HashKey, LinkType, Observer, ObserverError, ObserverOptions,
    Skip,
};

use crate::build::{Tcp, V4, ethernet, ipv4, ipv6, parsed, plain, udp, vlan};

const TIME: Timestamp = Timestamp::from_nanos(1_700_000_000_000_000_000);

fn options() -> ObserverOptions {
    let key = HashKey::from_seed(1);
    ObserverOptions {
        needs: Needs { digest: true, flow: true, detail: false, group: false, exchange: false },
        outer: false,
        filter: None,
        classes: Vec::new(),
        digester: Digester::new(DigestProfile::Default, DigestHash::Xxh3, 24, key),
    }
}

fn classes(pairs: &[(&str, &str)]) -> ObserverOptions {
    let classes =
        pairs.iter().map(|(name, text)| ((*name).to_owned(), text.parse().unwrap())).collect();
    ObserverOptions { classes, ..options() }
}

fn web() -> Vec<u8> {
    ethernet(0x0800, &ipv4(6, &Tcp::default().carrying(b"hello")))
}

fn observe(options: ObserverOptions, frame: &[u8]) -> Result<twixt_model::Observation, Skip> {
    let observer = Observer::new(options).unwrap();
    observer.observe(LinkType::ETHERNET, frame, frame.len() as u32, TIME)
}

#[test]
fn an_observation_holds_what_is_wanted() {
    let (frame, digester) = (web(), options().digester);
    let packet = parsed(&frame).unwrap();
    let full = observe(options(), &frame).unwrap();
    assert_eq!((full.time, full.length, full.class), (TIME, 57, ClassId(0)));
    assert_eq!(full.digest, digester.digest(&packet, &frame));
    assert_eq!(full.flow, digester.flow_hash(&packet.flow_key()));
    let bare = observe(ObserverOptions { needs: Needs::default(), ..options() }, &frame).unwrap();
    assert_eq!((bare.digest, bare.flow), (PacketDigest(0), FlowHash(0)));
}

#[test]
fn groups_follow_the_prefixes_of_both_addresses() {
    let needs = Needs { group: true, ..Needs::default() };
    let (frame, digester) = (web(), options().digester);
    let key = parsed(&frame).unwrap().flow_key();
    let group = observe(ObserverOptions { needs, ..options() }, &frame).unwrap().group;
    assert_eq!(group, digester.group(&key));
    assert_eq!(observe(options(), &frame).unwrap().group, GroupId(0));
    let other_port = FlowKey { source_port: 9, ..key };
    assert_eq!(digester.group(&other_port), group);
    assert_ne!(digester.group(&key.reversed()), group);
    let neighbour = FlowKey { source: "10.0.0.200".parse().unwrap(), ..key };
    assert_eq!(digester.group(&neighbour), group);
    let elsewhere = FlowKey { source: "10.0.7.1".parse().unwrap(), ..key };
    assert_ne!(digester.group(&elsewhere), group);
    let coarse = digester.clone().with_groups(GroupPrefixes { v4: 16, v6: 48 });
    assert_eq!(coarse.group(&elsewhere), coarse.group(&key));
    assert_ne!(coarse.identity(), digester.identity());
    let none = digester.with_groups(GroupPrefixes { v4: 0, v6: 0 });
    assert_eq!(none.group(&key.reversed()), none.group(&key));
}

#[test]
fn translated_addresses_have_one_group() {
    let key = parsed(&web()).unwrap().flow_key();
    let digester = Digester::new(DigestProfile::Nat, DigestHash::Xxh3, 24, HashKey::from_seed(1));
    assert_eq!(digester.group(&key), GroupId(0));
}

#[test]
fn details_come_beside_the_same_observation() {
    let (frame, observer) = (web(), Observer::new(options()).unwrap());
    let length = frame.len() as u32;
    let (observation, detail) =
        observer.observe_detailed(LinkType::ETHERNET, &frame, length, TIME).unwrap();
    assert_eq!(observer.observe(LinkType::ETHERNET, &frame, length, TIME), Ok(observation));
    assert_eq!(detail.key.to_string(), "tcp 10.0.0.1:40312 > 10.0.1.9:443");
    assert_eq!(detail.tcp.unwrap().timestamps, Some((7, 9)));
    let frame = ethernet(0x0800, &plain());
    let (_, detail) = observer.observe_detailed(LinkType::ETHERNET, &frame, 0, TIME).unwrap();
    assert_eq!(detail.tcp, None);
}

/// Cut anywhere, with the bytes that were cut off, or others, left in memory behind the frame.
#[test]
fn what_lies_behind_a_frame_is_never_read() {
    let (observer, outer) = (
        Observer::new(options()).unwrap(),
        Observer::new(ObserverOptions { outer: true, ..options() }).unwrap(),
    );
    let tcp = Tcp::default().carrying(b"a longer payload than digests cover");
    let frames = [
        ethernet(0x0800, &ipv4(6, &tcp)),
        ethernet(0x0800, &ipv4(17, &udp(53, 4789, b"a payload of some length"))),
        ethernet(0x86dd, &ipv6(6, &tcp)),
        ethernet(0x8100, &vlan(7, 0x0800, &ipv4(6, &tcp))),
        ethernet(0x8100, &vlan(7, 0x86dd, &ipv6(17, &udp(9, 9, b"x")))),
        ethernet(0x0806, &[0; 46]),
    ];
    for frame in &frames {
        for length in 0..=frame.len() {
            for behind in [&frame[length..], &[0xff; 4], &[]] {
                let memory = [&frame[..length], behind, &[0x45; 128]].concat();
                for observer in [&observer, &outer] {
                    let alone =
                        observer.observe_packet(LinkType::ETHERNET, &frame[..length], 200, TIME);
                    let within = FrameBytes::within(&memory, length);
                    let found = observer.observe_packet(LinkType::ETHERNET, within, 200, TIME);
                    assert_eq!(found, alone, "{length} bytes of {frame:x?}");
                }
            }
        }
    }
}

#[test]
fn what_the_filter_does_not_select_is_skipped() {
    let with = |text: &str| ObserverOptions { filter: Some(text.parse().unwrap()), ..options() };
    assert!(observe(with("tcp"), &web()).is_ok());
    assert_eq!(observe(with("udp"), &web()), Err(Skip::Filtered));
    assert_eq!(observe(with("tcp"), &ethernet(0x0806, &[0; 46])), Err(Skip::Arp));
}

#[test]
fn the_outer_packet_is_measured_where_asked() {
    let frame = ethernet(0x0800, &ipv4(4, &ipv4(17, &udp(1, 2, b""))));
    assert_eq!(observe(options(), &frame).unwrap().length, 28);
    assert_eq!(observe(ObserverOptions { outer: true, ..options() }, &frame).unwrap().length, 48);
}

#[test]
fn the_first_class_that_matches_counts() {
    let options = classes(&[("voice", "dscp ef"), ("web", "port 443"), ("all-tcp", "tcp")]);
    assert_eq!(observe(options.clone(), &web()).unwrap().class, ClassId(1));
    let other = observe(options.clone(), &ethernet(0x0800, &plain())).unwrap();
    assert_eq!(other.class, ClassId(3));
    let observer = Observer::new(options).unwrap();
    assert_eq!(observer.class_names().collect::<Vec<_>>(), ["voice", "web", "all-tcp", "other"]);
}

#[test]
fn classes_have_distinct_names_and_a_bound() {
    let check = |options, expected| assert_eq!(Observer::new(options).err(), Some(expected));
    let name = |name: &str| ObserverError::ClassName { name: name.to_owned() };
    check(classes(&[("a", "tcp"), ("a", "udp")]), name("a"));
    check(classes(&[("other", "tcp")]), name("other"));
    let mut many = options();
    many.classes = (0..=CLASSES_MAX).map(|n| (n.to_string(), "tcp".parse().unwrap())).collect();
    check(many, ObserverError::TooManyClasses { found: CLASSES_MAX + 1 });
}

/// A telephone call through a tunnel that the operator marks as bulk.
#[test]
fn a_class_may_be_of_the_outermost_header() {
    let call = V4 { tos: 46 << 2, ..V4::default() }.carrying(17, &udp(5060, 5060, b"ring"));
    let tunnel = V4 { tos: 10 << 2, ..V4::default() }.carrying(4, &call);
    let (tunnelled, plain) = (ethernet(0x0800, &tunnel), ethernet(0x0800, &call));
    let class = |text: &str, frame: &[u8]| {
        observe(classes(&[("chosen", text)]), frame).unwrap().class == ClassId(0)
    };
    for (text, in_tunnel, outside) in [
        ("dscp ef", true, true),
        ("outer dscp ef", false, true),
        ("outer dscp af11", true, false),
        ("outer ipip and udp port 5060", true, false),
        ("outer (dscp af11 and not udp)", true, false),
        ("not outer udp", true, false),
    ] {
        assert_eq!((class(text, &tunnelled), class(text, &plain)), (in_tunnel, outside), "{text}");
    }
    // What is measured is the packet inside, whatever the class looks at.
    let measured = |text: &str| observe(classes(&[("chosen", text)]), &tunnelled).unwrap();
    assert_eq!(measured("outer ipip").digest, measured("udp").digest);
    let filter = Some("outer dscp ef".parse().unwrap());
    let skipped = observe(ObserverOptions { filter, ..options() }, &tunnelled);
    assert_eq!(skipped, Err(Skip::Filtered));
}
