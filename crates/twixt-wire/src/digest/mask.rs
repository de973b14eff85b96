//! What of a record each profile leaves out.

use std::ops::Range;

use twixt_model::{DigestProfile, protocol};

use super::record::{
    ICMP_IDENTIFIER, ICMP_WORD, OPTIONS_BYTES, PAYLOAD_AT, RECORD_BYTES, Words, word,
};
use crate::packet::Packet;

const ADDRESSES: Range<usize> = 8..40;
const PORTS: Range<usize> = 40..44;

/// Which bits of a record a profile keeps.
#[derive(Clone, Debug)]
pub(super) struct Mask {
    pub(super) keep: Words,
    hides_ports: bool,
}

impl Mask {
    pub(super) fn new(profile: DigestProfile, payload_bytes: u8) -> Self {
        let mut keep = [0xff; RECORD_BYTES];
        keep[PAYLOAD_AT + usize::from(payload_bytes)..].fill(0);
        if profile == DigestProfile::Headers {
            keep[PAYLOAD_AT - OPTIONS_BYTES..PAYLOAD_AT].fill(0);
        }
        let hides_ports = profile == DigestProfile::Nat;
        if hides_ports {
            keep[ADDRESSES].fill(0);
            keep[PORTS].fill(0);
        }
        Self { keep: std::array::from_fn(|index| word(&keep, index)), hides_ports }
    }

    pub(super) fn applied(&self, packet: &Packet, words: Words) -> Words {
        let mut words: Words = std::array::from_fn(|index| words[index] & self.keep[index]);
        let is_icmp = matches!(packet.protocol, protocol::ICMP | protocol::ICMPV6);
        if self.hides_ports && is_icmp && packet.is_first_fragment() {
            words[ICMP_WORD] &= !ICMP_IDENTIFIER;
        }
        words
    }
}
