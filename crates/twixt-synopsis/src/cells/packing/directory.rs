//! Where blocks of bits begin that have about the same length.

use super::super::bits::{BitReader, BitWriter};
use crate::codec::{DecodeError, Reader, Writer};

/// Of every block, the bit that it begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    starts: Vec<usize>,
}

impl Directory {
    /// The first is 0, and none is before the last.
    pub(super) const fn new(starts: Vec<usize>) -> Self {
        Self { starts }
    }

    /// Where a block begins.
    pub(super) fn start(&self, block: usize) -> usize {
        self.starts[block]
    }

    /// Appends the lengths of all blocks but the last: that of the shortest, and what the others
    /// exceed it by.
    pub(super) fn encode(&self, out: &mut Writer) {
        let lengths = self.starts.windows(2).map(|pair| (pair[1] - pair[0]) as u32);
        let shortest = lengths.clone().min().unwrap_or(0);
        let longest = lengths.clone().max().unwrap_or(0);
        let excess_bits = u32::BITS - (longest - shortest).leading_zeros();
        out.u32(shortest);
        out.u8(excess_bits as u8);
        let mut bits = BitWriter::default();
        lengths.for_each(|length| bits.number(u64::from(length - shortest), excess_bits));
        out.block(&bits.into_bytes());
    }

    /// Reads that of so many blocks.
    pub(super) fn decode(blocks: usize, input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let wrong = || DecodeError::invalid("lengths of blocks", "are not as many as announced");
        let shortest = input.u32("shortest block")?;
        let excess_bits = u32::from(input.u8("bits of lengths")?);
        let block = input.block("lengths of blocks")?;
        let lengths = blocks.saturating_sub(1);
        let expected = lengths.saturating_mul(excess_bits as usize).div_ceil(8);
        if excess_bits > u32::BITS || block.len() != expected {
            return Err(wrong());
        }
        let mut bits = BitReader::new(block);
        let mut starts = Vec::with_capacity(blocks);
        let mut start = 0;
        for _ in 0..lengths {
            starts.push(start);
            let excess = bits.number(excess_bits).ok_or_else(wrong)?;
            start += (u64::from(shortest) + excess) as usize;
        }
        starts.push(start);
        Ok(Self { starts })
    }
}
