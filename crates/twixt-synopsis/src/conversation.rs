//! Numbers that the packets of one connection share, in one direction or in both.

use std::net::IpAddr;

use twixt_model::FlowKey;

/// Numbers for a conversation, from the packet's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conversation {
    /// For packets that go the same way.
    pub(crate) forward: u64,
    /// For packets that go the other way.
    pub(crate) backward: u64,
    /// For both: less well mixed, since few packets need it.
    pub(crate) both: u64,
    /// One of the two directions, the same one for all packets.
    pub(crate) canonical: bool,
}

impl Conversation {
    #[inline]
    pub(crate) fn of(key: &FlowKey, seed: u64) -> Self {
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
pub(crate) const fn fold(bits: u64) -> u64 {
    let product = (bits ^ 0xa076_1d64_78bd_642f) as u128 * 0xe703_7ed1_a0b4_28db_u128;
    product as u64 ^ (product >> 64) as u64
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
}
