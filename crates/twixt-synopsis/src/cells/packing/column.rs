//! Sums that grow with the packets of a cell: times and bytes.

use super::super::bits::{BitReader, BitWriter, low_mask, signed, unsigned};
use super::{CLASSES, PLAIN, best_order, bit_length, class};
use crate::codec::{DecodeError, Reader, Writer};

/// How such sums are written: what they exceed packets times a mean by, in a code that depends on how
/// many packets there are.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) mean: u64,
    /// By class of packets.
    orders: Vec<u8>,
    bits: u32,
}

/// Cells that are looked at for a first guess at the mean.
const GUESS_FROM: usize = 4096;

impl Column {
    /// The shortest for these packets and sums, of which so many bits count.
    pub(super) fn of<I: Iterator<Item = (u64, u64)>>(cells: impl Fn() -> I, bits: u32) -> Self {
        let mut column = Self { mean: 0, orders: Vec::new(), bits };
        column.mean = column.mean_of(&cells);
        let last = cells().map(|(packets, _)| class(packets)).max().unwrap_or(0);
        let mut classes = vec![[0; CLASSES]; last + 1];
        for (packets, sum) in cells() {
            let length = bit_length(unsigned(column.rest(packets, sum)));
            classes[class(packets)][length as usize] += 1;
        }
        column.orders = classes.iter().map(|lengths| column.order(lengths)).collect();
        column
    }

    pub(super) fn encode_orders(&self, out: &mut Writer) {
        out.u8(self.orders.len() as u8);
        self.orders.iter().for_each(|&order| out.u8(order));
    }

    pub(super) fn decode(
        mean: u64,
        bits: u32,
        input: &mut Reader<'_>,
    ) -> Result<Self, DecodeError> {
        let classes = input.u8("classes of cells")?;
        let orders = input.raw("orders of sums", usize::from(classes))?.to_vec();
        match orders.iter().any(|&order| order > PLAIN) {
            true => Err(too_high()),
            false => Ok(Self { mean, orders, bits }),
        }
    }

    pub(super) fn write(&self, packets: u64, sum: u64, bits: &mut BitWriter) {
        let rest = self.rest(packets, sum);
        match self.orders[class(packets)] {
            PLAIN => bits.number(rest as u64, self.bits),
            order => bits.golomb(unsigned(rest), u32::from(order)),
        }
    }

    #[inline]
    pub(super) fn read(&self, packets: u64, bits: &mut BitReader<'_>) -> Option<u64> {
        let rest = match *self.orders.get(class(packets))? {
            PLAIN => bits.number(self.bits)?,
            order => signed(bits.golomb(u32::from(order))?) as u64,
        };
        Some(rest.wrapping_add(self.mean.wrapping_mul(packets)) & low_mask(self.bits))
    }

    fn order(&self, lengths: &[u64; CLASSES]) -> u8 {
        let (order, bits) = best_order(lengths);
        let plain = lengths.iter().sum::<u64>() * u64::from(self.bits);
        if bits < plain { order } else { PLAIN }
    }

    /// What a sum exceeds so many means by.
    fn rest(&self, packets: u64, sum: u64) -> i64 {
        self.extended(sum.wrapping_sub(self.mean.wrapping_mul(packets)))
    }

    /// The signed number that the low bits stand for.
    fn extended(&self, sum: u64) -> i64 {
        let unused = u64::BITS - self.bits;
        ((sum << unused) as i64) >> unused
    }

    /// A cell of one packet more than another has about one mean more. From such a pair on, the mean
    /// of what is left of all cells corrects the guess.
    fn mean_of<I: Iterator<Item = (u64, u64)>>(&self, cells: &impl Fn() -> I) -> u64 {
        let mut known: Vec<(u64, u64)> = cells().take(GUESS_FROM).collect();
        known.push((0, 0));
        known.sort_unstable();
        let follows = |pair: &&[(u64, u64)]| pair[0].0.checked_add(1) == Some(pair[1].0);
        let Some(pair) = known.windows(2).find(follows) else { return 0 };
        let guess = pair[1].1.wrapping_sub(pair[0].1);
        let rest = |(packets, sum): (u64, u64)| sum.wrapping_sub(guess.wrapping_mul(packets));
        let rests = cells().map(|cell| i128::from(self.extended(rest(cell)))).sum::<i128>();
        let packets = cells().map(|(packets, _)| i128::from(packets)).sum::<i128>();
        guess.wrapping_add((rests / packets.max(1)) as u64)
    }
}

pub(super) fn too_high() -> DecodeError {
    DecodeError::invalid("order", "is more than a number has bits")
}
