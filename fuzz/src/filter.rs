//! Filters as users write them.

use std::sync::LazyLock;

use twixt_wire::{Filter, LinkType, Packet, ParseOptions, parse};

use crate::FuzzResult;

/// 10.0.0.1:53 to 10.0.0.2:9 over UDP.
const FRAME: [u8; 28] = [
    0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
    0, 53, 0, 9, 0, 8, 0, 0, // UDP
];

static PACKET: LazyLock<Packet> = LazyLock::new(|| {
    parse(LinkType::RAW, &FRAME, ParseOptions::default()).expect("the packet is whole")
});

/// Parses the bytes as a filter. What is shown of a filter reads back as the same filter, and
/// selects the same.
pub fn filter(bytes: &[u8]) -> FuzzResult {
    let Ok(text) = std::str::from_utf8(bytes) else { return FuzzResult::Refused };
    let filter: Filter = match text.parse() {
        Ok(filter) => filter,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return FuzzResult::Refused;
        }
    };
    let shown = filter.to_string();
    match shown.parse::<Filter>() {
        Ok(again) => {
            assert_eq!(again, filter, "{text:?}: {shown:?}");
            assert_eq!(again.matches(&*PACKET), filter.matches(&*PACKET), "{text:?}");
        }
        // What is shown may be longer than what was written, and so exceed the bounds on texts.
        Err(error) => assert!(exceeds_bounds(&shown), "{text:?}: {shown:?}: {error}"),
    }
    FuzzResult::Accepted
}

fn exceeds_bounds(shown: &str) -> bool {
    shown.len() > twixt_wire::FILTER_BYTES_MAX
}
