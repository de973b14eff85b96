//! Conversations, and which of their responses are measured.

use twixt_model::{ClassId, Exchange, RoundTripPart, TcpFields, Timestamp, tcp_flag};

use super::super::connection::{Connection, Segment};
use super::{Answered, TurnEvent};

const ACK: u8 = tcp_flag::ACK;
const MILLISECOND: i64 = 1_000_000;
const GET: Option<Exchange> = Some(Exchange::HttpRequest { pipelined: false });
const OK: Option<Exchange> = Some(Exchange::HttpResponse);

/// A segment at a time in milliseconds: whose, flags, sequence number, acknowledgement, payload.
type Step = (i64, bool, u8, u32, u32, u32, Option<Exchange>);

fn client(at_ms: i64, sequence: u32, ack: u32, bytes: u32) -> Step {
    (at_ms, true, ACK, sequence, ack, bytes, None)
}

fn server(at_ms: i64, sequence: u32, ack: u32, bytes: u32) -> Step {
    (at_ms, false, ACK, sequence, ack, bytes, None)
}

fn with(exchange: Option<Exchange>, step: Step) -> Step {
    (step.0, step.1, step.2, step.3, step.4, step.5, exchange)
}

fn tls(application: bool, handshake: bool) -> Option<Exchange> {
    Some(Exchange::Tls { application, handshake, ends_in_application: application })
}

/// Data of the client begins at 100, of the server at 500. The legs take 10 and 1 ms.
fn handshake() -> Vec<Step> {
    vec![
        (0, true, tcp_flag::SYN, 99, 0, 0, None),
        (10, false, tcp_flag::SYN | ACK, 499, 100, 0, None),
        client(11, 100, 500, 0),
    ]
}

fn hear(steps: impl IntoIterator<Item = Step>) -> (Vec<Answered>, usize, Option<(i64, i64)>) {
    let (mut connection, mut answered, mut unclear, mut legs) =
        (Connection::default(), Vec::new(), 0, None);
    for (at_ms, from_client, flags, sequence, acknowledgement, payload_bytes, exchange) in steps {
        let tcp = TcpFields { sequence, acknowledgement, flags, payload_bytes, timestamps: None };
        let ports = if from_client { (50_000, 80) } else { (80, 50_000) };
        let heard = connection.hear(&Segment {
            tcp: &tcp,
            exchange,
            source_port: ports.0,
            destination_port: ports.1,
            class: ClassId(0),
            time: Timestamp::from_nanos(at_ms * MILLISECOND),
            canonical: from_client,
        });
        legs = heard.legs_ns;
        match heard.turn {
            TurnEvent::Answered(found) => answered.push(found),
            TurnEvent::Unclear => unclear += 1,
            TurnEvent::None | TurnEvent::Asked => {}
        }
    }
    (answered, unclear, legs)
}

/// Checks how long responses take in a connection that begins with a handshake, and how many are
/// unclear.
#[track_caller]
fn check(steps: &[Step], expected_ms: &[i64], unclear: usize) {
    let (answered, found_unclear, _) = hear(handshake().into_iter().chain(steps.iter().copied()));
    let found: Vec<i64> = answered.iter().map(|found| found.after_ns / MILLISECOND).collect();
    assert_eq!((found.as_slice(), found_unclear), (expected_ms, unclear));
}

#[test]
fn from_the_last_byte_of_a_request_to_the_first_of_its_response() {
    let two = [
        client(20, 100, 500, 50),
        client(25, 150, 500, 50),
        server(36, 500, 200, 0),
        server(75, 500, 200, 1000),
        server(76, 1500, 200, 1000),
        client(80, 200, 2500, 0),
        client(100, 200, 2500, 10),
        server(130, 2500, 210, 10),
    ];
    check(&two, &[50, 30], 0);
    let (answered, _, legs) = hear(handshake().into_iter().chain(two));
    assert_eq!(answered[0].acknowledged_ns, Some(11 * MILLISECOND));
    assert_eq!(answered[1].acknowledged_ns, None, "it came with the response");
    assert_eq!(answered[0].part, RoundTripPart::OtherTcp);
    assert_eq!(legs, Some((10 * MILLISECOND, MILLISECOND)));
}

#[test]
fn a_response_that_begins_before_its_request_ends_is_none() {
    // The server has acknowledged the first half only.
    check(&[client(20, 100, 500, 50), client(30, 150, 500, 50), server(31, 500, 150, 9)], &[], 1);
}

#[test]
fn a_request_within_a_response_is_none() {
    // Near the server: the client has not yet received all of the response.
    let near_server = [
        client(20, 100, 500, 50),
        server(40, 500, 150, 1000),
        server(41, 1500, 150, 1000),
        client(45, 150, 1500, 9),
        server(46, 2500, 159, 1000),
    ];
    check(&near_server, &[20], 1);
    // Near the client: what follows was sent before the server had the request.
    let near_client = [
        client(20, 100, 500, 50),
        server(40, 500, 150, 1000),
        client(41, 150, 1500, 9),
        server(42, 1500, 150, 1000),
        server(61, 2500, 159, 1000),
    ];
    check(&near_client, &[20], 1);
}

