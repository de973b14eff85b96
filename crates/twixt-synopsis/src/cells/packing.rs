//! Cells as bytes, in about as many bits as they distinguish.
//!
//! The sum of a cell's times is, but for chance, its packets times the mean time of all: what
//! is left is small, the smaller the fewer packets and the shorter the epoch. So it is with bytes.
//! Digests are noise and stay as they are. A vector is
//!
//! | field | type |
//! |---|---|
//! | mean time, in units of the resolution | u64 |
//! | whether cells without packets are blank (0, 1) | u8 |
//! | order of the packets' code | u8 |
//! | classes of cells by packets; the order of each one's code of times, or 64 for none | u8, u8 each |
//! | where bytes are counted: mean length; classes and orders of the code of bytes | u64, u8, u8 each |
//! | bits of the shortest block, and the width of the others' excess in bits | u32, u8 |
//! | that excess, for each block but the last | block |
//! | bits: packets, and for cells that are not blank what is left of times, digest, what is left of bytes | block |
//!
//! A block is 64 cells. Codes have no fixed length, so that the lengths of blocks are what lets a
//! reader get at one cell without reading all before it. Version 1 of `colate` has none.

mod column;
mod directory;

use self::column::Column;
use self::directory::Directory;
use super::bits::{BitReader, BitWriter, golomb_bits};
use super::{Cells, Shape, Wide, Widths};
use crate::codec::{DecodeError, Reader, Writer};
use crate::sums::Sums;

/// Sums of these are written as they are, without a code.
const PLAIN: u8 = 64;
/// A count has 0 to 64 binary digits.
const CLASSES: usize = 65;

/// Cells between two places that can be jumped to. Half as many would cost twice the room, about
/// 0.3 % of it; with twice as many, twice as much is read on the way to a cell.
pub(crate) const BLOCK_CELLS: usize = 64;

/// Appends cells, in vectors of so many.
pub(crate) fn encode_cells<S: Shape>(cells: &Cells<S>, vector_cells: usize, out: &mut Writer) {
    out.u64(cells.counts_lost());
    for start in (0..cells.len()).step_by(vector_cells) {
        let vector = start..start + vector_cells;
        encode(&vector.map(|cell| cells.wide(cell)).collect::<Vec<_>>(), cells.widths(), out);
    }
}

/// Reads back what [`encode_cells`] wrote, into empty cells.
pub(crate) fn decode_cells<S: Shape>(
    cells: &mut Cells<S>,
    vector_cells: usize,
    input: &mut Reader<'_>,
) -> Result<(), DecodeError> {
    let counts_lost = input.u64("lost counts")?;
    decode_vectors(cells, vector_cells, input)?;
    cells.lose_counts(counts_lost);
    Ok(())
}

/// The same, of vectors alone.
pub(crate) fn decode_vectors<S: Shape>(
    cells: &mut Cells<S>,
    vector_cells: usize,
    input: &mut Reader<'_>,
) -> Result<(), DecodeError> {
    each_vector(cells, vector_cells, |widths, take| decode(vector_cells, widths, input, take))
}

/// What version 1 of `colate` had: vectors without lengths of blocks.
pub(crate) fn decode_first<S: Shape>(
    cells: &mut Cells<S>,
    vector_cells: usize,
    input: &mut Reader<'_>,
) -> Result<(), DecodeError> {
    each_vector(cells, vector_cells, |widths, take| {
        decode_without_blocks(vector_cells, widths, input, take)
    })
}

/// Fills cells with what is read of one vector after the other.
fn each_vector<S: Shape>(
    cells: &mut Cells<S>,
    vector_cells: usize,
    mut read: impl FnMut(Widths, &mut dyn FnMut(Wide)) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    for start in (0..cells.len()).step_by(vector_cells) {
        let mut next = start;
        read(cells.widths(), &mut |cell| {
            cells.set(next, &cell);
            next += 1;
        })?;
    }
    Ok(())
}

