//! Asks ptp4l how well it keeps the adapter's clock: its current data set, over its socket.
//!
//! Layout of management messages: IEEE 1588-2008, clause 15. All integers are big-endian. Domain 0
//! only: ptp4l does not answer to others.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use twixt_model::Delay;

use super::{ClockWord, field};

/// Where ptp4l listens. The second takes questions only, and from everybody; older releases do not
/// have it, and talk to root and its group.
const SOCKETS: [&str; 2] = ["/run/ptp4l", "/run/ptp4lro"];
const HEADER_BYTES: usize = 34;
const MANAGEMENT: u8 = 0x0d;
const VERSION: u8 = 2;
const CONTROL_MANAGEMENT: u8 = 4;
const ACTION_RESPONSE: u8 = 2;
const TLV_MANAGEMENT: u16 = 1;
const CURRENT_DATA_SET: u16 = 0x2001;
/// The TLV with an empty data set.
const MESSAGE_BYTES: usize = HEADER_BYTES + 14 + 4 + 2 + 18;

/// What ptp4l on this machine says.
pub(super) fn ask(timeout: Duration) -> io::Result<ClockWord> {
    // It answers to the address that the question came from, which must be a name.
    // Services have a folder for such things.
    let folder =
        std::env::var_os("RUNTIME_DIRECTORY").map_or_else(std::env::temp_dir, PathBuf::from);
    let name = folder.join(format!("twixt-agent.{}", std::process::id()));
    let asked = ask_from(&name, timeout);
    let _ = std::fs::remove_file(&name);
    asked
}

fn ask_from(name: &Path, timeout: Duration) -> io::Result<ClockWord> {
    let listening: Vec<_> = SOCKETS.iter().filter(|path| Path::new(path).exists()).collect();
    if listening.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let _ = std::fs::remove_file(name);
    let socket = UnixDatagram::bind(name)?;
    socket.set_read_timeout(Some(timeout))?;
    socket.set_write_timeout(Some(timeout))?;
    let sent = listening.iter().any(|path| socket.send_to(&request(), path).is_ok());
    if !sent {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut reply = [0; 512];
    let length = socket.recv(&mut reply)?;
    read(&reply[..length]).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn request() -> [u8; MESSAGE_BYTES] {
    let mut request = [0; MESSAGE_BYTES];
    request[0] = MANAGEMENT;
    request[1] = VERSION;
    request[2..4].copy_from_slice(&(MESSAGE_BYTES as u16).to_be_bytes());
    request[32] = CONTROL_MANAGEMENT;
    request[33] = 0x7f; // no interval
    request[HEADER_BYTES..HEADER_BYTES + 10].fill(0xff); // all ports
    request[48..50].copy_from_slice(&TLV_MANAGEMENT.to_be_bytes());
    request[50..52].copy_from_slice(&20_u16.to_be_bytes());
    request[52..54].copy_from_slice(&CURRENT_DATA_SET.to_be_bytes());
    request
}

/// Reads a response: steps removed (u16), offset from the master and mean path delay, both in
/// nanoseconds times 2^16.
fn read(reply: &[u8]) -> Option<ClockWord> {
    let word = |at| field(reply, at).map(u16::from_be_bytes);
    let interval = |at| field(reply, at).map(i64::from_be_bytes).map(|interval| interval >> 16);
    let is_ours = reply.first()? & 0x0f == MANAGEMENT
        && reply.get(46)? & 0x0f == ACTION_RESPONSE
        && word(48)? == TLV_MANAGEMENT
        && word(52)? == CURRENT_DATA_SET;
    if !is_ours {
        return None;
    }
    let steps_removed = word(54)?;
    let (offset_ns, delay_ns) = (interval(56)?, interval(64)?);
    // The way there and the way back differ by no more than both take.
    let bound_ns = offset_ns.saturating_abs().saturating_add(delay_ns.saturating_abs());
    // A clock without a master is the master, or alone.
    Some(ClockWord::new(steps_removed > 0, Delay::from_nanos(bound_ns)))
}

#[cfg(test)]
mod tests {
    use twixt_model::mix;

    use super::*;

    fn reply(steps_removed: u16, offset_ns: i64, delay_ns: i64) -> Vec<u8> {
        let mut reply = request().to_vec();
        reply[46] = ACTION_RESPONSE;
        reply[54..56].copy_from_slice(&steps_removed.to_be_bytes());
        reply[56..64].copy_from_slice(&(offset_ns << 16).to_be_bytes());
        reply[64..72].copy_from_slice(&(delay_ns << 16).to_be_bytes());
        reply
    }

    #[test]
    fn the_current_data_set_tells_how_far_off_the_clock_may_be() {
        let word = read(&reply(1, -120, 800)).unwrap();
        assert_eq!(word, ClockWord::new(true, Delay::from_nanos(920)));
        assert_eq!(read(&reply(0, 0, 0)).unwrap(), ClockWord { synchronised: false, bound: None });
    }

    #[test]
    fn other_bytes_are_no_answer() {
        let whole = reply(1, -120, 800);
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length]), None, "{length}");
        }
        for at in [0, 46, 48, 49, 52, 53] {
            let mut other = whole.clone();
            other[at] ^= 0x05;
            assert_eq!(read(&other), None, "{at}");
        }
        for seed in 0..2000 {
            let mut noise = whole.clone();
            for (at, byte) in noise.iter_mut().enumerate().skip(54) {
                *byte = mix(seed * 1000 + at as u64) as u8;
            }
            let _ = read(&noise);
        }
    }
}
