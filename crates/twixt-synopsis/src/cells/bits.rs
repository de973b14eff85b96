//! Numbers in as few bits as they need.
//!
//! Whole numbers of mostly similar size k are written as Golomb codes of exponential order: the
//! low k bits as they are, and the rest in twice as many bits as it has.
//!
//! Teuhola: "A Compression Method for Clustered Bit-Vectors", Information Processing Letters 7,
//! 1978.

/// Writes bits, the first into the lowest bit of the first byte.
#[derive(Debug, Default)]
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that do not fill a word yet, and how many.
    rest: u64,
    rest_bits: u32, // below 64
}

impl BitWriter {
    /// Appends the low `bits` (at most 64) of a number.
    #[inline]
    pub(crate) fn number(&mut self, value: u64, bits: u32) {
        let value = value & low_mask(bits);
        self.rest |= value << self.rest_bits;
        let all_bits = self.rest_bits + bits;
        if all_bits >= u64::BITS {
            self.bytes.extend_from_slice(&self.rest.to_le_bytes());
            self.rest = value.checked_shr(u64::BITS - self.rest_bits).unwrap_or(0);
        }
        self.rest_bits = all_bits % u64::BITS;
    }

    /// Appends a number of about `order` (at most 63) bits: as many zeros as bits follow the first one; that
    /// one; those bits; the low ones.
    #[inline]
    pub(crate) fn golomb(&mut self, value: u64, order: u32) {
        let high = u128::from(value >> order) + 1;
        let more = high.ilog2();
        let bits = 2 * more + 1 + order;
        if bits > u64::BITS {
            return self.long_golomb(value, order);
        }
        let low = (value & low_mask(order)) << more | high as u64 & low_mask(more);
        self.number((low << 1 | 1) << more, bits);
    }

    /// The same, piece by piece.
    #[cold]
    fn long_golomb(&mut self, value: u64, order: u32) {
        let high = u128::from(value >> order) + 1;
        let more = high.ilog2();
        self.number(0, more);
        self.number(1, 1);
        self.number(high as u64, more);
        self.number(value, order);
    }

    /// Bits so far.
    pub(crate) const fn length_bits(&self) -> usize {
        self.bytes.len() * 8 + self.rest_bits as usize
    }

    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        let rest_bytes = self.rest_bits.div_ceil(8) as usize;
        self.bytes.extend_from_slice(&self.rest.to_le_bytes()[..rest_bytes]);
        self.bytes
    }
}

/// Bits that [`BitWriter::golomb`] takes for a number of `length` bits, or one more where that
/// is all ones.
pub(crate) const fn golomb_bits(length: u32, order: u32) -> u32 {
    let more = length.saturating_sub(order);
    2 * more + 1 + order
}

/// Bits of a word that are left when it begins within a byte.
const AHEAD_BITS: u32 = 57;

/// Reads what [`BitWriter`] wrote. Whatever the bytes, it answers or says `None`.
#[derive(Debug)]
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> BitReader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self::at(bytes, 0)
    }

    /// Begins at a bit, which may lie beyond the end.
    pub(crate) const fn at(bytes: &'a [u8], position: usize) -> Self {
        Self { bytes, position }
    }

    /// The bit that comes next.
    pub(crate) const fn position(&self) -> usize {
        self.position
    }

    /// The next `bits` (at most 64).
    #[inline]
    pub(crate) fn number(&mut self, bits: u32) -> Option<u64> {
        if bits > AHEAD_BITS {
            let low = self.number(32)?;
            return Some(low | self.number(bits - 32)? << 32);
        }
        let value = self.ahead() & low_mask(bits);
        self.skip(bits)?;
        Some(value)
    }

    /// What [`BitWriter::golomb`] wrote.
    #[inline]
    pub(crate) fn golomb(&mut self, order: u32) -> Option<u64> {
        let ahead = self.ahead();
        let more = ahead.trailing_zeros();
        let bits = 2 * more + 1 + order;
        if bits > AHEAD_BITS {
            return self.long_golomb(order);
        }
        let high = (1 << more | ahead >> (more + 1) & low_mask(more)) - 1;
        let low = ahead >> (2 * more + 1) & low_mask(order);
        self.skip(bits)?;
        Some(high << order | low)
    }

    /// The same, piece by piece.
    #[cold]
    fn long_golomb(&mut self, order: u32) -> Option<u64> {
        let mut more = 0;
        while self.number(1)? == 0 {
            more += 1;
            if more > 64 {
                return None;
            }
        }
        let high = (1_u128 << more | u128::from(self.number(more)?)) - 1;
        let high = u64::try_from(high).ok().filter(|high| high.leading_zeros() >= order)?;
        Some(high << order | self.number(order)?)
    }

    /// What comes next: [`AHEAD_BITS`] or more, as if zeros followed the end.
    #[inline]
    fn ahead(&self) -> u64 {
        let start = self.position / 8;
        let word = match self.bytes.get(start..).and_then(<[u8]>::first_chunk) {
            Some(&word) => u64::from_le_bytes(word),
            None => self.last_word(start),
        };
        word >> (self.position % 8)
    }

    #[cold]
    fn last_word(&self, start: usize) -> u64 {
        let rest = self.bytes.get(start..).unwrap_or_default();
        let mut word = [0; 8];
        word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(word)
    }

    /// Goes on; `None` beyond the end.
    #[inline]
    fn skip(&mut self, bits: u32) -> Option<()> {
        self.position += bits as usize;
        (self.position <= self.bytes.len() * 8).then_some(())
    }

    /// Whether only what fills up the last byte is left.
    pub(crate) const fn is_finished(&self) -> bool {
        self.position.div_ceil(8) == self.bytes.len()
    }
}

pub(crate) const fn low_mask(bits: u32) -> u64 {
    match bits {
        64.. => u64::MAX,
        bits => (1 << bits) - 1,
    }
}

/// Small numbers of either sign as small numbers: 0, -1, 1, -2, 2, ...
pub(crate) const fn unsigned(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`unsigned`].
pub(crate) const fn signed(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_read_back(
            numbers in prop::collection::vec((any::<u64>(), 0..=64_u32, 0..64_u32), 0..40),
        ) {
            let mut writer = BitWriter::default();
            for &(value, bits, order) in &numbers {
                writer.number(value, bits);
                writer.golomb(value >> (64 - bits).min(63), order);
            }
            let bytes = writer.into_bytes();
            let mut reader = BitReader::new(&bytes);
            for &(value, bits, order) in &numbers {
                prop_assert_eq!(reader.number(bits), Some(value & low_mask(bits)));
                prop_assert_eq!(reader.golomb(order), Some(value >> (64 - bits).min(63)));
            }
            prop_assert!(reader.is_finished());
        }

        #[test]
        fn any_bytes_are_read_without_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..40), orders in prop::collection::vec(0..64_u32, 0..40),
        ) {
            let mut reader = BitReader::new(&bytes);
            for order in orders {
                if reader.golomb(order).is_none() {
                    break;
                }
            }
        }

        #[test]
        fn signs_read_back(value in any::<i64>()) {
            prop_assert_eq!(signed(unsigned(value)), value);
        }
    }

    #[test]
    fn small_numbers_take_few_bits() {
        for (value, order, bits) in [(0, 0, 1), (1, 0, 3), (5, 2, 5), (1000, 9, 12), (0, 9, 10)] {
            let mut writer = BitWriter::default();
            writer.golomb(value, order);
            assert_eq!(writer.bytes.len() as u32 * 8 + writer.rest_bits, bits, "{value} {order}");
        }
    }
}
