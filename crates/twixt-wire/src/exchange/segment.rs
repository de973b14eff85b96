//! What a segment of TCP begins with: a request or a response of HTTP/1, or a record of TLS. Nothing is
//! put together from several segments, and nothing is decrypted.

use twixt_model::Exchange;

use crate::bytes::be16;

/// `None` for anything else, and for segments that begin in the middle of something.
pub(super) fn message(payload: &[u8]) -> Option<Exchange> {
    match *payload.first()? {
        CHANGE_CIPHER..=APPLICATION => tls(payload),
        b'H' if payload.starts_with(b"HTTP/1.") => Some(Exchange::HttpResponse),
        b'A'..=b'Z' if is_http_request(payload) => {
            Some(Exchange::HttpRequest { pipelined: is_pipelined(payload) })
        }
        _ => None,
    }
}

/// Methods of RFC 9110, section 9, and RFC 5789.
const METHODS: [&[u8]; 9] = [
    b"GET ",
    b"POST ",
    b"HEAD ",
    b"PUT ",
    b"DELETE ",
    b"OPTIONS ",
    b"PATCH ",
    b"CONNECT ",
    b"TRACE ",
];

fn is_http_request(payload: &[u8]) -> bool {
    METHODS.iter().any(|method| payload.starts_with(method))
}

/// Whether a second request follows at once. What follows the header of a request that has a body is
/// that body, which may look like anything.
fn is_pipelined(payload: &[u8]) -> bool {
    const END_OF_HEADER: &[u8] = b"\r\n\r\n";
    let has_body = ![&b"GET "[..], b"HEAD "].iter().any(|method| payload.starts_with(method));
    let end = payload.windows(END_OF_HEADER.len()).position(|four| four == END_OF_HEADER);
    !has_body && end.is_some_and(|end| is_http_request(&payload[end + END_OF_HEADER.len()..]))
}

/// Types of records (RFC 8446, section 5.1).
const CHANGE_CIPHER: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION: u8 = 23;
/// A record is no longer than this (RFC 5246, section 6.2.3).
const RECORD_BYTES_MAX: u16 = (1 << 14) + 2048;
const RECORD_HEADER_BYTES: usize = 5;
/// Records of one segment that are looked at.
const RECORDS_MAX: usize = 16;

fn tls(payload: &[u8]) -> Option<Exchange> {
    let (mut application, mut handshake, mut last) = (false, false, None);
    let mut at = 0;
    for _ in 0..RECORDS_MAX {
        let Some((kind, bytes)) = payload.get(at..).and_then(record) else { break };
        application |= kind == APPLICATION;
        handshake |= matches!(kind, CHANGE_CIPHER | HANDSHAKE);
        last = Some(kind);
        at += RECORD_HEADER_BYTES + usize::from(bytes);
    }
    let ends_in_application = last? == APPLICATION;
    Some(Exchange::Tls { application, handshake, ends_in_application })
}

/// Type and length of the record at the start.
fn record(bytes: &[u8]) -> Option<(u8, u16)> {
    let (&kind, &major, &minor) = (bytes.first()?, bytes.get(1)?, bytes.get(2)?);
    let length = be16(bytes, 3)?;
    let known = matches!(kind, CHANGE_CIPHER | ALERT | HANDSHAKE | APPLICATION);
    let plausible = major == 3 && minor <= 4 && (1..=RECORD_BYTES_MAX).contains(&length);
    (known && plausible).then_some((kind, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(kinds: &[(u8, u16)]) -> Vec<u8> {
        let one = |&(kind, length): &(u8, u16)| {
            let [high, low] = length.to_be_bytes();
            [vec![kind, 3, 3, high, low], vec![0xaa; length.into()]].concat()
        };
        kinds.iter().flat_map(one).collect()
    }

    #[track_caller]
    fn check_tls(payload: &[u8], expected: Option<(bool, bool, bool)>) {
        let expected = expected.map(|(application, handshake, ends_in_application)| {
            Exchange::Tls { application, handshake, ends_in_application }
        });
        assert_eq!(message(payload), expected);
    }

    #[test]
    fn records_of_tls_are_told_apart() {
        check_tls(&records(&[(22, 500)]), Some((false, true, false)));
        check_tls(&records(&[(23, 500)]), Some((true, false, true)));
        check_tls(&records(&[(22, 90), (20, 1), (23, 700)]), Some((true, true, true)));
        check_tls(&records(&[(20, 1), (22, 40)]), Some((false, true, false)));
        check_tls(&records(&[(21, 2)]), Some((false, false, false)));
        let cut = records(&[(23, 900)]);
        check_tls(&cut[..60], Some((true, false, true)));
        check_tls(&cut[..4], None);
        check_tls(&[23, 3, 3, 0xff, 0xff, 0], None);
        check_tls(&[23, 1, 3, 0, 9, 0], None);
        check_tls(&records(&[(24, 9)]), None);
    }

    #[test]
    fn requests_of_http_are_told_from_responses() {
        let request = |pipelined| Some(Exchange::HttpRequest { pipelined });
        assert_eq!(message(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), request(false));
        assert_eq!(message(b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n"), request(true));
        assert_eq!(message(b"POST / HTTP/1.1\r\n\r\nGET lost"), request(false));
        assert_eq!(message(b"HTTP/1.1 200 OK\r\n"), Some(Exchange::HttpResponse));
        assert_eq!(message(b"HTTP/2 200"), None);
        assert_eq!(message(b"GETTING"), None);
        assert_eq!(message(b""), None);
    }
}