/// Appends a vector.
pub(crate) fn encode(cells: &[Wide], widths: Widths, out: &mut Writer) {
    let format = Format::of(cells, widths);
    format.encode(out);
    let mut bits = BitWriter::default();
    let mut starts = Vec::with_capacity(cells.len() / BLOCK_CELLS + 1);
    for block in cells.chunks(BLOCK_CELLS) {
        starts.push(bits.length_bits());
        block.iter().for_each(|cell| format.write(cell, widths, &mut bits));
    }
    Directory::new(starts).encode(out);
    out.block(&bits.into_bytes());
}

/// Reads back `count` cells, and hands them over in order.
pub(crate) fn decode(
    count: usize,
    widths: Widths,
    input: &mut Reader<'_>,
    mut take: impl FnMut(Wide),
) -> Result<(), DecodeError> {
    let (format, directory, block) = parts(count, widths, input)?;
    let mut bits = BitReader::new(block);
    for number in 0..count {
        if number % BLOCK_CELLS == 0 && directory.start(number / BLOCK_CELLS) != bits.position() {
            return Err(wrong());
        }
        take(format.read(widths, &mut bits).ok_or_else(wrong)?);
    }
    if bits.is_finished() { Ok(()) } else { Err(wrong()) }
}

/// Reads some of `count` cells, given by their numbers in order, and hands those over; how many it
/// had to look at.
pub(crate) fn decode_some(
    count: usize,
    wanted: &[u32],
    widths: Widths,
    input: &mut Reader<'_>,
    mut take: impl FnMut(Wide),
) -> Result<usize, DecodeError> {
    let (format, directory, block) = parts(count, widths, input)?;
    let block_of = |number: u32| number as usize / BLOCK_CELLS;
    let mut read = 0;
    for wanted in wanted.chunk_by(|&one, &other| block_of(one) == block_of(other)) {
        let number = block_of(wanted[0]);
        let mut bits = BitReader::at(block, directory.start(number));
        let mut next = number * BLOCK_CELLS;
        for &cell in wanted {
            while next < cell as usize {
                format.read(widths, &mut bits).ok_or_else(wrong)?;
                next += 1;
            }
            take(format.read(widths, &mut bits).ok_or_else(wrong)?);
            next += 1;
        }
        read += next - number * BLOCK_CELLS;
    }
    Ok(read)
}

fn decode_without_blocks(
    count: usize,
    widths: Widths,
    input: &mut Reader<'_>,
    mut take: impl FnMut(Wide),
) -> Result<(), DecodeError> {
    let format = Format::decode(widths, input)?;
    let block = input.block("cells")?;
    check_count(count, block.len())?;
    let mut bits = BitReader::new(block);
    for _ in 0..count {
        take(format.read(widths, &mut bits).ok_or_else(wrong)?);
    }
    if bits.is_finished() { Ok(()) } else { Err(wrong()) }
}

/// What a vector consists of; its cells are not read yet.
fn parts<'a>(
    count: usize,
    widths: Widths,
    input: &mut Reader<'a>,
) -> Result<(Format, Directory, &'a [u8]), DecodeError> {
    let format = Format::decode(widths, input)?;
    check_count(count, input.left())?;
    let directory = Directory::decode(count.div_ceil(BLOCK_CELLS), input)?;
    let block = input.block("cells")?;
    check_count(count, block.len())?;
    Ok((format, directory, block))
}

/// A cell takes one bit or more: what was announced is checked before it is reserved.
pub(crate) fn check_count(count: usize, bytes: usize) -> Result<(), DecodeError> {
    match bytes.saturating_mul(8) < count {
        true => Err(DecodeError::invalid("cells", "are fewer than announced")),
        false => Ok(()),
    }
}

fn wrong() -> DecodeError {
    DecodeError::invalid("cells", "are not as long as announced")
}

struct Format {
    blank: bool,
    packets_order: u8,
    times: Column,
    bytes: Option<Column>,
}

