//! Whose turn it is in a TCP connection: from the last byte of a request to the first of its response.
//!
//! A request is measured only if both sides take turns, and the numbers of TCP prove it wherever the
//! point is: the client had received all that the server had sent when its request began (its ACK says
//! so), and the server had received the whole request when its response began. So responses that begin
//! before their request ends, requests within a response, and what a side sends unasked give nothing.
//! Neither do requests of which a part was retransmitted, lost before the point, or seen out of order.
//!
//! Requests of HTTP/1 that follow each other without waiting are recognised. Of TLS only application data
//! counts. In TLS 1.3 a part of the handshake, and the tickets that a server sends after it, look like
//! application data: the first turn of such a connection is left out.

use twixt_model::{ClassId, Exchange, RoundTripPart, TcpFields, Timestamp, tcp_flag};

use super::connection::Segment;
use super::sequence::before;

/// State of the conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Turn {
    client: Sent,
    server: Sent,
    state: State,
    /// Class of the request.
    class: ClassId,
    /// The request began as one of HTTP/1.
    is_http: bool,
    is_tls: bool,
    /// A whole turn was seen, if not the beginning of the connection.
    follows: bool,
    /// The server's next application data may belong to the handshake.
    tickets_due: bool,
}

/// What one side has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sent {
    /// The number behind its last byte.
    next: Option<u32>,
    any_application: bool,
    /// What begins in the middle of a record of TLS is application data.
    in_application: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The server spoke last, or nobody did.
    #[default]
    Answered,
    /// The client spoke last: when, how many bytes the request has so far, and how long after its end
    /// the server acknowledged all of it.
    Asked { at: Timestamp, bytes: u32, acknowledged_ns: Option<i64> },
    /// The client spoke last, and its answer would say nothing.
    Unclear,
}

/// What a segment means for requests and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnEvent {
    /// Nothing.
    None,
    /// A request begins.
    Asked,
    /// The response begins so long after the end of its request.
    Answered(Answered),
    /// A response begins, and it is unclear to what.
    Unclear,
}

/// A response that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    /// How long after the last byte of its request.
    pub(super) after_ns: i64,
    /// How long the server's acknowledgement of the request took, if it came by itself.
    pub(super) acknowledged_ns: Option<i64>,
    pub(super) part: RoundTripPart,
    /// Class of the request.
    pub(super) class: ClassId,
}

/// How a segment continues what its side has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Next,
    /// Nothing new.
    Old,
    /// Something is missing before it, or some of it is not new.
    Broken,
}

const DNS_PORT: u16 = 53;

impl Turn {
    /// The first number of one side is known.
    pub(super) const fn begin(&mut self, client: bool, next: u32) {
        let sent = if client { &mut self.client } else { &mut self.server };
        sent.next = Some(next);
    }

    /// Whether one side sent nothing before this number, or all up to it.
    pub(super) fn begins_at(&self, client: bool, next: u32) -> bool {
        let sent = if client { &self.client } else { &self.server };
        sent.next == Some(next)
    }

    /// The server sent an ACK and nothing else: how long after the end of the request, if it is of all
    /// of it, and the first.
    pub(super) fn acknowledged(&mut self, tcp: &TcpFields, time: Timestamp) -> Option<i64> {
        let is_whole = self.client.next == Some(tcp.acknowledgement);
        match &mut self.state {
            State::Asked { at, acknowledged_ns: found @ None, .. } if is_whole => {
                *found = Some((time - *at).as_nanos());
                *found
            }
            _ => None,
        }
    }

    /// Hears a segment of a connection whose first segment was seen, or not.
    pub(super) fn hear(
        &mut self,
        segment: &Segment<'_>,
        from_client: bool,
        began: bool,
    ) -> TurnEvent {
        let tcp = segment.tcp;
        if tcp.flags & tcp_flag::RST != 0 {
            self.doubt();
            return TurnEvent::None;
        }
        let sent = if from_client { &mut self.client } else { &mut self.server };
        let order = sent.take(tcp);
        if tcp.payload_bytes == 0 {
            // The number of an ACK tells of data that the point did not see; TLS ends by an alert that
            // looks like application data.
            let ends_tls = from_client && self.is_tls && tcp.flags & tcp_flag::FIN != 0;
            if order == Order::Broken || ends_tls {
                self.doubt();
            }
            return TurnEvent::None;
        }
        let is_application = self.is_application(segment.exchange, from_client);
        match (from_client, order) {
            (true, Order::Old) => {
                self.sent_again(tcp.payload_bytes);
                TurnEvent::None
            }
            (false, Order::Old) => TurnEvent::None,
            (_, order) if !is_application => {
                self.doubt_if(order == Order::Broken || from_client);
                TurnEvent::None
            }
            (true, order) => self.request(segment, (began || self.follows) && order == Order::Next),
            (false, order) => self.response(segment, order == Order::Next),
        }
    }

