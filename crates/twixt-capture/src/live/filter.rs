//! Programs that the kernel runs over every frame before it copies it (classic BPF).

use std::num::NonZeroU32;

use libc::sock_filter;

use crate::FrameDirection;

const EVERYTHING: u32 = u32::MAX;

/// Lets nothing through.
pub(super) fn closed() -> Vec<sock_filter> {
    vec![keep(0)]
}

/// Lets one direction through, and copies as much of a frame as is wanted.
///
/// Frames longer than `frame_bytes_max`, which no wire carries, are kept whole: they are
/// super-packets, and every packet that becomes of them has bytes of its own in there.
pub(super) fn open(
    direction: Option<FrameDirection>,
    snap_length: Option<NonZeroU32>,
    frame_bytes_max: u32,
) -> Vec<sock_filter> {
    let mut program = Vec::new();
    if let Some(direction) = direction {
        let outgoing = u32::from(libc::PACKET_OUTGOING);
        program.push(load(libc::BPF_B | libc::BPF_ABS, ANCILLARY_PACKET_TYPE));
        // Steps over the refusal, or onto it.
        program.push(match direction {
            FrameDirection::Outbound => jump(libc::BPF_JEQ, outgoing, 1, 0),
            FrameDirection::Inbound => jump(libc::BPF_JEQ, outgoing, 0, 1),
        });
        program.push(keep(0));
    }
    if let Some(snap_length) = snap_length {
        program.push(load(libc::BPF_W | libc::BPF_LEN, 0));
        program.push(jump(libc::BPF_JGT, frame_bytes_max, 1, 0));
        program.push(keep(snap_length.get()));
    }
    program.push(keep(EVERYTHING));
    program
}

/// Where the kernel keeps a frame's packet type for filters.
const ANCILLARY_PACKET_TYPE: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE).cast_unsigned();

fn load(what: u32, at: u32) -> sock_filter {
    statement(libc::BPF_LD | what, 0, 0, at)
}

fn jump(comparison: u32, with: u32, steps_if_true: u8, steps_if_false: u8) -> sock_filter {
    statement(libc::BPF_JMP | comparison | libc::BPF_K, steps_if_true, steps_if_false, with)
}

fn keep(bytes: u32) -> sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, 0, 0, bytes)
}

fn statement(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k } // codes are below 2^8
}
