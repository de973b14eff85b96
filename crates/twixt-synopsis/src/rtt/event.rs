//! Requests and responses, by numbers that only those of one exchange share.
//!
//! The number of a request and of its response follow from the packets alone, so every algorithm
//! looks for the same pairs, and none has to keep flow keys.

use std::net::IpAddr;

use twixt_model::{FlowKey, RoundTripKind};

/// What a packet means for round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// It may be answered.
    Request { kind: RoundTripKind, id: u64 },
    /// It may be an answer. Every ACK might complete a handshake; only packets that would do
    /// nothing else count as `expected` responses.
    Response { kind: RoundTripKind, id: u64, expected: bool },
    /// It would be a request or response, were it not impossible to tell to what.
    Ambiguous { kind: RoundTripKind },
    /// It ends a round trip that was followed from the packets of its own direction.
    Turned { kind: RoundTripKind, rtt_ns: i64 },
}

/// Numbers for a conversation, from the packet's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conversation {
    /// For packets that go the same way.
    pub(super) forward: u64,
    /// For packets that go the other way.
    pub(super) backward: u64,
    /// For both: less well mixed, since few packets need it.
    pub(super) both: u64,
    /// One of the two directions, the same one for all packets.
    pub(super) canonical: bool,
}

impl Conversation {
    #[inline]
    pub(super) fn of(key: &FlowKey, seed: u64) -> Self {
        let salt = seed ^ u64::from(key.protocol) << 56;
        let source = endpoint(key.source, key.source_port, salt);
        let destination = endpoint(key.destination, key.destination_port, salt);
        Self {
            forward: fold(source.rotate_left(17).wrapping_add(destination)),
            backward: fold(destination.rotate_left(17).wrapping_add(source)),
            both: source.wrapping_add(destination),
            canonical: source <= destination,
        }
    }
}

#[inline]
fn endpoint(address: IpAddr, port: u16, salt: u64) -> u64 {
    match address {
        IpAddr::V4(address) => fold(salt ^ (u64::from(address.to_bits()) << 16 | u64::from(port))),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            fold(fold(salt ^ (bits >> 64) as u64) ^ (bits as u64) ^ u64::from(port).rotate_left(40))
        }
    }
}

/// Half the work of [`twixt_model::mix`]: one multiplication of 128 bits, folded. What admits and
/// places requests mixes once more.
#[inline]
const fn fold(bits: u64) -> u64 {
    let product = (bits ^ 0xa076_1d64_78bd_642f) as u128 * 0xe703_7ed1_a0b4_28db_u128;
    product as u64 ^ (product >> 64) as u64
}

/// The number of an exchange: of its kind, in one direction of a conversation, by what the
/// protocol calls it.
#[inline]
pub(super) const fn exchange_id(kind: RoundTripKind, flow: u64, name: u64) -> u64 {
    // Odd multipliers keep names of one flow, and kinds of one name, apart.
    let kind = (kind as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    fold(flow ^ kind ^ name.wrapping_mul(0xd6e8_feb8_6659_fd93))
}

/// What a request means that carries the number of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// The first one counts.
    Ignore,
    /// It was sent again, and the answer may be to either (Karn's rule).
    Poison,
    /// It belongs to the same flight if it follows at once, else it was sent again.
    Flight,
}

/// How long the datagrams of one flight take to pass, at most: two of them hold a large
/// ClientHello. An endpoint that waits for an answer waits longer (RFC 9002, section 6.2.2).
pub(super) const FLIGHT_NS: i64 = 5_000_000;

/// What becomes of a request of this kind when it is seen again unanswered.
pub(super) const fn repeat(kind: RoundTripKind) -> Repeat {
    match kind {
        // Many segments carry one TSval; a connection begins with its first SYN.
        RoundTripKind::TcpTimestamp | RoundTripKind::TcpDuration => Repeat::Ignore,
        RoundTripKind::QuicHandshake => Repeat::Flight,
        _ => Repeat::Poison,
    }
}

/// Whether an answered number may be used for another exchange. The others would only be seen
/// again because something was sent again.
pub(super) const fn is_reused(kind: RoundTripKind) -> bool {
    use RoundTripKind::{Dns, Icmp, Ntp, TcpDuration};
    matches!(kind, Dns | Icmp | Ntp | TcpDuration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_agree_on_their_numbers() {
        for text in
            ["tcp 10.0.0.1:40312 > 10.0.1.9:443", "udp [2001:db8::1]:53 > [2001:db8::2]:5353"]
        {
            let key: FlowKey = text.parse().unwrap();
            let there = Conversation::of(&key, 1);
            let back = Conversation::of(&key.reversed(), 1);
            assert_eq!((there.forward, there.backward), (back.backward, back.forward));
            assert_eq!((there.both, there.canonical), (back.both, !back.canonical));
            assert_ne!(there.forward, there.backward);
            assert_ne!(there, Conversation::of(&key, 2));
        }
    }

    #[test]
    fn kinds_and_names_have_numbers_of_their_own() {
        let mut ids: Vec<u64> = RoundTripKind::ALL
            .into_iter()
            .flat_map(|kind| (0..100).map(move |name| exchange_id(kind, 7, name)))
            .collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 900);
    }
}
