//! From packets to requests and responses: one definition of what a round trip is, for all
//! algorithms.

use twixt_model::{Detail, Exchange, FlowKey, Observation, RoundTripKind, TcpFields, tcp_flag};

use super::event::{Event, Variant, exchange_id};
use super::kinds::KindSet;
use super::sequence::Range;
use super::spin::{Spin, Turn};
use crate::conversation::Conversation;
use crate::flow_table::FlowTable;

/// Turns packets into events. All but sequence numbers and spin bits is known from the packet
/// alone; for those it keeps a little state per flow.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Listener {
    kinds: KindSet,
    seed: u64,
    ranges: FlowTable<Range>,
    spins: FlowTable<Spin>,
}

/// Flows that lost their state to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Forgotten {
    pub(super) sequence: u64,
    pub(super) spin: u64,
}

impl Forgotten {
    /// Those that matter for a kind; `None` if it needs no state of flows.
    pub(super) const fn of(&self, kind: RoundTripKind) -> Option<u64> {
        match kind {
            RoundTripKind::TcpSequence => Some(self.sequence),
            RoundTripKind::QuicSpin => Some(self.spin),
            _ => None,
        }
    }

    pub(super) const fn plus(self, other: Self) -> Self {
        Self {
            sequence: self.sequence.wrapping_add(other.sequence),
            spin: self.spin.wrapping_add(other.spin),
        }
    }

    pub(super) const fn minus(self, earlier: Self) -> Self {
        Self {
            sequence: self.sequence.wrapping_sub(earlier.sequence),
            spin: self.spin.wrapping_sub(earlier.spin),
        }
    }
}

impl Listener {
    /// For these kinds, with state for so many flows; for all there are if `None`.
    pub(super) fn new(kinds: KindSet, seed: u64, flows: Option<u32>) -> Self {
        let ranges = if kinds.has(RoundTripKind::TcpSequence) { flows } else { Some(0) };
        let spins = if kinds.has(RoundTripKind::QuicSpin) { flows } else { Some(0) };
        Self { kinds, seed, ranges: FlowTable::new(ranges), spins: FlowTable::new(spins) }
    }

    /// What a packet means: every event goes to `tell`, with one direction of the conversation
    /// marked.
    #[inline]
    pub(super) fn hear(
        &mut self,
        observation: &Observation,
        detail: &Detail,
        mut tell: impl FnMut(Event, bool),
    ) {
        if detail.tcp.is_none() && detail.exchange.is_none() {
            return;
        }
        let talk = Conversation::of(&detail.key, self.seed);
        let kinds = self.kinds;
        let mut tell = |event: Event| {
            if kinds.has(event.kind()) {
                tell(event, talk.canonical);
            }
        };
        if let Some(tcp) = &detail.tcp {
            self.hear_tcp(talk, tcp, &mut tell);
        }
        if let Some(exchange) = detail.exchange {
            self.hear_exchange(talk, exchange, observation, &detail.key, &mut tell);
        }
    }

    /// Flows that lost their state to others: for sequence numbers, and for spin bits.
    pub(super) const fn forgotten(&self) -> Forgotten {
        Forgotten { sequence: self.ranges.replaced(), spin: self.spins.replaced() }
    }

    /// Bytes of state.
    pub(super) fn state_bytes(&self) -> u64 {
        self.ranges.state_bytes() + self.spins.state_bytes()
    }

    #[inline]
    fn hear_tcp(&mut self, talk: Conversation, tcp: &TcpFields, tell: &mut impl FnMut(Event)) {
        let has = |flag: u8| tcp.flags & flag != 0;
        if has(tcp_flag::SYN) {
            // A new connection under the old name: its numbers have nothing to do with the old ones.
            self.ranges.forget(talk.forward);
            if !has(tcp_flag::ACK) {
                self.ranges.forget(talk.backward);
            }
            return hear_syn(talk, tcp, tell);
        }
        if has(tcp_flag::FIN | tcp_flag::RST) {
            let kind = RoundTripKind::TcpDuration;
            tell(Event::Response { kind, id: exchange_id(kind, talk.both, 0), expected: true });
        }
        // A reset acknowledges what it likes.
        if has(tcp_flag::ACK) && !has(tcp_flag::RST) {
            self.hear_ack(talk, tcp, tell);
        }
        if tcp.payload_bytes > 0 {
            self.hear_data(talk, tcp, tell);
        }
    }

    #[inline]
    fn hear_ack(&mut self, talk: Conversation, tcp: &TcpFields, tell: &mut impl FnMut(Event)) {
        let number = tcp.acknowledgement;
        let back = |kind, name: u32| exchange_id(kind, talk.backward, u64::from(name));
        let bare = tcp.payload_bytes == 0 && tcp.flags & tcp_flag::FIN == 0;
        hear_completion(talk, tcp, bare, tell);
        let kind = RoundTripKind::TcpSequence;
        if self.kinds.has(kind) && self.ranges.acknowledged(talk.backward, number, bare) {
            tell(Event::Response { kind, id: back(kind, number), expected: true });
        }
        if let Some((_, echo)) = tcp.timestamps {
            let kind = RoundTripKind::TcpTimestamp;
            tell(Event::Response { kind, id: back(kind, echo), expected: true });
        }
    }