    fn request(&mut self, segment: &Segment<'_>, in_order: bool) -> TurnEvent {
        let (tcp, at) = (segment.tcp, segment.time);
        let begins = self.state == State::Answered;
        let is_http = matches!(segment.exchange, Some(Exchange::HttpRequest { .. }));
        let pipelined = matches!(segment.exchange, Some(Exchange::HttpRequest { pipelined: true }))
            || !begins && self.is_http && is_http;
        let bytes = match self.state {
            State::Answered => {
                (self.class, self.is_http) = (segment.class, is_http);
                let heard_all = self.server.next == Some(tcp.acknowledgement);
                (heard_all && !self.tickets_due).then_some(0)
            }
            State::Asked { bytes, .. } => Some(bytes),
            State::Unclear => None,
        };
        self.state = match bytes.filter(|_| in_order && !pipelined) {
            Some(bytes) => {
                let bytes = bytes.saturating_add(tcp.payload_bytes);
                State::Asked { at, bytes, acknowledged_ns: None }
            }
            None => State::Unclear,
        };
        if begins { TurnEvent::Asked } else { TurnEvent::None }
    }

    fn response(&mut self, segment: &Segment<'_>, in_order: bool) -> TurnEvent {
        let state = std::mem::take(&mut self.state);
        self.tickets_due &= state == State::Answered;
        let is_whole = self.client.next == Some(segment.tcp.acknowledgement);
        let fits = !self.is_http || segment.exchange == Some(Exchange::HttpResponse);
        self.follows |= state != State::Answered && is_whole;
        match state {
            State::Answered => TurnEvent::None,
            State::Asked { at, acknowledged_ns, .. } if in_order && is_whole && fits => {
                TurnEvent::Answered(Answered {
                    after_ns: (segment.time - at).as_nanos(),
                    acknowledged_ns,
                    part: self.part(segment.source_port),
                    class: self.class,
                })
            }
            State::Asked { .. } | State::Unclear => TurnEvent::Unclear,
        }
    }

    const fn part(&self, server_port: u16) -> RoundTripPart {
        match (self.is_tls, self.is_http, server_port) {
            (true, ..) => RoundTripPart::Tls,
            (_, true, _) => RoundTripPart::Http,
            (.., DNS_PORT) => RoundTripPart::Dns,
            _ => RoundTripPart::OtherTcp,
        }
    }

    /// Whether a segment is what applications say to each other.
    fn is_application(&mut self, exchange: Option<Exchange>, from_client: bool) -> bool {
        let client_was_silent = !self.client.any_application;
        let sent = if from_client { &mut self.client } else { &mut self.server };
        let is_application = match exchange {
            Some(Exchange::Tls { application, handshake, ends_in_application }) => {
                self.is_tls = true;
                sent.in_application = ends_in_application;
                let of_handshake = !from_client && (handshake || client_was_silent);
                self.tickets_due |= application && of_handshake;
                self.doubt_if(application && of_handshake);
                application && (from_client || !handshake)
            }
            _ => !self.is_tls || sent.in_application,
        };
        let sent = if from_client { &mut self.client } else { &mut self.server };
        sent.any_application |= is_application;
        is_application
    }

    /// The client sent again what it had sent. A keep-alive is the last byte of what was
    /// acknowledged (RFC 9293, section 3.8.4), and no part of a request.
    fn sent_again(&mut self, payload_bytes: u32) {
        let is_request = |bytes: u32| payload_bytes > 1 || bytes <= 1;
        if let State::Asked { bytes, .. } = self.state {
            self.doubt_if(is_request(bytes));
        }
    }

    /// What is asked now gives nothing.
    const fn doubt(&mut self) {
        if let State::Asked { .. } = self.state {
            self.state = State::Unclear;
        }
    }

    const fn doubt_if(&mut self, doubtful: bool) {
        if doubtful {
            self.doubt();
        }
    }
}

impl Sent {
    /// A segment of this side.
    fn take(&mut self, tcp: &TcpFields) -> Order {
        let fin = u32::from(tcp.flags & tcp_flag::FIN != 0);
        let end = tcp.sequence.wrapping_add(tcp.payload_bytes).wrapping_add(fin);
        let Some(next) = self.next else {
            self.next = Some(end);
            return Order::Broken;
        };
        if !before(next, end) {
            return Order::Old;
        }
        self.next = Some(end);
        if tcp.sequence == next { Order::Next } else { Order::Broken }
    }
}

#[cfg(test)]
mod tests;
