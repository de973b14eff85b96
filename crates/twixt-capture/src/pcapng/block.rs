//! One pcapng block: its frame of type and lengths, and the fixed fields of packets.

use crate::decode::{Damage, Stop};
use crate::{ByteOrder, CaptureFormat};

/// Bytes of a block at most, options included. A file with a larger one counts as damaged there.
pub const MAX_BLOCK_BYTES: u32 = 16 << 20;

/// Where the packet of a packet block begins, enhanced or obsolete: behind type, length and the
/// fixed fields.
pub(super) const PACKET_AT: usize = 28;
/// Type and the two copies of the length.
const OVERHEAD_BYTES: u32 = 12;
const TRAILER_BYTES: usize = 4;
const BYTE_ORDER_MARK: u32 = 0x1a2b_3c4d;
const MAJOR_VERSION: u16 = 1;

/// What blocks are called in files.
pub(super) mod kind {
    pub(crate) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
    pub(crate) const INTERFACE_DESCRIPTION: u32 = 1;
    pub(crate) const OBSOLETE_PACKET: u32 = 2;
    pub(crate) const SIMPLE_PACKET: u32 = 3;
    pub(crate) const INTERFACE_STATISTICS: u32 = 5;
    pub(crate) const ENHANCED_PACKET: u32 = 6;
}

/// A whole block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    pub(super) kind: u32,
    pub(super) order: ByteOrder,
    /// Of all of it, in bytes.
    pub(super) length: usize,
    /// What is between the two lengths.
    body: &'a [u8],
}

/// The fixed fields of a packet block, and what follows them: packet, padding, options.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketFields<'a> {
    pub(super) interface: u32,
    pub(super) units: u64,
    pub(super) captured: u32,
    pub(super) wire_length: u32,
    pub(super) dropped_before: Option<u64>,
    pub(super) rest: &'a [u8],
}

impl<'a> Block<'a> {
    /// The block at the front of `bytes`. `order` is that of the section; a section header brings
    /// its own.
    #[inline]
    pub(super) fn first_of(bytes: &'a [u8], order: Option<ByteOrder>) -> Result<Self, Stop> {
        let needed_bytes = OVERHEAD_BYTES as usize;
        let Some(head) = bytes.first_chunk::<12>() else {
            return Err(Stop::Incomplete { needed_bytes });
        };
        // Its type reads the same in both byte orders, so that a new one can be seen coming.
        let is_section = ByteOrder::Little.u32_at(head, 0) == kind::SECTION_HEADER;
        let order = if is_section { marked_order(head) } else { order };
        let order = order.ok_or(Stop::Damaged(Damage::ByteOrderMark))?;
        let length = order.u32_at(head, 4);
        if !(OVERHEAD_BYTES..=MAX_BLOCK_BYTES).contains(&length) || !length.is_multiple_of(4) {
            let damage = Damage::BlockLength { length, limit: MAX_BLOCK_BYTES };
            return Err(Stop::Damaged(damage));
        }
        let needed_bytes = length as usize;
        let Some(whole) = bytes.get(..needed_bytes) else {
            return Err(Stop::Incomplete { needed_bytes });
        };
        let (start, trailer) =
            whole.split_last_chunk::<TRAILER_BYTES>().expect("a block has at least 12 bytes");
        let trailer = order.u32_at(trailer, 0);
        if trailer != length {
            return Err(Stop::Damaged(Damage::BlockTrailer { length, trailer }));
        }
        Ok(Self { kind: order.u32_at(head, 0), order, length: needed_bytes, body: &start[8..] })
    }

    /// The first `N` bytes of the body, and the rest of it.
    #[inline]
    pub(super) fn fields<const N: usize>(&self) -> Result<(&'a [u8; N], &'a [u8]), Damage> {
        self.body.split_first_chunk().ok_or(Damage::BlockTooShort { kind: self.kind })
    }

    /// Of a packet block, enhanced or obsolete. They differ in the first two words only.
    #[inline]
    pub(super) fn packet_fields(&self) -> Result<PacketFields<'a>, Damage> {
        let (fields, rest) = self.fields::<20>()?;
        let order = self.order;
        let (interface, dropped_before) = if self.kind == kind::ENHANCED_PACKET {
            (order.u32_at(fields, 0), None)
        } else {
            let dropped = order.u16_at(fields, 2);
            let dropped = (dropped != u16::MAX).then_some(u64::from(dropped));
            (u32::from(order.u16_at(fields, 0)), dropped)
        };
        let units = u64::from(order.u32_at(fields, 4)) << 32 | u64::from(order.u32_at(fields, 8));
        let (captured, wire_length) = (order.u32_at(fields, 12), order.u32_at(fields, 16));
        Ok(PacketFields { interface, units, captured, wire_length, dropped_before, rest })
    }

    /// Whether a section header says a version that we can read. Minor versions only add.
    pub(super) fn check_version(&self) -> Result<(), Damage> {
        let (fields, _) = self.fields::<16>()?;
        let (major, minor) = (self.order.u16_at(fields, 4), self.order.u16_at(fields, 6));
        if major == MAJOR_VERSION {
            return Ok(());
        }
        Err(Damage::Version { format: CaptureFormat::Pcapng, major, minor })
    }
}

/// The byte order in which a section header's mark makes sense.
fn marked_order(head: &[u8; 12]) -> Option<ByteOrder> {
    [ByteOrder::Little, ByteOrder::Big]
        .into_iter()
        .find(|order| order.u32_at(head, 8) == BYTE_ORDER_MARK)
}
