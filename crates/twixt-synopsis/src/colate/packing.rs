//! Counters as bytes, in about as many bits as they distinguish.
//!
//! The sum of a counter's times is, but for chance, its packets times the mean time of all: what
//! is left is small, the smaller the fewer packets and the shorter the epoch. Digests are noise
//! and stay as they are. A vector is
//!
//! | field | type |
//! |---|---|
//! | mean time, in units of the resolution | u64 |
//! | whether counters without packets are blank (0, 1) | u8 |
//! | order of the packets' code | u8 |
//! | classes of counters by packets; the order of each one's code of times, or 64 for none | u8, u8 each |
//! | bits of the shortest block, and the width of the others' excess in bits | u32, u8 |
//! | that excess, for each block but the last | block |
//! | bits: packets, and for counters that are not blank what is left of times, and digest | block |
//!
//! A block is 64 counters. Codes have no fixed length, so that the lengths of blocks are what lets a
//! reader get at one counter without reading all before it. Version 1 has none.

mod directory;

use self::directory::Directory;
use super::bits::{BitReader, BitWriter, golomb_bits, low_mask, signed, unsigned};
use super::config::Stored;
use crate::codec::{DecodeError, Reader, Writer};
use crate::sums::Sums;

/// Times of these are written as they are, without a code.
const PLAIN: u8 = 64;
/// A count has 0 to 64 binary digits.
const CLASSES: usize = 65;
/// Counters that are looked at for a first guess at the mean time.
const GUESS_FROM: usize = 4096;

/// Counters between two places that can be jumped to. Half as many would cost twice the room, about
/// 0.3 % of it; with twice as many, twice as much is read on the way to a counter.
pub(super) const BLOCK_COUNTERS: usize = 64;

/// Appends a vector.
pub(super) fn encode(cells: &[Sums], stored: Stored, out: &mut Writer) {
    let format = Format::of(cells, stored);
    format.encode(out);
    let mut bits = BitWriter::default();
    let mut starts = Vec::with_capacity(cells.len() / BLOCK_COUNTERS + 1);
    for block in cells.chunks(BLOCK_COUNTERS) {
        starts.push(bits.length_bits());
        block.iter().for_each(|cell| format.write(cell, stored, &mut bits));
    }
    Directory::new(starts).encode(out);
    out.block(&bits.into_bytes());
}

/// Reads back `count` counters, and appends them.
pub(super) fn decode(
    count: usize,
    stored: Stored,
    input: &mut Reader<'_>,
    cells: &mut Vec<Sums>,
) -> Result<(), DecodeError> {
    let (format, directory, block) = parts(count, stored, input)?;
    let mut bits = BitReader::new(block);
    cells.reserve_exact(count);
    for number in 0..count {
        if number % BLOCK_COUNTERS == 0
            && directory.start(number / BLOCK_COUNTERS) != bits.position()
        {
            return Err(wrong());
        }
        cells.push(format.read(stored, &mut bits).ok_or_else(wrong)?);
    }
    if bits.is_finished() { Ok(()) } else { Err(wrong()) }
}

/// Reads some of `count` counters, given by their numbers in order, and appends those; how many it
/// had to look at.
pub(super) fn decode_some(
    count: usize,
    wanted: &[u32],
    stored: Stored,
    input: &mut Reader<'_>,
    cells: &mut Vec<Sums>,
) -> Result<usize, DecodeError> {
    let (format, directory, block) = parts(count, stored, input)?;
    let block_of = |number: u32| number as usize / BLOCK_COUNTERS;
    let mut read = 0;
    for wanted in wanted.chunk_by(|&one, &other| block_of(one) == block_of(other)) {
        let number = block_of(wanted[0]);
        let mut bits = BitReader::at(block, directory.start(number));
        let mut next = number * BLOCK_COUNTERS;
        for &counter in wanted {
            while next < counter as usize {
                format.read(stored, &mut bits).ok_or_else(wrong)?;
                next += 1;
            }
            cells.push(format.read(stored, &mut bits).ok_or_else(wrong)?);
            next += 1;
        }
        read += next - number * BLOCK_COUNTERS;
    }
    Ok(read)
}

/// What version 1 had: counters without lengths of blocks.
pub(super) fn decode_first(
    count: usize,
    stored: Stored,
    input: &mut Reader<'_>,
    cells: &mut Vec<Sums>,
) -> Result<(), DecodeError> {
    let format = Format::decode(stored, input)?;
    let block = input.block("counters")?;
    check_count(count, block.len())?;
    let mut bits = BitReader::new(block);
    cells.reserve_exact(count);
    for _ in 0..count {
        cells.push(format.read(stored, &mut bits).ok_or_else(wrong)?);
    }
    if bits.is_finished() { Ok(()) } else { Err(wrong()) }
}

/// What a vector consists of; its counters are not read yet.
fn parts<'a>(
    count: usize,
    stored: Stored,
    input: &mut Reader<'a>,
) -> Result<(Format, Directory, &'a [u8]), DecodeError> {
    let format = Format::decode(stored, input)?;
    check_count(count, input.left())?;
    let directory = Directory::decode(count.div_ceil(BLOCK_COUNTERS), input)?;
    let block = input.block("counters")?;
    check_count(count, block.len())?;
    Ok((format, directory, block))
}

/// A counter takes one bit or more: what was announced is checked before it is reserved.
fn check_count(count: usize, bytes: usize) -> Result<(), DecodeError> {
    match bytes.saturating_mul(8) < count {
        true => Err(DecodeError::invalid("counters", "are fewer than announced")),
        false => Ok(()),
    }
}

fn wrong() -> DecodeError {
    DecodeError::invalid("counters", "are not as long as announced")
}

