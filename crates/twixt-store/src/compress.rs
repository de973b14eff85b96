//! Payloads, packed with zstd where that makes them much smaller.

use std::cell::RefCell;
use std::io::{self, Read};

use zstd::bulk::Compressor;
use zstd::stream::read::Decoder;
use zstd::zstd_safe::{DCtx, ResetDirective};

use crate::format::Packing;

/// Level of zstd unless one is asked for: most of the gain at a fraction of the cost.
pub const LEVEL_DEFAULT: i32 = 3;
/// Packing must save at least this part. What has been packed by those who know what it is would
/// gain little, and could not be read in part any more.
const GAIN_MIN: usize = 16;

/// Appends a payload as it is stored.
pub(crate) fn pack(payload: &[u8], level: i32, out: &mut Vec<u8>) -> io::Result<Packing> {
    let packed = compress(payload, level)?;
    if packed.len() < payload.len() - payload.len() / GAIN_MIN {
        out.extend_from_slice(&packed);
        return Ok(Packing::Zstd);
    }
    out.extend_from_slice(payload);
    Ok(Packing::None)
}

// Both have large tables, which to make takes longer than to pack or unpack what an epoch has.
thread_local! {
    static UNPACKING: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
    /// The one used last, by level.
    static COMPRESSOR: RefCell<Option<(i32, Compressor<'static>)>> = const { RefCell::new(None) };
}

fn compress(payload: &[u8], level: i32) -> io::Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|kept| {
        if kept.as_ref().is_none_or(|(of, _)| *of != level) {
            *kept = Some((level, Compressor::new(level)?));
        }
        let (_, compressor) = kept.as_mut().expect("it is there, or was made just now");
        compressor.compress(payload)
    })
}

/// The payload as it was; `None` if it is not `raw_bytes` long.
pub(crate) fn unpack(stored: Vec<u8>, packing: Packing, raw_bytes: u32) -> Option<Vec<u8>> {
    let mut payload = stored;
    if packing == Packing::Zstd {
        let stored = std::mem::take(&mut payload);
        unpack_zstd(&stored, raw_bytes, &mut payload)?;
    }
    (payload.len() == raw_bytes as usize).then_some(payload)
}

/// Fills `payload` with what it was; `None` if it cannot be unpacked. Allocates what is unpacked,
/// not what is promised.
pub(crate) fn unpack_zstd(stored: &[u8], raw_bytes: u32, payload: &mut Vec<u8>) -> Option<()> {
    payload.clear();
    payload.reserve((raw_bytes as usize).min(stored.len().saturating_mul(4)));
    UNPACKING.with_borrow_mut(|context| {
        context.reset(ResetDirective::SessionOnly).ok()?;
        let decoder = Decoder::with_context(stored, context);
        decoder.take(u64::from(raw_bytes) + 1).read_to_end(payload).ok()?;
        Some(())
    })
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
    fn what_gains_next_to_nothing_is_left_as_it_is() {
        let noise = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        let mut payload: Vec<u8> = (0..4000).flat_map(|n| noise(noise(n)).to_le_bytes()).collect();
        payload.extend([0; 1500]);
        check(&payload, Packing::None);
        payload.extend([0; 1500]);
        check(&payload, Packing::Zstd);
    }

    /// One context serves all: what went wrong before must not matter.
    #[test]
    fn after_damage_others_are_unpacked() {
        let mut stored = Vec::new();
        pack(&[7; 100_000], LEVEL_DEFAULT, &mut stored).unwrap();
        assert_eq!(unpack(stored[..stored.len() / 2].to_vec(), Packing::Zstd, 100_000), None);
        assert_eq!(unpack(vec![1; 50], Packing::Zstd, 100_000), None);
        assert_eq!(unpack(stored, Packing::Zstd, 100_000), Some(vec![7; 100_000]));
    }

    #[test]
    fn a_bomb_stops_at_the_promised_length() {
        let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 3).unwrap();
        assert_eq!(unpack(bomb, Packing::Zstd, 1000), None);
    }
}
