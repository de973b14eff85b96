//! Cells in memory, one after the other without padding.
//!
//! A cell is three words that are only ever added to: the sum of times, the sum of digests, and counts.
//! Each has as many bytes as its width needs.

use super::escapes::Escapes;
use super::{Shape, Wide, Widths};
use crate::codec::{DecodeError, Reader};
use crate::sums::Sums;
use crate::totals::Totals;

/// Cells of one shape.
#[derive(Clone, Debug)]
pub(crate) struct Cells<S: Shape> {
    shape: S,
    count: usize,
    memory: Vec<S::Unit>,
    escapes: Escapes,
}

/// One cell in so many may count more than a cell can. That takes 24 bytes each, a fiftieth of the memory: of
/// 4096 cells 64 may have eight million packets and more.
const CELLS_PER_ESCAPE: usize = 64;

/// What packets add to a cell, as the cell has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Added {
    times: u64,
    digests: u64,
    counts: u64,
}

/// Bytes beside cells: totals, the bound of the table of escapes, and the counter of counts that were lost.
const FIXED_BYTES: u64 = (size_of::<Totals>() + 2 * size_of::<u64>()) as u64;

/// Of so many cells, how many may count more than a cell can.
pub(crate) const fn escapes_for(cells: usize) -> usize {
    cells.div_ceil(CELLS_PER_ESCAPE)
}

impl Widths {
    /// Bytes of memory that a synopsis of so many cells takes, with its totals.
    pub(crate) const fn state_bytes(self, cells: usize) -> u64 {
        let escapes = escapes_for(cells) * Escapes::BYTES;
        FIXED_BYTES + (cells * self.cell_bytes() + escapes) as u64
    }

    /// How many cells such a synopsis has within so many bytes.
    pub(crate) const fn cells_within(self, memory_bytes: u64) -> u64 {
        let (cell, escape) = (self.cell_bytes() as u64, Escapes::BYTES as u64);
        let memory_bytes = memory_bytes.saturating_sub(FIXED_BYTES);
        let group = CELLS_PER_ESCAPE as u64 * cell + escape;
        let rest = (memory_bytes % group).saturating_sub(escape) / cell;
        memory_bytes / group * CELLS_PER_ESCAPE as u64 + rest
    }
}

impl Added {
    /// `None` if the counts are more than a cell can take at once.
    #[inline]
    pub(crate) fn of(shape: impl Shape, packets: &Wide) -> Option<Self> {
        let Wide { sums: Sums { times, packets, digests }, bytes } = *packets;
        let counts = shape.widths().counts_of(packets, bytes)?;
        Some(Self { times, digests, counts })
    }
}

impl<S: Shape> Cells<S> {
    /// Empty ones.
    pub(crate) fn new(shape: S, count: usize) -> Self {
        Self::with_escapes(shape, count, escapes_for(count))
    }

    /// Empty ones, of which so many may count more than a cell can.
    pub(crate) fn with_escapes(shape: S, count: usize, escapes_max: usize) -> Self {
        Self { shape, count, memory: shape.memory(count), escapes: Escapes::new(escapes_max) }
    }

    pub(crate) fn widths(&self) -> Widths {
        self.shape.widths()
    }

    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// How often counts were lost, since too many cells counted more than a cell can. Unless that is
    /// 0, counts mean nothing.
    pub(crate) const fn counts_lost(&self) -> u64 {
        self.escapes.refused
    }

    /// Counts were lost so many times elsewhere.
    pub(crate) fn lose_counts(&mut self, times: u64) {
        self.escapes.refused = self.escapes.refused.saturating_add(times);
    }

    /// Adds packets to a cell.
    #[inline]
    pub(crate) fn add(&mut self, index: usize, packets: &Added) {
        let cell = self.shape.cell_mut(&mut self.memory, index);
        let counts = add_to(cell, self.shape.widths(), packets);
        if counts & self.shape.widths().full_mask() != 0 {
            self.move_counts(index);
        }
    }

    /// Adds packets to cells. If the answer is yes, some of them have to be [relieved](Self::relieve)
    /// before more is added than a batch: without a call in the loop it is a third shorter.
    #[inline]
    #[must_use]
    pub(crate) fn add_all(&mut self, packets: impl Iterator<Item = (usize, Added)>) -> bool {
        let (shape, memory) = (self.shape, self.memory.as_mut_slice());
        let mut counts = 0;
        for (index, packets) in packets {
            counts |= add_to(shape.cell_mut(memory, index), shape.widths(), &packets);
        }
        counts & shape.widths().full_mask() != 0
    }

    /// Moves the counts of those of these cells that have used up their bits.
    #[cold]
    pub(crate) fn relieve(&mut self, indices: impl Iterator<Item = usize>) {
        let widths = self.shape.widths();
        for index in indices {
            let cell = self.shape.cell(&self.memory, index);
            if word_of(&cell[widths.counts_at()..]) & widths.full_mask() != 0 {
                self.move_counts(index);
            }
        }
    }

    /// Adds any number of packets.
    pub(crate) fn add_wide(&mut self, index: usize, packets: &Wide) {
        self.change(index, |cell| cell.add(packets));
    }