#[test]
fn pipelined_requests_are_left_out() {
    let requests = [with(GET, client(20, 100, 500, 50)), with(GET, client(25, 150, 500, 50))];
    check(&[requests[0], requests[1], with(OK, server(60, 500, 200, 9))], &[], 1);
    let both = Some(Exchange::HttpRequest { pipelined: true });
    check(&[with(both, client(20, 100, 500, 99)), with(OK, server(60, 500, 199, 9))], &[], 1);
    let one = [with(GET, client(20, 100, 500, 50)), with(OK, server(60, 500, 150, 9))];
    check(&one, &[40], 0);
    assert_eq!(hear(handshake().into_iter().chain(one)).0[0].part, RoundTripPart::Http);
}

#[test]
fn what_was_retransmitted_is_left_out_and_a_keep_alive_is_not() {
    let request = client(20, 100, 500, 50);
    check(&[request, client(220, 100, 500, 50), server(260, 500, 150, 9)], &[], 1);
    for bytes in [0, 1] {
        check(&[request, client(220, 149, 500, bytes), server(260, 500, 150, 9)], &[240], 0);
    }
    let one_byte = client(20, 100, 500, 1);
    check(&[one_byte, client(220, 100, 500, 1), server(260, 500, 101, 9)], &[], 1);
    // An old segment of the server is no response; one behind a gap is the middle of one.
    check(&[server(15, 500, 100, 9), client(20, 100, 509, 50), server(40, 500, 100, 9)], &[], 0);
    check(&[request, server(260, 600, 150, 9)], &[], 1);
    // The number of an ACK tells that a part of the request was not seen.
    check(&[request, client(30, 190, 500, 0), server(60, 500, 190, 9)], &[], 1);
}

#[test]
fn what_began_before_the_capture_begins_with_the_second_turn() {
    let (answered, unclear, legs) = hear([
        client(20, 100, 500, 50),
        server(40, 500, 150, 9),
        client(60, 150, 509, 50),
        server(70, 509, 200, 9),
    ]);
    // What came before the first request is unknown, so nothing is said of it.
    let found: Vec<i64> = answered.iter().map(|found| found.after_ns / MILLISECOND).collect();
    assert_eq!((found.as_slice(), unclear, legs), (&[10][..], 1, None));
}

#[test]
fn the_handshake_of_tls_is_neither_request_nor_response() {
    let second = [
        with(tls(false, true), client(20, 100, 500, 200)),
        with(tls(false, true), server(40, 500, 300, 3000)),
        with(tls(false, true), client(45, 300, 3500, 100)),
        with(tls(false, true), server(60, 3500, 400, 50)),
        with(tls(true, false), client(70, 400, 3550, 100)),
        with(tls(true, false), server(170, 3550, 500, 900)),
    ];
    check(&second, &[100], 0);
    assert_eq!(hear(handshake().into_iter().chain(second)).0[0].part, RoundTripPart::Tls);
    // Session resumption: the request follows the end of the handshake in one segment.
    let resumed = [
        with(tls(false, true), client(20, 100, 500, 200)),
        with(tls(false, true), server(40, 500, 300, 200)),
        with(tls(true, true), client(45, 300, 700, 100)),
        with(tls(true, false), server(85, 700, 400, 900)),
    ];
    check(&resumed, &[40], 0);
}

#[test]
fn tickets_that_a_server_sends_unasked_are_no_response() {
    let third = [
        with(tls(false, true), client(20, 100, 500, 200)),
        with(tls(true, true), server(40, 500, 300, 3000)),
        with(tls(true, true), client(45, 300, 3500, 80)),
        with(tls(true, false), client(46, 380, 3500, 100)),
        // Tickets come at once, the response to the first request later.
        with(tls(true, false), server(66, 3500, 480, 500)),
        with(tls(true, false), server(160, 4000, 480, 900)),
        with(tls(true, false), client(200, 480, 4900, 100)),
        with(tls(true, false), server(300, 4900, 580, 900)),
    ];
    check(&third, &[100], 1);
}

#[test]
fn a_port_that_is_used_again_is_another_connection() {
    let again = [
        client(20, 100, 500, 50),
        (1000, true, tcp_flag::SYN, 9_000, 0, 0, None),
        (1010, false, tcp_flag::SYN | ACK, 70_000, 9_001, 0, None),
        client(1011, 9_001, 70_001, 0),
        client(1020, 9_001, 70_001, 50),
        server(1060, 70_001, 9_051, 9),
    ];
    check(&again, &[40], 0);
}
