//! Cells of difference aggregators, in as few bytes as their sums need: in memory and when written.
//!
//! Algorithms say how wide the sums are that they need ([`Widths`]). [`Cells`] keeps so many bytes for
//! each cell, next to each other and without padding, and [`packing`] writes cells in about as many bits as
//! they distinguish. Estimators see neither: they read [`Wide`] cells, of 64 bits each.
//!
//! Sums of times and of digests wrap around, so that they are exact modulo their width. Counts must
//! not: a cell whose count has used up its bits is moved to a small table beside the cells.

pub(crate) mod bits;
mod escapes;
mod memory;
pub(crate) mod packing;

pub(crate) use self::memory::{Added, Cells, escapes_for};

use self::bits::low_mask;
use crate::sums::Sums;

/// How many bits of its sums a cell keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Widths {
    /// Bits of the sum of times, modulo which it is exact.
    pub(crate) time_bits: u8, // in [8, 64]
    /// The same of the sum of digests.
    pub(crate) digest_bits: u8, // in [0, 64]
    /// Whether the lengths of packets are added up.
    pub(crate) has_bytes: bool,
}

/// What knows how wide cells are: a type without state where that is always the same, so that the
/// compiler knows it too.
pub(crate) trait Shape: Copy + std::fmt::Debug + PartialEq + Send + 'static {
    /// What memory consists of: the bytes of a cell, or single ones where their number is not known.
    type Unit: Copy + std::fmt::Debug + Send;

    fn widths(self) -> Widths;

    /// Memory for so many cells.
    fn memory(self, cells: usize) -> Vec<Self::Unit>;

    /// A cell; more bytes may follow.
    fn cell(self, memory: &[Self::Unit], index: usize) -> &[u8];

    fn cell_mut(self, memory: &mut [Self::Unit], index: usize) -> &mut [u8];
}

/// Makes a type without state a [`Shape`] of cells of so many bytes.
macro_rules! fixed_shape {
    ($shape:ident, $widths:expr) => {
        impl crate::cells::Shape for $shape {
            type Unit = [u8; $widths.cell_bytes()];

            #[inline]
            fn widths(self) -> crate::cells::Widths {
                $widths
            }

            fn memory(self, cells: usize) -> Vec<Self::Unit> {
                vec![[0; $widths.cell_bytes()]; cells]
            }

            #[inline]
            fn cell(self, memory: &[Self::Unit], index: usize) -> &[u8] {
                &memory[index]
            }

            #[inline]
            fn cell_mut(self, memory: &mut [Self::Unit], index: usize) -> &mut [u8] {
                &mut memory[index]
            }
        }
    };
}
pub(crate) use fixed_shape;

/// The most that the words of a cell take if each is eight bytes long.
const WINDOW_BYTES: usize = 3 * size_of::<u64>();

/// Widths that are configured. Words are read and written as eight bytes, those of the next word
/// included, which stay as they are; after the last cell there are bytes to spare for that.
impl Shape for Widths {
    type Unit = u8;

    #[inline]
    fn widths(self) -> Widths {
        self
    }

    fn memory(self, cells: usize) -> Vec<u8> {
        vec![0; cells * self.cell_bytes() + WINDOW_BYTES]
    }

    #[inline]
    fn cell(self, memory: &[u8], index: usize) -> &[u8] {
        let start = index * self.cell_bytes();
        memory[start..].first_chunk::<WINDOW_BYTES>().expect("there are bytes to spare")
    }

    #[inline]
    fn cell_mut(self, memory: &mut [u8], index: usize) -> &mut [u8] {
        let start = index * self.cell_bytes();
        memory[start..].first_chunk_mut::<WINDOW_BYTES>().expect("there are bytes to spare")
    }
}

/// Why nothing is known where counts were lost.
pub(crate) const COUNTS_LOST: &str = "no delay: too many cells counted more packets than a cell \
                                      can; use shorter epochs or more memory";

/// Bits of a count of packets, and of both counts where bytes are counted too. The highest of each says
/// that it has to be moved. A packet has 64 KiB at most, and rarely more than 1500 bytes: 12 bits.
const PACKETS_BITS: u32 = 24;
const PACKETS_BITS_BESIDE_BYTES: u32 = 26;
const BYTES_BITS: u32 = 38;

impl Widths {
    /// Bytes of a cell in memory.
    pub(crate) const fn cell_bytes(self) -> usize {
        self.counts_at() + if self.has_bytes { 8 } else { PACKETS_BITS as usize / 8 }
    }

    const fn digests_at(self) -> usize {
        bytes_of(self.time_bits)
    }

    const fn counts_at(self) -> usize {
        self.digests_at() + bytes_of(self.digest_bits)
    }

    const fn times_mask(self) -> u64 {
        low_mask(self.time_bits as u32)
    }

    const fn digests_mask(self) -> u64 {
        low_mask(self.digest_bits as u32)
    }

    /// Where both counts are in one word: packets above bytes.
    const fn counts_mask(self) -> u64 {
        if self.has_bytes { u64::MAX } else { low_mask(PACKETS_BITS) }
    }

    /// The bits that say that a count has to be moved.
    const fn full_mask(self) -> u64 {
        match self.has_bytes {
            true => 1 << (BYTES_BITS - 1) | 1 << 63,
            false => 1 << (PACKETS_BITS - 1),
        }
    }

    /// Counts as a cell has them; `None` where they do not fit.
    const fn counts_of(self, packets: u64, bytes: u64) -> Option<u64> {
        let packets_bits = if self.has_bytes { PACKETS_BITS_BESIDE_BYTES } else { PACKETS_BITS };
        let fits = packets >> (packets_bits - 1) == 0 && bytes >> (BYTES_BITS - 1) == 0;
        match (fits, self.has_bytes) {
            (false, _) => None,
            (true, true) => Some(packets << BYTES_BITS | bytes),
            (true, false) => Some(packets),
        }
    }

    /// Packets and bytes, of what a cell has.
    const fn split(self, counts: u64) -> (u64, u64) {
        match self.has_bytes {
            true => (counts >> BYTES_BITS, counts & low_mask(BYTES_BITS)),
            false => (counts & low_mask(PACKETS_BITS), 0),
        }
    }

    /// What is left of a cell's sums in these widths.
    pub(crate) const fn trimmed(self, cell: Wide) -> Wide {
        let Sums { times, packets, digests } = cell.sums;
        let (times, digests) = (times & self.times_mask(), digests & self.digests_mask());
        let bytes = if self.has_bytes { cell.bytes } else { 0 };
        Wide { sums: Sums { times, packets, digests }, bytes }
    }
}

/// Bytes of so many bits, 64 at most: the compiler is to know that they are eight at most.
const fn bytes_of(bits: u8) -> usize {
    if bits > 64 { 8 } else { (bits as usize).div_ceil(8) }
}

/// A cell as estimators see it. Sums have as many bits as the algorithm keeps of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wide {
    pub(crate) sums: Sums,
    /// Bytes of the packets, where they are counted.
    pub(crate) bytes: u64,
}

impl Wide {
    #[inline]
    pub(crate) fn add(&mut self, other: &Self) {
        self.sums.add(&other.sums);
        self.bytes = self.bytes.wrapping_add(other.bytes);
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        self.sums.subtract(&other.sums);
        self.bytes = self.bytes.wrapping_sub(other.bytes);
    }
}

impl From<Sums> for Wide {
    #[inline]
    fn from(sums: Sums) -> Self {
        Self { sums, bytes: 0 }
    }
}
