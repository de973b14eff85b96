//! The frames in a block of the ring, as plain bytes.
//!
//! Layout: `tpacket3_hdr`, then `sockaddr_ll`, then room, then `virtio_net_hdr`, then the frame
//! (packet_mmap in the kernel's documentation). The kernel is trusted no further than its bytes
//! reach: every length is compared with what is there.

use std::mem::{offset_of, size_of};

use libc::{sockaddr_ll, tpacket_hdr_variant1, tpacket3_hdr};

/// What the kernel says of a frame, and the frame.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    pub(super) seconds: u32,
    pub(super) nanoseconds: u32,
    pub(super) status: u32,
    /// Its length, of which less may have been captured. A super-packet's is that of all of it.
    pub(super) wire_length: u32,
    /// The VLAN tag that was taken out of it, if one was.
    pub(super) tag: Option<[u8; TAG_BYTES]>,
    pub(super) packet_type: u8,
    pub(super) offload: Offload,
    /// Room of our own, then the captured bytes, which begin at `start`.
    pub(super) bytes: &'a mut [u8],
    pub(super) start: usize,
}

/// A VLAN tag: its Ethernet type, and the priority and number.
pub(super) const TAG_BYTES: usize = 4;

/// What the virtio-net header says of a frame (virtio 1.3, section 5.1.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offload {
    /// [`Self::NONE`] for frames as they are on the wire.
    pub(super) kind: u8,
    /// Payload of each packet that becomes of it, but the last.
    pub(super) piece_bytes: u16,
}

/// A block whose lengths contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

const ADDRESS_AT: usize = size_of::<tpacket3_hdr>();
const HEADER_BYTES: usize = ADDRESS_AT + size_of::<sockaddr_ll>();
const OFFLOAD_BYTES: usize = 10;
const VARIANT_AT: usize = offset_of!(tpacket3_hdr, hv1);
const PACKET_TYPE_AT: usize = ADDRESS_AT + offset_of!(sockaddr_ll, sll_pkttype);
/// The type of tags when the kernel does not say: 802.1Q.
const TAG_TYPE_DEFAULT: u16 = 0x8100;

/// Hands the frames of a block to `each`: `frames` of them, the first at `first`.
#[inline]
pub(super) fn for_each_slot(
    mut bytes: &mut [u8],
    first: Option<usize>,
    frames: u32,
    mut each: impl FnMut(Slot<'_>),
) -> Result<(), Malformed> {
    if frames == 0 {
        return Ok(());
    }
    bytes = first.and_then(|first| bytes.get_mut(first..)).ok_or(Malformed)?;
    for left in (0..frames).rev() {
        let header: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(Malformed)?;
        let step = u32_at(header, offset_of!(tpacket3_hdr, tp_next_offset)) as usize;
        if left == 0 {
            each(slot(bytes)?);
            break;
        }
        let (this, rest) = bytes.split_at_mut_checked(step).ok_or(Malformed)?;
        each(slot(this)?);
        bytes = rest;
    }
    Ok(())
}

#[inline]
fn slot(bytes: &mut [u8]) -> Result<Slot<'_>, Malformed> {
    let header: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(Malformed)?;
    let start = usize::from(u16_at(header, offset_of!(tpacket3_hdr, tp_mac)));
    let captured = u32_at(header, offset_of!(tpacket3_hdr, tp_snaplen)) as usize;
    let wire_length = u32_at(header, offset_of!(tpacket3_hdr, tp_len));
    let status = u32_at(header, offset_of!(tpacket3_hdr, tp_status));
    let (seconds, nanoseconds) = (
        u32_at(header, offset_of!(tpacket3_hdr, tp_sec)),
        u32_at(header, offset_of!(tpacket3_hdr, tp_nsec)),
    );
    let (tag, packet_type) = (tag(header, status), header[PACKET_TYPE_AT]);
    let end = start.checked_add(captured).ok_or(Malformed)?;
    let offload_at = start.checked_sub(OFFLOAD_BYTES).ok_or(Malformed)?;
    if offload_at < HEADER_BYTES {
        return Err(Malformed);
    }
    let offload = bytes.get(offload_at..start).and_then(Offload::new).ok_or(Malformed)?;
    let bytes = bytes.get_mut(HEADER_BYTES..end).ok_or(Malformed)?;
    let start = start - HEADER_BYTES;
    Ok(Slot { seconds, nanoseconds, status, wire_length, tag, packet_type, offload, bytes, start })
}

#[inline]
fn tag(header: &[u8; HEADER_BYTES], status: u32) -> Option<[u8; TAG_BYTES]> {
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let control = u32_at(header, VARIANT_AT + offset_of!(tpacket_hdr_variant1, tp_vlan_tci));
    let kind = match status & libc::TP_STATUS_VLAN_TPID_VALID {
        0 => TAG_TYPE_DEFAULT,
        _ => u16_at(header, VARIANT_AT + offset_of!(tpacket_hdr_variant1, tp_vlan_tpid)),
    };
    let [kind, control] = [kind, control as u16].map(u16::to_be_bytes); // the tag has 16 bits
    Some([kind[0], kind[1], control[0], control[1]])
}

impl<'a> Slot<'a> {
    /// The frame and its length, with the tag put back where the addresses end: they move to the
    /// front by its length, into room that is ours.
    #[inline]
    pub(super) fn with_tag(self, has_ethernet: bool) -> (&'a [u8], u32) {
        const ADDRESSES_BYTES: usize = 12;
        let Slot { bytes, start, wire_length, tag, .. } = self;
        let front = start.checked_sub(TAG_BYTES).filter(|_| has_ethernet);
        let (Some(tag), Some(front)) = (tag, front) else { return (&bytes[start..], wire_length) };
        if bytes.len() < start + ADDRESSES_BYTES {
            return (&bytes[start..], wire_length);
        }
        bytes.copy_within(start..start + ADDRESSES_BYTES, front);
        bytes[front + ADDRESSES_BYTES..][..TAG_BYTES].copy_from_slice(&tag);
        (&bytes[front..], wire_length.saturating_add(TAG_BYTES as u32))
    }
}

impl Offload {
    /// The kind of frames as they are on the wire.
    pub(super) const NONE: u8 = 0;

    const GSO_TYPE_AT: usize = 1;
    const GSO_SIZE_AT: usize = 4;

    #[inline]
    fn new(header: &[u8]) -> Option<Self> {
        let header: &[u8; OFFLOAD_BYTES] = header.try_into().ok()?;
        let piece_bytes = u16_at(header, Self::GSO_SIZE_AT);
        Some(Self { kind: header[Self::GSO_TYPE_AT], piece_bytes })
    }
}

#[inline]
fn u32_at<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline]
fn u16_at<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests;
