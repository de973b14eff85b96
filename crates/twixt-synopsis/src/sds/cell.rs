//! What a cell of SDS keeps, and what that tells.

use twixt_model::{Observation, Timestamp};

use crate::codec::{DecodeError, Reader, Writer};

/// Words that are only ever added to, modulo 2^64 and 2^128.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    /// Sum of squares of delays, in square nanoseconds. Clocks years apart make squares of 114
    /// bits: only differences of what two references give mean anything, and those are exact.
    squares: u128,
    /// Packets, whether or not their delay is known.
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Packets whose delay is known.
    pub(super) delays: u64,
    /// Sum of their delays.
    delay_sum: u64,
}

impl Cell {
    pub(super) const BYTES: usize = 48;

    /// What a single packet leaves in its cells.
    #[inline]
    pub(super) fn of(observation: &Observation, sent: Option<Timestamp>) -> Self {
        let delay_ns = sent.map(|sent| (observation.time - sent).as_nanos());
        let square = delay_ns.map_or(0, |delay_ns| u128::from(delay_ns.unsigned_abs()).pow(2));
        Self {
            squares: square,
            packets: 1,
            bytes: u64::from(observation.length),
            delays: u64::from(delay_ns.is_some()),
            delay_sum: delay_ns.unwrap_or(0) as u64,
        }
    }

    /// The same for a packet that counts several times.
    #[inline]
    pub(super) fn weighted(self, weight: u64) -> Self {
        Self {
            squares: self.squares.wrapping_mul(u128::from(weight)),
            packets: self.packets.wrapping_mul(weight),
            bytes: self.bytes.wrapping_mul(weight),
            delays: self.delays.wrapping_mul(weight),
            delay_sum: self.delay_sum.wrapping_mul(weight),
        }
    }

    #[inline]
    pub(super) fn add(&mut self, other: &Self) {
        self.squares = self.squares.wrapping_add(other.squares);
        self.packets = self.packets.wrapping_add(other.packets);
        self.bytes = self.bytes.wrapping_add(other.bytes);
        self.delays = self.delays.wrapping_add(other.delays);
        self.delay_sum = self.delay_sum.wrapping_add(other.delay_sum);
    }

    pub(super) fn subtract(&mut self, other: &Self) {
        self.squares = self.squares.wrapping_sub(other.squares);
        self.packets = self.packets.wrapping_sub(other.packets);
        self.bytes = self.bytes.wrapping_sub(other.bytes);
        self.delays = self.delays.wrapping_sub(other.delays);
        self.delay_sum = self.delay_sum.wrapping_sub(other.delay_sum);
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.u64(self.packets);
        out.u64(self.bytes);
        out.u64(self.delays);
        out.u64(self.delay_sum);
        out.u64(self.squares as u64);
        out.u64((self.squares >> 64) as u64);
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let packets = input.u64("packets")?;
        let bytes = input.u64("bytes")?;
        let delays = input.u64("delays")?;
        let delay_sum = input.u64("delay sum")?;
        let low = u128::from(input.u64("squares, low half")?);
        let high = u128::from(input.u64("squares, high half")?);
        Ok(Self { squares: high << 64 | low, packets, bytes, delays, delay_sum })
    }

    /// Counts and sums relative to a reference delay; `None` if no delay is known.
    pub(super) fn moments(&self, reference_ns: i64) -> Option<Moments> {
        let reference = (reference_ns as u64).wrapping_mul(self.delays);
        let sum_ns = self.delay_sum.wrapping_sub(reference) as i64;
        // Sum of (d - r)^2 is that of d^2 - 2 r d + r^2, with d brought back from (d - r).
        let (sum, count) = (i128::from(sum_ns), i128::from(self.delays));
        let reference = i128::from(reference_ns);
        let absolute = sum.wrapping_add(count.wrapping_mul(reference));
        let twice = reference.wrapping_mul(2).wrapping_mul(absolute) as u128;
        let offset = reference.wrapping_mul(reference).wrapping_mul(count) as u128;
        let squares = self.squares.wrapping_sub(twice).wrapping_add(offset);
        (self.delays > 0).then_some(Moments {
            delays: self.delays as f64,
            sum_ns: sum_ns as f64,
            square_sum: squares as f64,
            exact: (self.delays, sum_ns),
        })
    }
}

const _: () = assert!(size_of::<Cell>() == Cell::BYTES);

/// Delays of a cell's packets, each minus a reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moments {
    pub(super) delays: f64,
    pub(super) sum_ns: f64,
    pub(super) square_sum: f64,
    /// The first two to the unit.
    pub(super) exact: (u64, i64),
}

impl Moments {
    pub(super) fn mean(&self) -> f64 {
        self.sum_ns / self.delays
    }

    /// Of all packets in the cell, whichever flows they belong to.
    pub(super) fn deviation(&self) -> f64 {
        (self.square_sum / self.delays - self.mean().powi(2)).max(0.0).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use twixt_model::Delay;

    use super::*;

    #[test]
    fn an_offset_of_years_costs_no_precision() {
        const YEARS_NS: i64 = 315_360_000_000_000_000;
        let mut cell = Cell::default();
        for delay_ns in [2, 4, 9] {
            let sent = Timestamp::from_nanos(1_700_000_000_000_000_000);
            let time = sent + Delay::from_nanos(YEARS_NS + delay_ns);
            cell.add(&Cell::of(&Observation { time, ..Observation::default() }, Some(sent)));
        }
        let moments = cell.moments(YEARS_NS + 3).unwrap();
        assert_eq!(moments.exact, (3, 6));
        assert_eq!(moments.square_sum, 1.0 + 1.0 + 36.0);
        // 2, 4, 9: mean 5, variance 26 / 3.
        assert!((moments.deviation() - (26.0_f64 / 3.0).sqrt()).abs() < 1e-9);
        assert_eq!(Cell::default().moments(0), None);
    }
}
