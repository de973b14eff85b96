//! From packets to requests and responses: one definition of what a round trip is, for all
//! algorithms.

use twixt_model::{
    Detail, Exchange, FlowKey, Observation, RoundTripKind, RoundTripPart, SpinUse, TcpFields,
    protocol, tcp_flag,
};

use super::connection::{Connection, Heard, Segment};
use super::event::{Event, Variant, exchange_id};
use super::kinds::KindSet;
use super::sequence::Range;
use super::spin::{Short, Spin, Turn};
use super::turn::TurnEvent;
use crate::conversation::Conversation;
use crate::flow_table::FlowTable;

/// Turns packets into events. All but sequence numbers, turns of connections and spin bits is known from
/// the packet alone; for those it keeps a little state per flow.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Listener {
    kinds: KindSet,
    seed: u64,
    ranges: FlowTable<Range>,
    connections: FlowTable<Connection>,
    spins: FlowTable<Spin>,
    spin_use: SpinUse,
}

/// What was counted of flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlowCounts {
    /// Flows that lost their state to others: that of sequence numbers, turns, and spin bits.
    pub(super) sequence: u64,
    pub(super) turns: u64,
    pub(super) spin: u64,
    /// How many connections came to be judged so, less those that were before.
    pub(super) spin_use: SpinUse,
}

impl FlowCounts {
    /// Flows without state that matter for a kind; `None` if it needs no state of flows.
    pub(super) const fn forgotten(&self, kind: RoundTripKind) -> Option<u64> {
        match kind {
            RoundTripKind::TcpSequence => Some(self.sequence),
            RoundTripKind::ServerResponse => Some(self.turns),
            RoundTripKind::QuicSpin => Some(self.spin),
            _ => None,
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        self.with(other, u64::wrapping_add)
    }

    pub(super) fn minus(self, earlier: Self) -> Self {
        self.with(earlier, u64::wrapping_sub)
    }

    pub(super) const fn numbers(&self) -> [u64; 7] {
        let SpinUse { usable, constant, random, undecided } = self.spin_use;
        [self.sequence, self.spin, self.turns, usable, constant, random, undecided]
    }

    pub(super) const fn of_numbers(numbers: [u64; 7]) -> Self {
        let [sequence, spin, turns, usable, constant, random, undecided] = numbers;
        Self { sequence, turns, spin, spin_use: SpinUse { usable, constant, random, undecided } }
    }

    fn with(self, other: Self, change: impl Fn(u64, u64) -> u64) -> Self {
        let (ours, theirs) = (self.numbers(), other.numbers());
        Self::of_numbers(std::array::from_fn(|at| change(ours[at], theirs[at])))
    }
}

impl Listener {
    /// For these kinds, with state for so many flows; for all there are if `None`.
    pub(super) fn new(kinds: KindSet, seed: u64, flows: Option<u32>) -> Self {
        let ranges = if kinds.has(RoundTripKind::TcpSequence) { flows } else { Some(0) };
        let spins = if kinds.has(RoundTripKind::QuicSpin) { flows } else { Some(0) };
        let of_connections = [
            RoundTripKind::TcpSequence,
            RoundTripKind::TcpTimestamp,
            RoundTripKind::ServerResponse,
        ];
        let connections =
            if of_connections.iter().any(|&kind| kinds.has(kind)) { flows } else { Some(0) };
        Self {
            kinds,
            seed,
            ranges: FlowTable::new(ranges),
            // A connection is two flows.
            connections: FlowTable::new(connections.map(|flows| flows.div_ceil(2))),
            spins: FlowTable::new(spins.map(|flows| flows.div_ceil(2))),
            spin_use: SpinUse::default(),
        }
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
            let heard = self.hear_connection(talk, tcp, observation, detail);
            hear_turn(&heard, &mut tell);
            self.hear_tcp(talk, tcp, &heard, &mut tell);
        }
        if let Some(exchange) = detail.exchange {
            self.hear_exchange(talk, exchange, observation, &detail.key, &mut tell);
        }
    }

    /// What was counted of flows so far.
    pub(super) const fn counts(&self) -> FlowCounts {
        FlowCounts {
            sequence: self.ranges.replaced(),
            turns: self.connections.replaced(),
            spin: self.spins.replaced(),
            spin_use: self.spin_use,
        }
    }

    /// Bytes of state.
    pub(super) fn state_bytes(&self) -> u64 {
        self.ranges.state_bytes() + self.connections.state_bytes() + self.spins.state_bytes()
    }

