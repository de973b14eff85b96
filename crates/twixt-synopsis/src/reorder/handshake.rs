//! How soon the sender of a connection can react to a loss: not before a round trip, which the
//! handshake shows.

use twixt_model::{FlowKey, TcpFields, Timestamp};

use crate::conversation::Conversation;
use crate::flow_table::FlowTable;

/// What is known of the handshakes of connections: of all, or of the latest.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Handshakes {
    connections: FlowTable<Handshake>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Handshake {
    #[default]
    Unknown,
    /// When the last SYN passed, and what follows its number.
    Opened { at: Timestamp, next: u32 },
    /// From the SYN to the ACK that completes the handshake: both legs of the round trip.
    Took { round_trip_ns: i64 },
}

/// A handshake may have met a queue, or woken up a radio, that later packets do not meet. So the
/// round trip is trusted to be no less than this part of it ...
const REACTION_SHARE: i64 = 4;
/// ... and never for more than this: packets that are overtaken are rarely later.
const REACTION_MAX_NS: i64 = 10_000_000;
const SEED: u64 = 0x7265_6163_7469_6f6e;

impl Handshakes {
    pub(super) const BYTES: usize = FlowTable::<Handshake>::PLACE_BYTES;

    /// For so many connections; for all there are if `None`.
    pub(super) fn new(connections: Option<u32>) -> Self {
        Self { connections: FlowTable::new(connections) }
    }

    /// A SYN passed, or a SYN-ACK, which says nothing of the round trip. That of a simultaneous open
    /// makes the handshake one of another kind.
    pub(super) fn opened(&mut self, time: Timestamp, key: &FlowKey, tcp: &TcpFields, answer: bool) {
        let connection = Conversation::of(key, SEED).both;
        let next = tcp.sequence.wrapping_add(1);
        if !answer {
            *self.connections.entry(connection) = Handshake::Opened { at: time, next };
        } else if let Some(known) = self.connections.find_mut(connection)
            && matches!(known, Handshake::Opened { next: own, .. } if *own == next)
        {
            *known = Handshake::Unknown;
        }
    }

    /// A pure ACK passed. It completes a handshake if its sender sent nothing but the SYN before.
    pub(super) fn acknowledged(&mut self, time: Timestamp, key: &FlowKey, tcp: &TcpFields) {
        let connection = Conversation::of(key, SEED).both;
        if let Some(known) = self.connections.find_mut(connection)
            && let Handshake::Opened { at, next } = *known
            && next == tcp.sequence
        {
            *known = Handshake::Took { round_trip_ns: (time - at).as_nanos() };
        }
    }

    /// A hole that closes sooner was not closed by a retransmission; 0 if that is unknown.
    pub(super) fn reaction_ns(&self, key: &FlowKey) -> i64 {
        match self.connections.find(Conversation::of(key, SEED).both) {
            Some(Handshake::Took { round_trip_ns }) => {
                (round_trip_ns / REACTION_SHARE).clamp(0, REACTION_MAX_NS)
            }
            _ => 0,
        }
    }

    pub(super) fn state_bytes(&self) -> u64 {
        self.connections.state_bytes()
    }
}
