//! Coins and places: what the tables leave to hashing, so that tests can substitute their own.

use std::fmt::Debug;

use twixt_model::{FlowHash, mix};

use crate::codec::{DecodeError, Reader, Writer};

/// Decides whether a flow takes over a counter.
pub trait Coin: Clone + Debug + PartialEq + Send + 'static {
    /// Whether an event of one in `outcomes` happens. Every call is a draw of its own.
    fn one_in(&mut self, outcomes: u64, flow: FlowHash) -> bool;
}

/// Draws from a counter and the flow's keyed hash: equal streams see equal draws, and who does
/// not know the key cannot foresee them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedCoin {
    draws: u64,
}

/// Keeps the draws apart from the bits that place flows.
const COIN_SALT: u64 = 0x6865_6176_792d_636f;
/// An odd number near 2^64 divided by the golden ratio: successive draws are far apart.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

impl Coin for CountedCoin {
    #[inline]
    fn one_in(&mut self, outcomes: u64, flow: FlowHash) -> bool {
        self.draws = self.draws.wrapping_add(1);
        let bits = flow.derive(mix(self.draws.wrapping_mul(STRIDE) ^ COIN_SALT));
        (u128::from(bits) * u128::from(outcomes)) >> 64 == 0
    }
}

impl CountedCoin {
    pub(crate) fn merge(&mut self, other: Self) {
        self.draws = self.draws.wrapping_add(other.draws);
    }

    pub(super) fn encode(self, out: &mut Writer) {
        out.u64(self.draws);
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { draws: input.u64("draws")? })
    }
}

/// Which counters a flow may have, in a table of `ways` times `slots` counters.
pub trait Placement: Clone + Debug + PartialEq + Send + 'static {
    /// The counter of this way.
    fn place(&self, flow: FlowHash, way: usize, slots: usize) -> usize;
}

/// Every way is a stage with a hash of its own: flows that meet in one part in the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages;

/// All ways lie side by side, in one set: a single hash, and a single place in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sets {
    ways: usize,
}

/// Keeps the places apart from the bits that other algorithms derive.
const PLACE_SALT: u64 = 0x6865_6176_792d_706c;

impl Placement for Stages {
    #[inline]
    fn place(&self, flow: FlowHash, way: usize, slots: usize) -> usize {
        way * slots + below(flow.derive(PLACE_SALT.wrapping_add(way as u64 + 1)), slots)
    }
}

impl Sets {
    pub(super) const fn of(ways: usize) -> Self {
        Self { ways }
    }
}

impl Placement for Sets {
    #[inline]
    fn place(&self, flow: FlowHash, way: usize, slots: usize) -> usize {
        below(flow.derive(PLACE_SALT), slots) * self.ways + way
    }
}

/// A number below `limit`, from the high bits.
#[inline]
fn below(bits: u64, limit: usize) -> usize {
    ((u128::from(bits) * limit as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 000 draws of one in `outcomes`: four standard deviations of the binomial count.
    #[track_caller]
    fn check(outcomes: u64) {
        const DRAWS: u64 = 100_000;
        let mut coin = CountedCoin::default();
        let happened = (0..DRAWS).filter(|_| coin.one_in(outcomes, FlowHash(7))).count() as f64;
        let expected = DRAWS as f64 / outcomes as f64;
        assert!((happened - expected).abs() <= 4.0 * expected.sqrt(), "{happened} of {expected}");
    }

    #[test]
    fn coins_are_fair() {
        check(2);
        check(3);
        check(100);
        check(5000);
        assert!(CountedCoin::default().one_in(1, FlowHash(0)));
    }

    #[test]
    fn places_are_within_their_way_or_set() {
        for flow in (0..1000).map(|number| FlowHash(mix(number))) {
            for way in 0..4 {
                assert_eq!(Stages.place(flow, way, 30) / 30, way);
                assert_eq!(Sets::of(4).place(flow, way, 30) % 4, way);
                assert!(Sets::of(4).place(flow, way, 30) < 120);
            }
        }
    }
}
