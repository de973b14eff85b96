//! Payloads, packed with zstd where that makes them smaller.

use std::io::{self, Read};

use crate::format::Packing;

/// Level of zstd unless one is asked for: most of the gain at a fraction of the cost.
pub const LEVEL_DEFAULT: i32 = 3;

/// Appends a payload as it is stored.
pub(crate) fn pack(payload: &[u8], level: i32, out: &mut Vec<u8>) -> io::Result<Packing> {
    let packed = zstd::bulk::compress(payload, level)?;
    if packed.len() < payload.len() {
        out.extend_from_slice(&packed);
        return Ok(Packing::Zstd);
    }
    out.extend_from_slice(payload);
    Ok(Packing::None)
}

/// The payload as it was; `None` if it is not `raw_bytes` long. Allocates what is unpacked, not
/// what is promised.
pub(crate) fn unpack(stored: Vec<u8>, packing: Packing, raw_bytes: u32) -> Option<Vec<u8>> {
    let raw_bytes = raw_bytes as usize;
    let payload = match packing {
        Packing::None => stored,
        Packing::Zstd => {
            let mut payload = Vec::with_capacity(raw_bytes.min(stored.len().saturating_mul(4)));
            let decoder = zstd::stream::read::Decoder::with_buffer(stored.as_slice()).ok()?;
            decoder.take(raw_bytes as u64 + 1).read_to_end(&mut payload).ok()?;
            payload
        }
    };
    (payload.len() == raw_bytes).then_some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(payload: &[u8], expected: Packing) {
        let mut stored = Vec::new();
        assert_eq!(pack(payload, LEVEL_DEFAULT, &mut stored).unwrap(), expected);
        assert!(stored.len() <= payload.len());
        let length = payload.len() as u32;
        assert_eq!(unpack(stored.clone(), expected, length).as_deref(), Some(payload));
        assert_eq!(unpack(stored.clone(), expected, length + 1), None);
        if length > 0 {
            assert_eq!(unpack(stored, expected, length - 1), None);
        }
    }

    #[test]
    fn payloads_are_packed_where_that_helps() {
        check(b"", Packing::None);
        check(b"short", Packing::None);
        check(&[7; 100_000], Packing::Zstd);
    }

    #[test]
    fn a_bomb_stops_at_the_promised_length() {
        let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 3).unwrap();
        assert_eq!(unpack(bomb, Packing::Zstd, 1000), None);
    }
}
