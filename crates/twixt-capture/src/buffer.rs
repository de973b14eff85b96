//! A block of bytes that is refilled from a reader. Knows nothing of records.

use std::io::{self, ErrorKind, Read};

/// Bytes asked for at once: enough to make the price of a system call vanish, and little enough
/// to stay in a second-level cache.
const BLOCK_BYTES: usize = 256 << 10;

/// Reads large blocks and keeps the unconsumed tail at the front.
///
/// Grows only when full of bytes that really arrived, so that a length in a header alone never
/// makes it allocate. Never shrinks: at worst it is twice as long as the longest record.
pub(crate) struct BlockBuffer<R> {
    input: R,
    bytes: Vec<u8>,
    start: usize, // start <= end <= bytes.len()
    end: usize,
    /// Bytes consumed since the beginning.
    offset: u64,
}

impl<R: Read> BlockBuffer<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, bytes: vec![0; BLOCK_BYTES], start: 0, end: 0, offset: 0 }
    }

    /// What was read and not consumed.
    #[inline]
    pub(crate) fn unconsumed(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// How many bytes were consumed since the beginning.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn input(&self) -> &R {
        &self.input
    }

    /// Forgets the first `count` unconsumed bytes.
    pub(crate) fn consume(&mut self, count: usize) {
        assert!(count <= self.end - self.start, "cannot consume what was not read");
        self.start += count;
        self.offset += count as u64;
    }

    /// Reads once. Returns how many bytes came; 0 at the end of the input.
    pub(crate) fn refill(&mut self) -> io::Result<usize> {
        self.make_room();
        loop {
            match self.input.read(&mut self.bytes[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads until `count` bytes are unconsumed or the input ends.
    pub(crate) fn fill_to(&mut self, count: usize) -> io::Result<()> {
        while self.unconsumed().len() < count && self.refill()? > 0 {}
        Ok(())
    }

    fn make_room(&mut self) {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.bytes.len() {
            self.bytes.resize(self.end * 2, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_survives_a_refill_and_the_buffer_grows_with_what_arrives() {
        let input: Vec<u8> = (0..BLOCK_BYTES * 3).map(|at| at as u8).collect();
        let mut buffer = BlockBuffer::new(&input[..]);
        buffer.fill_to(2).unwrap();
        assert_eq!(buffer.unconsumed(), &input[..BLOCK_BYTES]);
        buffer.consume(BLOCK_BYTES - 3);
        buffer.refill().unwrap();
        assert_eq!(buffer.unconsumed(), &input[BLOCK_BYTES - 3..BLOCK_BYTES * 2 - 3]);
        assert_eq!(buffer.bytes.len(), BLOCK_BYTES);
        buffer.fill_to(usize::MAX).unwrap();
        assert_eq!(buffer.unconsumed(), &input[BLOCK_BYTES - 3..]);
        assert_eq!(buffer.offset(), BLOCK_BYTES as u64 - 3);
    }
}