impl Format {
    /// The shortest for these cells.
    fn of(cells: &[Wide], widths: Widths) -> Self {
        let is_blank = |cell: &&Wide| **cell == Wide::default();
        let without = cells.iter().filter(|cell| cell.sums.packets == 0);
        let blank = without.clone().count() == without.filter(is_blank).count();
        let packets = || cells.iter().map(|cell| cell.sums.packets);
        let (packets_order, _) = best_order(&lengths(packets()));
        let is_written = |cell: &&Wide| !(blank && cell.sums.packets == 0);
        let times = |cell: &Wide| (cell.sums.packets, cell.sums.times);
        let bytes = |cell: &Wide| (cell.sums.packets, cell.bytes);
        let written = || cells.iter().filter(is_written);
        Self {
            blank,
            packets_order,
            times: Column::of(|| written().map(times), u32::from(widths.time_bits)),
            bytes: widths.has_bytes.then(|| Column::of(|| written().map(bytes), u64::BITS)),
        }
    }

    const fn is_blank(&self, packets: u64) -> bool {
        self.blank && packets == 0
    }

    fn encode(&self, out: &mut Writer) {
        out.u64(self.times.mean);
        out.u8(u8::from(self.blank));
        out.u8(self.packets_order);
        self.times.encode_orders(out);
        if let Some(bytes) = &self.bytes {
            out.u64(bytes.mean);
            bytes.encode_orders(out);
        }
    }

    fn decode(widths: Widths, input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mean = input.u64("mean time")?;
        let blank = input.u8("blank cells")? != 0;
        let packets_order = input.u8("order of packets")?;
        if packets_order >= PLAIN {
            return Err(column::too_high());
        }
        let times = Column::decode(mean, u32::from(widths.time_bits), input)?;
        let bytes = match widths.has_bytes {
            true => Some(Column::decode(input.u64("mean length")?, u64::BITS, input)?),
            false => None,
        };
        Ok(Self { blank, packets_order, times, bytes })
    }

    fn write(&self, cell: &Wide, widths: Widths, bits: &mut BitWriter) {
        let Sums { times, packets, digests } = cell.sums;
        bits.golomb(packets, u32::from(self.packets_order));
        if self.is_blank(packets) {
            return;
        }
        self.times.write(packets, times, bits);
        bits.number(digests, u32::from(widths.digest_bits));
        if let Some(column) = &self.bytes {
            column.write(packets, cell.bytes, bits);
        }
    }

    #[inline]
    fn read(&self, widths: Widths, bits: &mut BitReader<'_>) -> Option<Wide> {
        let packets = bits.golomb(u32::from(self.packets_order))?;
        if self.is_blank(packets) {
            return Some(Wide::default());
        }
        let times = self.times.read(packets, bits)?;
        let digests = bits.number(u32::from(widths.digest_bits))?;
        let bytes = match &self.bytes {
            Some(column) => column.read(packets, bits)?,
            None => 0,
        };
        Some(Wide { sums: Sums { times, packets, digests }, bytes })
    }
}

/// Cells with about as many packets.
fn class(packets: u64) -> usize {
    bit_length(packets) as usize
}

const fn bit_length(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

/// How many numbers have so many bits.
fn lengths(numbers: impl Iterator<Item = u64>) -> [u64; CLASSES] {
    let mut lengths = [0; CLASSES];
    numbers.for_each(|number| lengths[bit_length(number) as usize] += 1);
    lengths
}

/// The order that takes the fewest bits, and how many.
fn best_order(lengths: &[u64; CLASSES]) -> (u8, u64) {
    let codes = lengths.iter().zip(0_u32..).filter(|(count, _)| **count > 0);
    // A higher order than the longest number has bits makes all codes longer.
    let longest = codes.clone().last().map_or(0, |(_, length)| length);
    let bits = |order: u8| -> u64 {
        codes
            .clone()
            .map(|(count, length)| count * u64::from(golomb_bits(length, order.into())))
            .sum()
    };
    let orders = 0..=(longest as u8).min(PLAIN - 1);
    orders.map(|order| (order, bits(order))).min_by_key(|&(_, bits)| bits).expect("some")
}

#[cfg(test)]
mod tests;