    /// Takes packets out again.
    pub(crate) fn subtract(&mut self, index: usize, packets: &Wide) {
        self.change(index, |cell| cell.subtract(packets));
    }

    /// Adds what cells of the same shape have seen.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.lose_counts(other.counts_lost());
        for (index, packets) in other.iter().enumerate() {
            self.add_wide(index, &packets);
        }
    }

    pub(crate) fn change(&mut self, index: usize, change: impl FnOnce(&mut Wide)) {
        let mut cell = self.wide(index);
        change(&mut cell);
        self.set(index, &cell);
    }

    /// What a cell has seen.
    #[inline]
    pub(crate) fn wide(&self, index: usize) -> Wide {
        let widths = self.shape.widths();
        let cell = self.shape.cell(&self.memory, index);
        let times = word_of(cell) & widths.times_mask();
        let digests = word_of(&cell[widths.digests_at()..]) & widths.digests_mask();
        let (packets, bytes) = widths.split(word_of(&cell[widths.counts_at()..]));
        let (more_packets, more_bytes) = self.escapes.of(index);
        let packets = packets.wrapping_add(more_packets);
        Wide { sums: Sums { times, packets, digests }, bytes: bytes.wrapping_add(more_bytes) }
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Wide> + '_ {
        (0..self.count).map(|index| self.wide(index))
    }

    /// Makes a cell one that has seen this.
    pub(crate) fn set(&mut self, index: usize, seen: &Wide) {
        let widths = self.shape.widths();
        let Wide { sums: Sums { times, packets, digests }, bytes } = widths.trimmed(*seen);
        self.escapes.remove(index);
        let counts = widths.counts_of(packets, bytes);
        if counts.is_none() {
            self.escapes.add(index, packets, bytes);
        }
        let cell = self.shape.cell_mut(&mut self.memory, index);
        replace(&mut cell[0..], times, widths.times_mask());
        replace(&mut cell[widths.digests_at()..], digests, widths.digests_mask());
        replace(&mut cell[widths.counts_at()..], counts.unwrap_or(0), widths.counts_mask());
    }

    /// Reads cells of whole words, as the first versions wrote them.
    pub(crate) fn decode_wide(&mut self, input: &mut Reader<'_>) -> Result<(), DecodeError> {
        let has_bytes = self.widths().has_bytes;
        let cell_bytes = Sums::BYTES + if has_bytes { size_of::<u64>() } else { 0 };
        let mut input = Reader::new(input.raw("cells", self.count * cell_bytes)?);
        for index in 0..self.count {
            let sums = Sums::decode(&mut input)?;
            let bytes = if has_bytes { input.u64("bytes")? } else { 0 };
            self.set(index, &Wide { sums, bytes });
        }
        Ok(())
    }

    /// Moves the counts of a cell to where there is room for more.
    #[cold]
    fn move_counts(&mut self, index: usize) {
        let widths = self.shape.widths();
        let cell = self.shape.cell_mut(&mut self.memory, index);
        let word = &mut cell[widths.counts_at()..];
        let (packets, bytes) = widths.split(word_of(word));
        replace(word, 0, widths.counts_mask());
        self.escapes.add(index, packets, bytes);
    }
}

/// Equal if they have seen the same, wherever that is kept.
impl<S: Shape> PartialEq for Cells<S> {
    fn eq(&self, other: &Self) -> bool {
        let is_alike = self.shape == other.shape && self.counts_lost() == other.counts_lost();
        is_alike && self.iter().eq(other.iter())
    }
}

/// Adds packets to a cell; its counts then.
#[inline]
fn add_to(cell: &mut [u8], widths: Widths, packets: &Added) -> u64 {
    wrapping_add(cell, packets.times, widths.times_mask());
    wrapping_add(&mut cell[widths.digests_at()..], packets.digests, widths.digests_mask());
    // Counts stay within their bits, so that nothing has to be masked.
    let word = &mut cell[widths.counts_at()..];
    let counts = word_of(word).wrapping_add(packets.counts);
    set_word(word, counts);
    counts
}

/// The first eight bytes, or as many as there are.
#[inline]
fn word_of(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => {
            let mut word = [0; size_of::<u64>()];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        }
    }
}

#[inline]
fn set_word(bytes: &mut [u8], word: u64) {
    let word = word.to_le_bytes();
    match bytes.first_chunk_mut() {
        Some(place) => *place = word,
        None => bytes.copy_from_slice(&word[..bytes.len()]),
    }
}

/// Adds to the bits of a word that are in the mask, and leaves the others as they are.
#[inline]
fn wrapping_add(bytes: &mut [u8], value: u64, mask: u64) {
    replace(bytes, word_of(bytes).wrapping_add(value), mask);
}

/// Replaces the bits of a word that are in the mask.
#[inline]
fn replace(bytes: &mut [u8], value: u64, mask: u64) {
    let word = word_of(bytes);
    set_word(bytes, word ^ ((word ^ value) & mask));
}

#[cfg(test)]
mod tests;
