//! What a link costs, exactly.

use crate::topology::ROUTERS_MAX;

/// The largest weight of a link. IS-IS knows 2^24, OSPF 2^16.
pub const WEIGHT_MAX: f64 = 1e9;

/// Steps of a weight within one.
const STEPS: f64 = 1e6;

// No path visits a router twice, so the weights of a whole path fit into 64 bits.
const _: () = assert!((WEIGHT_MAX as u64) * (STEPS as u64) <= u64::MAX / ROUTERS_MAX as u64);

/// The weight of a link: above zero, in millionths.
///
/// Two paths share traffic if their weights are *equal*, so sums of weights must be exact. Sums of
/// binary fractions are not: 0.1 + 0.2 is not 0.3 there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(u64);

impl Weight {
    /// Of a link without a weight.
    pub const ONE: Self = Self(STEPS as u64);

    /// The weight nearest to `value`. None if that is not above zero, or above [`WEIGHT_MAX`].
    ///
    /// A weight of zero is none: with links that cost nothing, shortest paths may go in circles.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        // Written so that not-a-number falls out.
        if !(value > 0.0 && value <= WEIGHT_MAX) {
            return None;
        }
        let millionths = (value * STEPS).round() as u64;
        (millionths > 0).then_some(Self(millionths))
    }

    pub(crate) const fn millionths(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_weights_add_up() {
        let [a, b, sum] = [0.1, 0.2, 0.3].map(|value| Weight::new(value).unwrap().millionths());
        assert_eq!(a + b, sum);
        assert_eq!(Weight::new(1.0), Some(Weight::ONE));
    }

    #[test]
    fn weights_outside_the_range_are_none() {
        for value in [0.0, -1.0, 1e-7, 1.1e9, f64::NAN, f64::INFINITY] {
            assert_eq!(Weight::new(value), None, "{value}");
        }
        assert!(Weight::new(WEIGHT_MAX).is_some());
    }
}
