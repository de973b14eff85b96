//! Selection by hash: the values of independent programs, and who decides alike.

use proptest::prelude::*;
use twixt_model::{FlowHash, FlowKey, PacketDigest};
use twixt_testing::require;
use twixt_wire::{
    HashRange, Selection, SelectionCounts, SelectionFunction, Selector, SelectorError,
    SelectorInput, bob, crc32,
};

use crate::build::{V4, ethernet, ipv6, parsed, udp};

/// The hexadecimal number after `name`.
fn field(line: &str, name: &str) -> u32 {
    let (_, rest) = line.split_once(name).unwrap();
    let word = rest.split_whitespace().next().unwrap();
    match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).unwrap(),
        None => word.parse().unwrap(),
    }
}

#[test]
fn bob_agrees_with_another_implementation() {
    let vectors = require!(shared "reference/psamp_hash/bob_32bit.txt");
    let text = twixt_testing::text_of(vectors);
    let mut checked = 0;
    for line in text.lines().filter(|line| line.contains("hash=")) {
        let bytes: Vec<u8> = match line.split('"').nth(1) {
            Some(words) => words.bytes().collect(),
            None => (0..field(line, "len=") as u8).collect(),
        };
        assert_eq!(bob(&bytes, field(line, "init=")), field(line, "hash="), "{line}");
        checked += 1;
    }
    assert_eq!(checked, 40);
}

#[test]
fn crc32_is_that_of_ethernet() {
    assert_eq!(crc32(b"123456789", 0), 0xcbf4_3926);
    assert_eq!(crc32(b"6789", crc32(b"12345", 0)), 0xcbf4_3926);
}

fn half(function: SelectionFunction) -> Selector {
    Selector::at_rate(function, 0.5, SelectorInput::default()).unwrap()
}

fn decide(selector: &Selector, frame: &[u8]) -> Selection {
    selector.packet(&parsed(frame).unwrap(), frame, PacketDigest(7))
}

fn packet(identification: u16, ttl: u8) -> Vec<u8> {
    let header = V4 { identification, ttl, tos: ttl, ..V4::default() };
    ethernet(0x0800, &header.carrying(17, &udp(40_000, 53, b"a question")))
}

#[test]
fn what_routers_change_does_not_matter() {
    for function in SelectionFunction::ALL {
        let selector = half(function);
        for identification in 0..100 {
            let (here, there) = (packet(identification, 64), packet(identification, 63));
            assert_eq!(decide(&selector, &here), decide(&selector, &there), "{function}");
        }
    }
}

#[test]
fn the_achieved_rate_is_near_the_asked_one_where_input_varies() {
    for function in [SelectionFunction::Bob, SelectionFunction::Ipsx, SelectionFunction::Crc32] {
        let selector = Selector::at_rate(function, 0.1, SelectorInput::default()).unwrap();
        let mut counts = SelectionCounts::default();
        for identification in 0..20_000 {
            counts.count(decide(&selector, &packet(identification, 64)));
        }
        // Four deviations of a binomial of 20 000 at 0.1; CRC-32 and IPSX of counted
        // identifications are more even than chance.
        let rate = counts.achieved_rate().unwrap();
        assert!((rate - 0.1).abs() < 0.0085, "{function}: {rate}");
    }
}

#[test]
fn a_packet_that_is_cut_before_what_is_hashed_is_not_decided() {
    let whole = packet(1, 64);
    let cut = &whole[..14 + 20 + 10];
    let selector = half(SelectionFunction::Bob);
    assert_eq!(decide(&selector, cut), Selection::Undefined);
    let short = SelectorInput { payload_bytes: 8, ..SelectorInput::default() };
    let selector = Selector::at_rate(SelectionFunction::Bob, 0.5, short).unwrap();
    assert_eq!(decide(&selector, cut), decide(&selector, &whole));
}

