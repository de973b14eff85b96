//! Asks chronyd how well it keeps the clock: its `tracking` report, over its command port.
//!
//! Layout of the messages: `candm.h` of chrony, protocol version 6. All integers are big-endian.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use super::{ClockWord, field, seconds};

const PORT: u16 = 323;
const VERSION: u8 = 6;
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const COMMAND_TRACKING: u16 = 33;
const REPLY_TRACKING: u16 = 5;
/// A request is as long as its reply, so that it cannot be used for amplification.
const MESSAGE_BYTES: usize = 104;
/// Ours, so that a reply is known.
const SEQUENCE: [u8; 4] = *b"twxt";
/// chronyd follows this machine's own clock, which says nothing about its error.
const REFERENCE_LOCAL: u32 = 0x7f7f_0101;
/// No source is followed.
const LEAP_UNSYNCHRONISED: u16 = 3;

/// What chronyd on this machine says.
pub(super) fn ask(timeout: Duration) -> io::Result<ClockWord> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect((Ipv4Addr::LOCALHOST, PORT))?;
    socket.set_read_timeout(Some(timeout))?;
    socket.send(&request())?;
    let mut reply = [0; 512];
    let length = socket.recv(&mut reply)?;
    read(&reply[..length]).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn request() -> [u8; MESSAGE_BYTES] {
    let mut request = [0; MESSAGE_BYTES];
    request[0] = VERSION;
    request[1] = REQUEST;
    request[4..6].copy_from_slice(&COMMAND_TRACKING.to_be_bytes());
    request[8..12].copy_from_slice(&SEQUENCE);
    request
}

/// Reads a reply. The head is 28 bytes; of the report, the fields that tell how far off the clock
/// may be.
fn read(reply: &[u8]) -> Option<ClockWord> {
    let word = |at| field(reply, at).map(u16::from_be_bytes);
    let number = |at| field(reply, at).map(u32::from_be_bytes).map(float);
    let is_ours = reply.first() == Some(&VERSION)
        && reply.get(1) == Some(&REPLY)
        && word(4)? == COMMAND_TRACKING
        && word(6)? == REPLY_TRACKING
        && word(8)? == 0
        && field(reply, 16)? == SEQUENCE;
    if !is_ours {
        return None;
    }
    let reference = u32::from_be_bytes(field(reply, 28)?);
    let follows = word(54)? < LEAP_UNSYNCHRONISED && reference != REFERENCE_LOCAL;
    let (correction, root_delay, root_dispersion) = (number(68)?, number(92)?, number(96)?);
    // The maximum error of RFC 5905, section 11.1, and what is not corrected yet.
    let bound = correction.abs() + root_delay / 2.0 + root_dispersion;
    Some(ClockWord::new(follows, seconds(bound)?))
}

/// chrony's floating point: 7 bits of exponent, 25 of coefficient, both signed.
fn float(bits: u32) -> f64 {
    let exponent = bits.cast_signed() >> 25;
    let coefficient = (bits << 7).cast_signed() >> 7;
    f64::from(coefficient) * f64::from(exponent - 25).exp2()
}

#[cfg(test)]
mod tests {
    use twixt_model::{Delay, mix};

    use super::*;

    /// A reply with these fields; the rest is as chronyd leaves it.
    fn reply(leap: u16, correction: u32, root_delay: u32, root_dispersion: u32) -> Vec<u8> {
        let mut reply = vec![0; MESSAGE_BYTES];
        reply[..2].copy_from_slice(&[VERSION, REPLY]);
        reply[4..6].copy_from_slice(&COMMAND_TRACKING.to_be_bytes());
        reply[6..8].copy_from_slice(&REPLY_TRACKING.to_be_bytes());
        reply[16..20].copy_from_slice(&SEQUENCE);
        reply[54..56].copy_from_slice(&leap.to_be_bytes());
        for (at, value) in [(68, correction), (92, root_delay), (96, root_dispersion)] {
            reply[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        reply
    }

    /// A coefficient times two to the exponent, as chrony packs it.
    fn packed(coefficient: i32, exponent: i32) -> u32 {
        ((exponent + 25) << 25).cast_unsigned() | (coefficient.cast_unsigned() & 0x01ff_ffff)
    }

    #[test]
    fn numbers_are_unpacked() {
        assert_eq!(float(0), 0.0);
        assert_eq!(float(packed(1, 0)), 1.0);
        assert_eq!(float(packed(-3, 2)), -12.0);
        assert_eq!(float(packed(1 << 20, -30)), 2.0_f64.powi(-10));
    }

    #[test]
    fn a_tracking_report_tells_how_far_off_the_clock_may_be() {
        // 1/1024 s, 1/512 s and 1/256 s.
        let (correction, delay, dispersion) =
            (packed(-(1 << 10), -20), packed(1 << 11, -20), packed(1 << 12, -20));
        let word = read(&reply(0, correction, delay, dispersion)).unwrap();
        let expected = 1e9 * (1.0 / 1024.0 + 1.0 / 1024.0 + 1.0 / 256.0);
        assert_eq!(word.bound, Some(Delay::from_nanos(expected as i64)));
        let lost = read(&reply(LEAP_UNSYNCHRONISED, correction, delay, dispersion)).unwrap();
        assert_eq!(lost, ClockWord { synchronised: false, bound: None });
        let mut local = reply(0, correction, delay, dispersion);
        local[28..32].copy_from_slice(&REFERENCE_LOCAL.to_be_bytes());
        assert_eq!(read(&local), Some(lost), "its own clock, with an error of nothing");
    }

    #[test]
    fn other_bytes_are_no_report() {
        let whole = reply(0, 0, 0, 0);
        for length in 0..100 {
            assert_eq!(read(&whole[..length]), None, "{length}");
        }
        for at in [0, 1, 4, 5, 6, 7, 8, 9, 16, 19] {
            let mut other = whole.clone();
            other[at] ^= 0x55;
            assert_eq!(read(&other), None, "{at}");
        }
        // Hostile numbers: no panic.
        for seed in 0..2000 {
            let mut noise = whole.clone();
            for (at, byte) in noise.iter_mut().enumerate().skip(28) {
                *byte = mix(seed * 1000 + at as u64) as u8;
            }
            let _ = read(&noise);
        }
    }
}
