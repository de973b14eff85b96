//! What is known of a TCP connection: who opened it, how long its two legs are at best, and whose turn
//! it is.

use twixt_model::{ClassId, Exchange, RoundTripPart, TcpFields, Timestamp, tcp_flag};

use super::turn::{Turn, TurnEvent};

/// One connection, both directions of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Connection {
    client: Client,
    /// A SYN of it was seen: what came before the first segment is known to be nothing.
    began: bool,
    /// An ACK of the client followed its SYN-ACK: no further one completes the handshake.
    established: bool,
    toward_server: Leg,
    toward_client: Leg,
    turn: Turn,
}

/// Which of the two directions is the client's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Client {
    #[default]
    Undecided,
    Unknown,
    Canonical,
    Reverse,
}

/// The way from the point to one end and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Leg {
    #[default]
    Unknown,
    /// A SYN or SYN-ACK waits for its answer.
    Asked(Timestamp),
    /// The shortest time so far.
    Took(i64),
}

/// A segment of TCP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    pub(super) tcp: &'a TcpFields,
    pub(super) exchange: Option<Exchange>,
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) class: ClassId,
    pub(super) time: Timestamp,
    /// Which way it goes, of two.
    pub(super) canonical: bool,
}

/// What a segment tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Heard {
    /// Toward whom a round trip goes that it ends.
    pub(super) part: Option<RoundTripPart>,
    pub(super) turn: TurnEvent,
    /// Both legs at best, toward servers and clients, if both are known.
    pub(super) legs_ns: Option<(i64, i64)>,
    /// No handshake waits for an ACK.
    pub(super) established: bool,
}

impl Heard {
    /// Nothing is known of the connection.
    pub(super) const NOTHING: Self =
        Self { part: None, turn: TurnEvent::None, legs_ns: None, established: false };
}

impl Connection {
    /// Hears a segment.
    pub(super) fn hear(&mut self, segment: &Segment<'_>) -> Heard {
        let established = self.established;
        let turn = match segment.tcp.flags & tcp_flag::SYN != 0 {
            true => self.hear_syn(segment),
            false => self.hear_segment(segment),
        };
        let part = self.is_from_client(segment.canonical).map(|from_client| match from_client {
            true => RoundTripPart::TowardClients,
            false => RoundTripPart::TowardServers,
        });
        let legs_ns = self.toward_server.took_ns().zip(self.toward_client.took_ns());
        Heard { part, turn, legs_ns, established }
    }

    fn hear_syn(&mut self, segment: &Segment<'_>) -> TurnEvent {
        let next = segment.tcp.sequence.wrapping_add(1);
        let is_answer = segment.tcp.flags & tcp_flag::ACK != 0;
        let client = match segment.canonical != is_answer {
            true => Client::Canonical,
            false => Client::Reverse,
        };
        let again = self.client == client && self.turn.begins_at(!is_answer, next);
        let answers_this = is_answer && self.turn.begins_at(true, segment.tcp.acknowledgement);
        if !again && !answers_this {
            *self = Self::default();
        }
        (self.client, self.began) = (client, true);
        self.turn.begin(!is_answer, next);
        if is_answer {
            self.turn.begin(true, segment.tcp.acknowledgement);
        }
        match (is_answer, again) {
            (false, false) => self.toward_server = Leg::Asked(segment.time),
            (false, true) => self.toward_server.doubt(),
            (true, false) => {
                self.toward_server.end(segment.time);
                self.toward_client = Leg::Asked(segment.time);
            }
            (true, true) => self.toward_client.doubt(),
        }
        TurnEvent::None
    }

    fn hear_segment(&mut self, segment: &Segment<'_>) -> TurnEvent {
        if self.client == Client::Undecided {
            self.client = client_by_port(segment);
        }
        let Some(from_client) = self.is_from_client(segment.canonical) else {
            return TurnEvent::None;
        };
        let bare = segment.tcp.payload_bytes == 0 && segment.tcp.flags & tcp_flag::FIN == 0;
        if from_client {
            self.hear_first_ack(segment, bare);
        } else if bare
            && let Some(acknowledged_ns) = self.turn.acknowledged(segment.tcp, segment.time)
        {
            self.toward_server.shorten(acknowledged_ns);
        }
        self.turn.hear(segment, from_client, self.began)
    }

    /// The client's first ACK ends its leg, unless it may have waited for data to carry.
    fn hear_first_ack(&mut self, segment: &Segment<'_>, bare: bool) {
        if let Leg::Asked(_) = self.toward_client
            && segment.tcp.flags & tcp_flag::ACK != 0
        {
            let is_answer = self.turn.begins_at(false, segment.tcp.acknowledgement);
            // Of a simultaneous open, and after a retransmission, a further ACK may matter.
            self.established = is_answer && self.toward_server.took_ns().is_some();
            match bare && is_answer {
                true => self.toward_client.end(segment.time),
                false => self.toward_client.doubt(),
            }
        }
    }

    fn is_from_client(&self, canonical: bool) -> Option<bool> {
        match self.client {
            Client::Canonical => Some(canonical),
            Client::Reverse => Some(!canonical),
            Client::Undecided | Client::Unknown => None,
        }
    }
}

impl Leg {
    /// Its answer came.
    fn end(&mut self, time: Timestamp) {
        *self = match *self {
            Self::Asked(at) if time >= at => Self::Took((time - at).as_nanos()),
            _ => Self::Unknown,
        };
    }

    /// It was asked again before the answer.
    const fn doubt(&mut self) {
        if let Self::Asked(_) = self {
            *self = Self::Unknown;
        }
    }

    /// A time that includes it.
    fn shorten(&mut self, time_ns: i64) {
        if let Self::Took(known_ns) = self {
            *known_ns = (*known_ns).min(time_ns.max(0));
        }
    }

    const fn took_ns(self) -> Option<i64> {
        match self {
            Self::Took(ns) => Some(ns),
            Self::Unknown | Self::Asked(_) => None,
        }
    }
}

/// Ports of servers (RFC 6335, section 6), and the first of those from which clients choose, on Linux
/// and most others.
const SYSTEM_PORTS: std::ops::Range<u16> = 0..1024;
const CLIENT_PORT_MIN: u16 = 32_768;

/// Of a connection that began before the capture: the only one of the two ports that is a server's.
fn client_by_port(segment: &Segment<'_>) -> Client {
    let (source, destination) = (segment.source_port, segment.destination_port);
    let is_system = |port: u16| SYSTEM_PORTS.contains(&port);
    let is_low = |port: u16| port < CLIENT_PORT_MIN;
    let from_client = match (is_system(source), is_system(destination)) {
        (from, to) if from != to => to,
        (false, false) if is_low(source) != is_low(destination) => is_low(destination),
        _ => return Client::Unknown,
    };
    if from_client == segment.canonical { Client::Canonical } else { Client::Reverse }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source_port: u16, destination_port: u16, expected: Client) {
        let tcp = TcpFields::default();
        let segment = Segment {
            tcp: &tcp,
            exchange: None,
            source_port,
            destination_port,
            class: ClassId(0),
            time: Timestamp::from_nanos(0),
            canonical: true,
        };
        assert_eq!(client_by_port(&segment), expected);
    }

    #[test]
    fn ports_tell_who_is_the_client_only_if_they_differ_in_kind() {
        check(50_000, 443, Client::Canonical);
        check(443, 50_000, Client::Reverse);
        check(2000, 22, Client::Canonical);
        check(8080, 40_000, Client::Reverse);
        check(5000, 8080, Client::Unknown);
        check(40_000, 50_000, Client::Unknown);
        check(80, 443, Client::Unknown);
    }
}
