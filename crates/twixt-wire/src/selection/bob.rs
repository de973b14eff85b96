//! BOB: the hash that Bob Jenkins published in 1996, with 32-bit words.
//!
//! On machines with 64 bits, programs that took a wider word for its `unsigned long` gave other
//! values for years. The arithmetic here is modulo 2^32 by type.

/// The golden ratio: an arbitrary value without pattern.
const GOLDEN_RATIO: u32 = 0x9e37_79b9;
/// Bytes that are mixed in at once.
const BLOCK_BYTES: usize = 12;

/// The BOB hash of `bytes` (RFC 5475, appendix A.2).
#[must_use]
pub fn bob(bytes: &[u8], initialiser: u32) -> u32 {
    let mut state = [GOLDEN_RATIO, GOLDEN_RATIO, initialiser];
    let mut blocks = bytes.chunks_exact(BLOCK_BYTES);
    for block in &mut blocks {
        add(&mut state, block, 0);
        mix(&mut state);
    }
    // The length takes the lowest byte of the third word; what is left makes room for it.
    state[2] = state[2].wrapping_add(bytes.len() as u32);
    add(&mut state, blocks.remainder(), 1);
    mix(&mut state);
    state[2]
}

/// Adds up to a block of bytes, as little-endian words; those of the third word move up by
/// `shift_bytes`.
fn add(state: &mut [u32; 3], block: &[u8], shift_bytes: usize) {
    for (index, &byte) in block.iter().enumerate() {
        let (word, place) = match index {
            8.. => (2, index - 8 + shift_bytes),
            _ => (index / 4, index % 4),
        };
        state[word] = state[word].wrapping_add(u32::from(byte) << (8 * place));
    }
}

fn mix([a, b, c]: &mut [u32; 3]) {
    // Right, left, right: 13 8 13, 12 16 5, 3 10 15.
    for (first, second, third) in [(13, 8, 13), (12, 16, 5), (3, 10, 15)] {
        *a = a.wrapping_sub(*b).wrapping_sub(*c) ^ (*c >> first);
        *b = b.wrapping_sub(*c).wrapping_sub(*a) ^ (*a << second);
        *c = c.wrapping_sub(*a).wrapping_sub(*b) ^ (*b >> third);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of an independent implementation; `tests/it/selection.rs` has all of them.
    #[test]
    fn values_are_those_of_32_bits() {
        assert_eq!(bob(&[], 0), 0xbd49_d10d);
        assert_eq!(bob(&[], 0xdead_beef), 0x1153_f4be);
        assert_eq!(bob(b"Four score and seven years ago", 0), 0x50f2_424b);
    }
}