    #[inline]
    fn hear_data(&mut self, talk: Conversation, tcp: &TcpFields, tell: &mut impl FnMut(Event)) {
        let there = |kind, name: u32| exchange_id(kind, talk.forward, u64::from(name));
        let kind = RoundTripKind::TcpSequence;
        if self.kinds.has(kind) {
            let end = tcp.sequence.wrapping_add(tcp.payload_bytes);
            match self.ranges.sent(talk.forward, tcp.sequence, end) {
                true => tell(request(kind, there(kind, end))),
                false => tell(Event::Ambiguous { kind }),
            }
        }
        if let Some((stamp, _)) = tcp.timestamps {
            let kind = RoundTripKind::TcpTimestamp;
            tell(request(kind, there(kind, stamp)));
        }
    }

    fn hear_exchange(
        &mut self,
        talk: Conversation,
        exchange: Exchange,
        observation: &Observation,
        key: &FlowKey,
        tell: &mut impl FnMut(Event),
    ) {
        match exchange {
            Exchange::Dns { id, response } => {
                pair(RoundTripKind::Dns, talk, id.into(), response, tell);
            }
            Exchange::Ntp { stamp, response } => {
                pair(RoundTripKind::Ntp, talk, stamp, response, tell);
            }
            Exchange::IcmpEcho { id, reply } => {
                pair(RoundTripKind::Icmp, talk, id.into(), reply, tell);
            }
            Exchange::QuicLong { initial, source_id, destination_id } => {
                // The server is at the lower port; between equal ones it is unknown.
                let by_client = key.destination_port < key.source_port;
                self.spins.heard_long(talk.forward, talk.backward, by_client, observation.time);
                let kind = RoundTripKind::QuicHandshake;
                if by_client && initial {
                    pair(kind, talk, source_id, false, tell);
                } else if key.source_port < key.destination_port {
                    pair(kind, talk, destination_id, true, tell);
                }
            }
            Exchange::QuicShort { spin } => {
                let (kind, ports) =
                    (RoundTripKind::QuicSpin, [key.source_port, key.destination_port]);
                match self.spins.heard_short(talk.forward, ports, spin, observation.time) {
                    Turn::None => {}
                    Turn::After(rtt_ns) => tell(Event::Turned { kind, rtt_ns }),
                    Turn::Early => tell(Event::Ambiguous { kind }),
                }
            }
        }
    }
}

/// A SYN asks; a SYN-ACK answers it and asks for its own ACK.
fn hear_syn(talk: Conversation, tcp: &TcpFields, tell: &mut impl FnMut(Event)) {
    use RoundTripKind::{TcpDuration, TcpHandshake, TcpHandshakeClient, TcpHandshakeServer};
    let there = |kind, name: u32| exchange_id(kind, talk.forward, u64::from(name));
    let back = |kind| exchange_id(kind, talk.backward, u64::from(tcp.acknowledgement));
    let next = tcp.sequence.wrapping_add(1);
    if tcp.flags & tcp_flag::ACK != 0 {
        let kind = TcpHandshakeServer;
        tell(Event::Response { kind, id: back(kind), expected: true });
        tell(Event::Relayed { kind: TcpHandshake, id: back(TcpHandshake) });
        return tell(request(TcpHandshakeClient, there(TcpHandshakeClient, next)));
    }
    for kind in [TcpHandshake, TcpHandshakeServer] {
        tell(request(kind, there(kind, next)));
        // The server may accept data that comes with the SYN, or not (RFC 7413).
        if tcp.payload_bytes > 0 {
            let id = there(kind, next.wrapping_add(tcp.payload_bytes));
            tell(Event::Alternative { kind, id });
        }
    }
    let (kind, variant) = (TcpDuration, Variant::of(tcp.sequence));
    tell(Event::Request { kind, id: exchange_id(kind, talk.both, 0), variant });
}

/// Every ACK may complete a handshake: that of the SYN-ACK with its acknowledgement, that of the SYN
/// with its own sequence number. If it is not `bare`, the one that did was lost or never sent, and
/// this one may have waited for the application.
#[inline]
fn hear_completion(talk: Conversation, tcp: &TcpFields, bare: bool, tell: &mut impl FnMut(Event)) {
    use RoundTripKind::{TcpHandshake, TcpHandshakeClient};
    for (kind, flow, name) in [
        (TcpHandshakeClient, talk.backward, tcp.acknowledgement),
        (TcpHandshake, talk.forward, tcp.sequence),
    ] {
        let id = exchange_id(kind, flow, u64::from(name));
        tell(match bare {
            true => Event::Response { kind, id, expected: false },
            false => Event::Spoiled { kind, id },
        });
    }
}

/// A request that needs no variant.
fn request(kind: RoundTripKind, id: u64) -> Event {
    Event::Request { kind, id, variant: Variant::default() }
}

/// A question by its name, or the answer that returns it.
fn pair(
    kind: RoundTripKind,
    talk: Conversation,
    name: u64,
    response: bool,
    tell: &mut impl FnMut(Event),
) {
    tell(match response {
        true => {
            Event::Response { kind, id: exchange_id(kind, talk.backward, name), expected: true }
        }
        false => request(kind, exchange_id(kind, talk.forward, name)),
    });
}

impl Event {
    /// What it is a part of.
    const fn kind(&self) -> RoundTripKind {
        match self {
            Self::Request { kind, .. }
            | Self::Alternative { kind, .. }
            | Self::Relayed { kind, .. }
            | Self::Spoiled { kind, .. }
            | Self::Response { kind, .. }
            | Self::Ambiguous { kind }
            | Self::Turned { kind, .. } => *kind,
        }
    }
}
