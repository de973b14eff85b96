//! The memory that the kernel writes frames to, and whose turn it is.
//!
//! A ring is a row of blocks (`TPACKET_V3`, packet_mmap in the kernel's documentation). A block
//! belongs to the kernel or to us; its status word says to whom, and changes hands only there.
//! What is in a block is [`super::block`]'s business, which sees plain bytes.

#![allow(unsafe_code, reason = "memory shared with the kernel")]

use std::io;
use std::mem::{offset_of, size_of};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use super::options::RingSize;
use super::sys::PacketSocket;

/// Bytes at the front of a block that describe it.
pub(super) const DESCRIPTION_BYTES: usize = size_of::<libc::tpacket_block_desc>();

const STATUS_AT: usize = offset_of!(libc::tpacket_block_desc, hdr);
const FRAMES_AT: usize = STATUS_AT + offset_of!(libc::tpacket_hdr_v1, num_pkts);
const FIRST_AT: usize = STATUS_AT + offset_of!(libc::tpacket_hdr_v1, offset_to_first_pkt);

/// The ring of one socket.
#[derive(Debug)]
pub(super) struct Ring {
    memory: NonNull<u8>,
    size: RingSize,
    /// The block that is ours next; below the number of blocks.
    next: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and only this value refers to it.
unsafe impl Send for Ring {}

impl Ring {
    /// Makes and maps the ring of a socket.
    pub(super) fn map(socket: &PacketSocket, size: RingSize) -> io::Result<Self> {
        socket.make_ring(&libc::tpacket_req3 {
            tp_block_size: size.block_bytes(),
            tp_block_nr: size.blocks(),
            // Frames of this version have the length they have; the kernel checks, and ignores.
            tp_frame_size: size.block_bytes(),
            tp_frame_nr: size.blocks(),
            tp_retire_blk_tov: u32::try_from(size.longest_wait().as_millis()).unwrap_or(u32::MAX),
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        })?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let memory = unsafe {
            libc::mmap(null_mut(), size.bytes(), access, libc::MAP_SHARED, socket.raw(), 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or_else(|| io::Error::other("mapped to 0"))?;
        Ok(Self { memory, size, next: 0 })
    }

    /// The next block, if the kernel has handed it over.
    pub(super) fn take(&mut self) -> Option<Block<'_>> {
        let is_ours = self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0;
        // Not made and thrown away: a block that is dropped goes back to the kernel.
        is_ours.then(|| Block { ring: self })
    }

    /// Where the next block begins.
    fn block(&self) -> NonNull<u8> {
        let at = self.next * self.size.block_bytes() as usize;
        // SAFETY: `next` is below the number of blocks, so the block lies in the mapping.
        unsafe { self.memory.add(at) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: within the block's description, which no slice covers.
        let at = unsafe { self.block().add(STATUS_AT) };
        // SAFETY: aligned, since blocks are pages and the offset is a multiple of four; lives as
        // long as the mapping; and both sides access it atomically only.
        unsafe { AtomicU32::from_ptr(at.cast().as_ptr()) }
    }

    fn word(&self, at: usize) -> u32 {
        // SAFETY: callers pass offsets within the block's description.
        let word = unsafe { self.block().add(at) };
        // SAFETY: in the mapping and aligned, as above.
        unsafe { word.cast::<u32>().read_volatile() }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this mapping, as long as it was made; nothing borrows from it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.size.bytes()) };
    }
}

/// A block that is ours. Goes back to the kernel when dropped.
#[derive(Debug)]
pub(super) struct Block<'a> {
    ring: &'a mut Ring,
}

impl Block<'_> {
    /// The number of frames that it announces.
    pub(super) fn frames(&self) -> u32 {
        self.ring.word(FRAMES_AT)
    }

    /// The announced offset of the first frame, from the start of [`Self::bytes`]. `None` if that
    /// is in the block's description.
    pub(super) fn first(&self) -> Option<usize> {
        (self.ring.word(FIRST_AT) as usize).checked_sub(DESCRIPTION_BYTES)
    }

    /// All that follows the block's description.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        let length = self.ring.size.block_bytes() as usize - DESCRIPTION_BYTES;
        // SAFETY: blocks are longer than their description.
        let start = unsafe { self.ring.block().add(DESCRIPTION_BYTES) };
        // SAFETY: in the mapping; initialised, since the kernel zeroes pages that it maps; nobody
        // else writes while the block is ours; and the borrow of `self` keeps it from being given
        // back or borrowed twice.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), length) }
    }
}

impl Drop for Block<'_> {
    fn drop(&mut self) {
        self.ring.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.ring.next = (self.ring.next + 1) % self.ring.size.blocks() as usize;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring without a kernel.
    fn ring() -> Ring {
        let size = RingSize::of_bytes(0);
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let memory = unsafe { libc::mmap(null_mut(), size.bytes(), access, kind, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        Ring { memory: NonNull::new(memory.cast()).unwrap(), size, next: 0 }
    }

    #[test]
    fn blocks_are_taken_one_after_another_and_never_early() {
        let mut ring = ring();
        for turn in 0..3 * ring.size.blocks() as usize {
            let next = turn % ring.size.blocks() as usize;
            assert!(ring.take().is_none() && ring.take().is_none(), "it is not ours");
            assert_eq!(ring.next, next, "whoever looks in vain stays");
            ring.status().store(libc::TP_STATUS_USER, Ordering::Release);
            assert!(ring.take().is_some());
        }
    }
}
