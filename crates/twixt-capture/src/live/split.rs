//! Super-packets, back into the packets that the wire carries.
//!
//! To save work, a sending kernel hands the adapter up to 64 KiB and more as if it were one packet
//! (segmentation offload), and a receiving one joins packets that follow each other (receive
//! offload). The other point sees the packets of the wire, so a super-packet is split here as
//! adapter or kernel would have done it (or undone as they were joined):
//!
//! - payload in equal parts, the last one shorter;
//! - TCP: sequence numbers go on with the payload; FIN and PSH on the last packet only, CWR on the
//!   first only (RFC 3168, section 6.1.2);
//! - IPv4: lengths and header checksums, and identification going up by one, except where all
//!   packets seem to have 0 ([`CountingFlows`]);
//! - UDP: a length of its own for each.
//!
//! Checksums of TCP and UDP stay those of the super-packet, which is often none. All packets have
//! the time of the super-packet: the kernel knows no other.
//!
//! Nothing is copied but headers: those of a packet are written in front of its payload, over the
//! end of the packet before it, which was handed on already.

mod counting;
mod headers;

pub(super) use counting::CountingFlows;

use super::block::{Offload, TAG_BYTES};
use headers::{HEADERS_BYTES_MAX, Headers, Transport};

/// Packets of one super-packet at most. The kernel makes no more than 65536.
pub(super) const PIECES_MAX: u32 = 1 << 16;

/// A packet as the wire carries it, or as much as was captured of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) wire_length: u32,
}

/// A super-packet in a buffer with room before it.
#[derive(Debug)]
pub(super) struct SuperPacket<'a> {
    pub(super) bytes: &'a mut [u8],
    /// Where it begins.
    pub(super) start: usize,
    /// The length of all of it, captured or not.
    pub(super) wire_length: u32,
    pub(super) has_ethernet: bool,
    /// A VLAN tag that shall be in every packet.
    pub(super) tag: Option<[u8; TAG_BYTES]>,
    pub(super) offload: Offload,
}

/// Why a super-packet stays whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unsplittable;

impl SuperPacket<'_> {
    /// Hands the packets to `each`, in order. Returns how many there were. When it cannot be
    /// split, nothing was handed over or changed.
    pub(super) fn split(
        self,
        counting: &mut CountingFlows,
        mut each: impl FnMut(Piece<'_>),
    ) -> Result<u32, Unsplittable> {
        let transport = Transport::of(self.offload.kind).ok_or(Unsplittable)?;
        let frame = self.bytes.get(self.start..).ok_or(Unsplittable)?;
        let mut headers = Headers::read(frame, self.has_ethernet, self.tag, transport, counting)
            .ok_or(Unsplittable)?;
        let payload_at = self.start + headers.read_bytes();
        let room_bytes = payload_at.checked_sub(headers.bytes().len());
        let payload_bytes =
            self.wire_length.checked_sub(headers.read_bytes() as u32).ok_or(Unsplittable)?;
        let piece_bytes = u32::from(self.offload.piece_bytes);
        if room_bytes.is_none() || piece_bytes == 0 {
            return Err(Unsplittable);
        }
        let pieces = payload_bytes.div_ceil(piece_bytes);
        if pieces == 0 || pieces > PIECES_MAX || !headers.can_say(piece_bytes) {
            return Err(Unsplittable);
        }
        for number in 0..pieces {
            let offset = number * piece_bytes; // at most payload_bytes
            let length = piece_bytes.min(payload_bytes - offset);
            headers.set(number, offset, length, number + 1 == pieces);
            let wire_length = headers.bytes().len() as u32 + length;
            let begin = payload_at + offset as usize;
            let bytes = place(self.bytes, headers.bytes(), begin, length as usize);
            each(Piece { bytes: bytes.unwrap_or(headers.bytes()), wire_length });
        }
        Ok(pieces)
    }
}

/// Writes headers in front of the payload at `begin`. `None` if nothing was captured of that.
fn place<'a>(bytes: &'a mut [u8], headers: &[u8], begin: usize, length: usize) -> Option<&'a [u8]> {
    let captured = bytes.len();
    let at = begin.checked_sub(headers.len())?;
    bytes.get_mut(at..begin)?.copy_from_slice(headers);
    bytes.get(at..captured.min(begin + length))
}

const _: () = assert!(HEADERS_BYTES_MAX < u16::MAX as usize, "lengths of headers fit any field");

#[cfg(test)]
mod tests;