    #[inline]
    fn hear_connection(
        &mut self,
        talk: Conversation,
        tcp: &TcpFields,
        observation: &Observation,
        detail: &Detail,
    ) -> Heard {
        if !self.connections.is_kept() {
            return Heard::NOTHING;
        }
        self.connections.entry(talk.both).hear(&Segment {
            tcp,
            exchange: detail.exchange,
            source_port: detail.key.source_port,
            destination_port: detail.key.destination_port,
            class: observation.class,
            time: observation.time,
            canonical: talk.canonical,
        })
    }

    #[inline]
    fn hear_tcp(
        &mut self,
        talk: Conversation,
        tcp: &TcpFields,
        heard: &Heard,
        tell: &mut impl FnMut(Event),
    ) {
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
            let id = exchange_id(kind, talk.both, 0);
            tell(Event::Response { kind, id, part: None, expected: true });
        }
        // A reset acknowledges what it likes.
        if has(tcp_flag::ACK) && !has(tcp_flag::RST) {
            self.hear_ack(talk, tcp, heard, tell);
        }
        if tcp.payload_bytes > 0 {
            self.hear_data(talk, tcp, tell);
        }
    }

    #[inline]
    fn hear_ack(
        &mut self,
        talk: Conversation,
        tcp: &TcpFields,
        heard: &Heard,
        tell: &mut impl FnMut(Event),
    ) {
        let (number, part) = (tcp.acknowledgement, heard.part);
        let back = |kind, name: u32| exchange_id(kind, talk.backward, u64::from(name));
        let bare = tcp.payload_bytes == 0 && tcp.flags & tcp_flag::FIN == 0;
        if !heard.established {
            hear_completion(talk, tcp, bare, tell);
        }
        let kind = RoundTripKind::TcpSequence;
        if self.kinds.has(kind) && self.ranges.acknowledged(talk.backward, number, bare) {
            tell(Event::Response { kind, id: back(kind, number), part, expected: true });
        }
        if let Some((_, echo)) = tcp.timestamps {
            let kind = RoundTripKind::TcpTimestamp;
            tell(Event::Response { kind, id: back(kind, echo), part, expected: true });
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
                // Over TCP, turns of the connection tell, as for other protocols.
                if key.protocol == protocol::UDP {
                    pair(RoundTripKind::ServerResponse, talk, id.into(), response, tell);
                }
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
                self.spins.heard_long(talk.both, by_client, observation.time);
                let kind = RoundTripKind::QuicHandshake;
                if by_client && initial {
                    pair(kind, talk, source_id, false, tell);
                } else if key.source_port < key.destination_port {
                    pair(kind, talk, destination_id, true, tell);
                }
            }
            Exchange::QuicShort { spin } => {
                let kind = RoundTripKind::QuicSpin;
                let short = Short {
                    ports: [key.source_port, key.destination_port],
                    bit: spin,
                    canonical: talk.canonical,
                    time: observation.time,
                };
                match self.spins.heard_short(talk.both, short, &mut self.spin_use) {
                    Turn::None => {}
                    Turn::Followed => tell(Event::Followed { kind }),
                    Turn::After(rtt_ns) => tell(Event::Turned { kind, rtt_ns }),
                    Turn::Unclear => tell(Event::Ambiguous { kind }),
                }
            }
            // Turns of the connection have read them.
            Exchange::HttpRequest { .. } | Exchange::HttpResponse | Exchange::Tls { .. } => {}
        }
    }
}

/// What a segment means for requests and responses of its connection.
#[inline]
fn hear_turn(heard: &Heard, tell: &mut impl FnMut(Event)) {
    let kind = RoundTripKind::ServerResponse;
    match heard.turn {
        TurnEvent::None => {}
        TurnEvent::Asked => tell(Event::Opened { kind }),
        TurnEvent::Unclear => tell(Event::Ambiguous { kind }),
        TurnEvent::Answered(answered) => {
            tell(Event::Served { answered, legs_ns: heard.legs_ns });
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
        tell(Event::Response { kind, id: back(kind), part: None, expected: true });
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
            true => Event::Response { kind, id, part: None, expected: false },
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
    let part = (kind == RoundTripKind::ServerResponse).then_some(RoundTripPart::Dns);
    tell(match response {
        true => {
            let id = exchange_id(kind, talk.backward, name);
            Event::Response { kind, id, part, expected: true }
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
            | Self::Opened { kind }
            | Self::Followed { kind }
            | Self::Ambiguous { kind }
            | Self::Turned { kind, .. } => *kind,
            Self::Served { .. } => RoundTripKind::ServerResponse,
        }
    }
}