#[test]
fn ipsx_is_not_defined_for_ipv6_and_flows() {
    let selector = half(SelectionFunction::Ipsx);
    let frame = ethernet(0x86dd, &ipv6(17, &udp(1, 2, b"payload")));
    assert_eq!(decide(&selector, &frame), Selection::Undefined);
    assert_eq!(selector.flow(&FlowKey::default(), FlowHash(1)), Selection::Undefined);
    let mut counts = SelectionCounts::default();
    counts.count(Selection::Undefined);
    assert_eq!(counts.achieved_rate(), None);
    assert_ne!(decide(&half(SelectionFunction::Bob), &frame), Selection::Undefined);
}

#[test]
fn flows_are_selected_whole_and_at_the_rate() {
    let mut counts = SelectionCounts::default();
    let selector = half(SelectionFunction::Bob);
    for port in 0..4_000 {
        let key = FlowKey { source_port: port, protocol: 17, ..FlowKey::default() };
        counts.count(selector.flow(&key, FlowHash(0)));
    }
    // Four deviations of a binomial of 4000 at a half.
    assert!((counts.achieved_rate().unwrap() - 0.5).abs() < 0.032);
}

/// The label must not depend on the selection: among selected packets, every bit of the label is
/// as often set as not.
#[test]
fn keyed_selection_leaves_the_label_free() {
    let selector = half(SelectionFunction::Keyed);
    let frame = packet(1, 64);
    let parsed = parsed(&frame).unwrap();
    let digests = (0..4_000_u64).map(|number| PacketDigest(twixt_model::mix(number + 1)));
    let selected: Vec<PacketDigest> = digests
        .filter(|&digest| selector.packet(&parsed, &frame, digest) == Selection::Selected)
        .collect();
    for bit in 0..64 {
        let set = selected.iter().filter(|digest| digest.0 >> bit & 1 == 1).count();
        let share = set as f64 / selected.len() as f64;
        // Five deviations of a binomial of about 2000 at a half.
        assert!((share - 0.5).abs() < 0.056, "bit {bit}: {share}");
    }
}

#[test]
fn impossible_settings_are_refused() {
    let new = |lowest, highest| {
        let range = HashRange { lowest, highest };
        Selector::new(SelectionFunction::Ipsx, range, SelectorInput::default())
    };
    assert!(new(0, 65_535).is_ok());
    assert!(matches!(new(0, 65_536), Err(SelectorError::Range { .. })));
    assert!(matches!(new(2, 1), Err(SelectorError::Range { .. })));
    for rate in [0.0, -1.0, 1.1, f64::NAN] {
        let selector = Selector::at_rate(SelectionFunction::Bob, rate, SelectorInput::default());
        assert!(matches!(selector, Err(SelectorError::Rate { .. })), "{rate}");
    }
    let input = SelectorInput { payload_bytes: 257, ..SelectorInput::default() };
    assert!(Selector::at_rate(SelectionFunction::Bob, 1.0, input).is_err());
    assert!(
        Selector::at_rate(SelectionFunction::Bob, 1.0, SelectorInput::default()).unwrap().rate()
            == 1.0
    );
}

#[test]
fn names_and_numbers_are_those_of_the_registry() {
    let ids = SelectionFunction::ALL.map(SelectionFunction::selector_id);
    assert_eq!(ids, [None, Some(6), Some(7), Some(8)]);
    for function in SelectionFunction::ALL {
        assert_eq!(function.name().parse(), Ok(function));
    }
    assert!("md5".parse::<SelectionFunction>().is_err());
}

proptest! {
    #![proptest_config(twixt_testing::cases(500))]

    /// A packet with another frame's bytes gives nonsense, but no panic.
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), offset: u16) {
        let frame = packet(1, 64);
        let parsed = parsed(&frame).unwrap();
        let input = SelectorInput { initialiser: 1, payload_offset: offset, payload_bytes: 256 };
        for function in SelectionFunction::ALL {
            let selector = Selector::at_rate(function, 0.5, input).unwrap();
            let _ = selector.packet(&parsed, &bytes, PacketDigest(0));
        }
    }
}
