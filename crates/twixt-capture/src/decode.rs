//! What the decoders of both formats have in common: bytes in, frames and a reason to stop out.
//!
//! Decoders do no I/O. They are given what is buffered, take the whole records from its front and
//! say how much that was.

use crate::CaptureFormat;

/// How far a decoder came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) consumed_bytes: usize,
    pub(crate) stop: Stop,
}

/// Why a decoder came no further.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    /// As many frames as were asked for.
    BatchFull,
    /// The next record is not all there; it has at least this many bytes.
    Incomplete { needed_bytes: usize },
    /// The next record cannot be one.
    Damaged(Damage),
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Damage {
    #[error("{format} version {major}.{minor} is not supported")]
    Version { format: CaptureFormat, major: u16, minor: u16 },
    #[error("a packet of {captured} bytes, at most {limit} are possible")]
    FrameLength { captured: u32, limit: u32 },
    #[error("a packet of {captured} bytes in a block with space for {room}")]
    FrameBeyondBlock { captured: u32, room: usize },
    #[error("a block of {length} bytes, which is not a multiple of 4 from 12 to {limit}")]
    BlockLength { length: u32, limit: u32 },
    #[error("a block of {length} bytes with the length {trailer} at its end")]
    BlockTrailer { length: u32, trailer: u32 },
    #[error("a block of type {kind:#010x} that is too short for its fields")]
    BlockTooShort { kind: u32 },
    #[error("a section without a byte-order mark")]
    ByteOrderMark,
}