struct Format {
    mean_time: u64,
    blank: bool,
    packets_order: u8,
    /// By class of packets.
    times_orders: Vec<u8>,
    time_bits: u32,
}

impl Format {
    /// The shortest for these counters.
    fn of(cells: &[Sums], stored: Stored) -> Self {
        let is_blank = |cell: &&Sums| cell.packets == 0 && cell.times == 0 && cell.digests == 0;
        let without = cells.iter().filter(|cell| cell.packets == 0);
        let mut format = Self {
            mean_time: 0,
            blank: without.clone().count() == without.filter(is_blank).count(),
            packets_order: best_order(&lengths(cells.iter().map(|cell| cell.packets))).0,
            times_orders: Vec::new(),
            time_bits: u32::from(stored.time_bits),
        };
        format.mean_time = format.mean_time(cells);
        let last = cells.iter().map(|cell| class(cell.packets)).max().unwrap_or(0);
        let mut classes = vec![[0; CLASSES]; last + 1];
        for cell in cells.iter().filter(|cell| !format.is_blank(cell.packets)) {
            let length = bit_length(unsigned(format.rest(cell)));
            classes[class(cell.packets)][length as usize] += 1;
        }
        format.times_orders = classes.iter().map(|lengths| format.times_order(lengths)).collect();
        format
    }

    fn times_order(&self, lengths: &[u64; CLASSES]) -> u8 {
        let (order, bits) = best_order(lengths);
        let plain = lengths.iter().sum::<u64>() * u64::from(self.time_bits);
        if bits < plain { order } else { PLAIN }
    }

    const fn is_blank(&self, packets: u64) -> bool {
        self.blank && packets == 0
    }

    /// What a counter's times add up to beyond so many mean times.
    fn rest(&self, cell: &Sums) -> i64 {
        let mean = self.mean_time.wrapping_mul(cell.packets);
        self.extended(cell.times.wrapping_sub(mean))
    }

    /// The signed number that the low `time_bits` stand for.
    fn extended(&self, times: u64) -> i64 {
        let unused = 64 - self.time_bits;
        ((times << unused) as i64) >> unused
    }

    /// A counter of one packet more than another has one time more. From such a pair on, the mean
    /// of what is left of all counters corrects the guess.
    fn mean_time(&self, cells: &[Sums]) -> u64 {
        let mut known: Vec<(u64, u64)> =
            cells.iter().take(GUESS_FROM).map(|cell| (cell.packets, cell.times)).collect();
        known.push((0, 0));
        known.sort_unstable();
        let follows = |pair: &&[(u64, u64)]| pair[0].0.checked_add(1) == Some(pair[1].0);
        let Some(pair) = known.windows(2).find(follows) else { return 0 };
        let guess = pair[1].1.wrapping_sub(pair[0].1);
        let rest = |cell: &Sums| cell.times.wrapping_sub(guess.wrapping_mul(cell.packets));
        let rests = cells.iter().map(|cell| i128::from(self.extended(rest(cell)))).sum::<i128>();
        let packets = cells.iter().map(|cell| i128::from(cell.packets)).sum::<i128>();
        guess.wrapping_add((rests / packets.max(1)) as u64)
    }

    fn encode(&self, out: &mut Writer) {
        out.u64(self.mean_time);
        out.u8(u8::from(self.blank));
        out.u8(self.packets_order);
        out.u8(self.times_orders.len() as u8);
        self.times_orders.iter().for_each(|&order| out.u8(order));
    }

    fn decode(stored: Stored, input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mean_time = input.u64("mean time")?;
        let blank = input.u8("blank counters")? != 0;
        let packets_order = input.u8("order of packets")?;
        let classes = input.u8("classes of counters")?;
        let times_orders = input.raw("orders of times", usize::from(classes))?.to_vec();
        let highest = times_orders.iter().copied().max().unwrap_or(0);
        if packets_order >= PLAIN || highest > PLAIN {
            return Err(DecodeError::invalid("order", "is more than a number has bits"));
        }
        let time_bits = u32::from(stored.time_bits);
        Ok(Self { mean_time, blank, packets_order, times_orders, time_bits })
    }

    fn write(&self, cell: &Sums, stored: Stored, bits: &mut BitWriter) {
        bits.golomb(cell.packets, u32::from(self.packets_order));
        if self.is_blank(cell.packets) {
            return;
        }
        let rest = self.rest(cell);
        match self.times_orders[class(cell.packets)] {
            PLAIN => bits.number(rest as u64, self.time_bits),
            order => bits.golomb(unsigned(rest), u32::from(order)),
        }
        bits.number(cell.digests, u32::from(stored.digest_bits));
    }

    #[inline]
    fn read(&self, stored: Stored, bits: &mut BitReader<'_>) -> Option<Sums> {
        let packets = bits.golomb(u32::from(self.packets_order))?;
        if self.is_blank(packets) {
            return Some(Sums::default());
        }
        let rest = match *self.times_orders.get(class(packets))? {
            PLAIN => bits.number(self.time_bits)?,
            order => signed(bits.golomb(u32::from(order))?) as u64,
        };
        let times = rest.wrapping_add(self.mean_time.wrapping_mul(packets));
        let digests = bits.number(u32::from(stored.digest_bits))?;
        Some(Sums { times: times & low_mask(self.time_bits), packets, digests })
    }
}

/// Counters with about as many packets.
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
    let bits = |order: u8| -> u64 {
        let codes = lengths.iter().zip(0..);
        codes.map(|(count, length)| count * u64::from(golomb_bits(length, order.into()))).sum()
    };
    (0..PLAIN).map(|order| (order, bits(order))).min_by_key(|&(_, bits)| bits).expect("some")
}

#[cfg(test)]
mod tests;
