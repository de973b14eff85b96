//! Requests and responses, by numbers that only those of one exchange share.
//!
//! The number of a request and of its response follow from the packets alone, so every algorithm
//! looks for the same pairs, and none has to keep flow keys.

use twixt_model::{RoundTripKind, RoundTripPart};

use super::turn::Answered;
use crate::conversation::fold;

/// What a packet means for round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// It may be answered.
    Request { kind: RoundTripKind, id: u64, variant: Variant },
    /// It may also be answered under this number. Counts as no further request.
    Alternative { kind: RoundTripKind, id: u64 },
    /// The other side has seen it: it may be answered from now on. Twice is ambiguous.
    Relayed { kind: RoundTripKind, id: u64 },
    /// Its answer passed, but not for its sake: it may have waited for something else.
    Spoiled { kind: RoundTripKind, id: u64 },
    /// It may be an answer. Every ACK might complete a handshake; only packets that would do
    /// nothing else count as `expected` responses.
    Response { kind: RoundTripKind, id: u64, part: Option<RoundTripPart>, expected: bool },
    /// A request begins that is followed by its connection.
    Opened { kind: RoundTripKind },
    /// It belongs to a flow that is followed, and means nothing more.
    Followed { kind: RoundTripKind },
    /// Its response begins. With both legs of the connection at best, if they are known.
    Served { answered: Answered, legs_ns: Option<(i64, i64)> },
    /// It would be a request or response, were it not impossible to tell to what.
    Ambiguous { kind: RoundTripKind },
    /// It ends a round trip that was followed from the packets of its own direction.
    Turned { kind: RoundTripKind, rtt_ns: i64 },
}

/// A few bits that tell two requests of one number apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variant(u8); // below 16

impl Variant {
    /// Of what differs between them.
    #[must_use]
    pub const fn of(name: u32) -> Self {
        Self((fold(name as u64) & 0x0f) as u8)
    }

    pub(super) const fn from_bits(bits: u8) -> Self {
        Self(bits & 0x0f)
    }

    pub(super) const fn bits(self) -> u8 {
        self.0
    }
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
    /// The first one counts; but one of another variant takes its place, because the exchange of the
    /// first never ended.
    Renew,
}

/// How long the datagrams of one flight take to pass, at most: two of them hold a large
/// ClientHello. An endpoint that waits for an answer waits longer (RFC 9002, section 6.2.2).
pub(super) const FLIGHT_NS: i64 = 5_000_000;

/// What becomes of a request of this kind when it is seen again unanswered.
pub(super) const fn repeat(kind: RoundTripKind) -> Repeat {
    match kind {
        // Many segments carry one TSval.
        RoundTripKind::TcpTimestamp => Repeat::Ignore,
        // A connection begins with its first SYN. Another number begins another connection.
        RoundTripKind::TcpDuration => Repeat::Renew,
        RoundTripKind::QuicHandshake => Repeat::Flight,
        _ => Repeat::Poison,
    }
}

/// Whether an answered number may be used for another exchange. The others would only be seen
/// again because something was sent again.
pub(super) const fn is_reused(kind: RoundTripKind) -> bool {
    use RoundTripKind::{Dns, Icmp, Ntp, ServerResponse, TcpDuration};
    matches!(kind, Dns | Icmp | Ntp | ServerResponse | TcpDuration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_names_have_numbers_of_their_own() {
        let mut ids: Vec<u64> = RoundTripKind::ALL
            .into_iter()
            .flat_map(|kind| (0..100).map(move |name| exchange_id(kind, 7, name)))
            .collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 100 * RoundTripKind::ALL.len());
    }
}
