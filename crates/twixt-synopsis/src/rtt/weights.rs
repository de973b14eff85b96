//! How many round trips a measured one stands for, and how far that can be trusted.
//!
//! A table that overwrites loses requests the faster the longer they wait, so what it measures
//! favours short round trips. If each was measured with a known probability q, counting it 1/q
//! times repairs that: the expected number of every length is right (Horvitz and Thompson).
//!
//! Zheng, Chen, Braverman, Rexford: "Unbiased delay measurement in the data plane", APOCS 2022.
//! The factor as printed counts insertions but uses the chance per request; either must be used
//! throughout.

/// Weight of a round trip whose request was admitted with `probability`, and then survived
/// `insertions` into a table of `entries`, each of which takes its place with chance 1/entries.
#[must_use]
#[inline]
pub fn fridge_weight(entries: u32, probability: f64, insertions: u32) -> f64 {
    inverse(probability * power(1.0 - 1.0 / f64::from(entries), insertions))
}

/// Weight of a round trip that lasted `requests` and was found in any of several fridges, of which
/// each request is admitted to one at most: the inverse of the chance to be found in any of them.
/// Weights that depend on how many each found would not be unbiased.
#[must_use]
pub fn fridges_weight(fridges: &[Compartment], requests: u32) -> f64 {
    let found = |fridge: &Compartment| {
        let survived = 1.0 - fridge.probability / f64::from(fridge.entries);
        fridge.probability * power(survived, requests)
    };
    inverse(fridges.iter().map(found).sum())
}

/// No weight is larger: far beyond any horizon, and small enough for sums of squares.
const WEIGHT_MAX: f64 = 1e15;

fn inverse(chance: f64) -> f64 {
    (1.0 / chance).min(WEIGHT_MAX)
}

/// By squaring, so that every machine computes the same bits; exact to about `exponent` parts in
/// 2^53.
#[inline]
fn power(mut base: f64, mut exponent: u32) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent & 1 != 0 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}

/// One of several fridges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compartment {
    /// Places for requests.
    pub entries: u32, // in [2, ENTRIES_MAX]
    /// Share of requests that are admitted to it.
    pub probability: f64, // in (0, 1]
}

impl Compartment {
    /// How many requests one survives on average.
    #[must_use]
    pub fn lifetime_requests(&self) -> f64 {
        f64::from(self.entries) / self.probability
    }
}

/// How many lifetimes a round trip may last, if `matched` were measured, for there to be any like
/// it among them: beyond ln(n) lifetimes less than one in n survives, and means are carried by
/// what was never seen.
#[must_use]
pub fn horizon_lifetimes(matched: u64) -> f64 {
    (matched.max(1) as f64).ln()
}

/// How often an entry probability of 1 must be halved for requests that come at `rate` per second
/// to survive half of the longest round trip of interest on average; between a quarter and all of
/// it is nearly as good.
#[must_use]
pub fn halvings_for(entries: u32, rate: f64, longest_ns: u64) -> u8 {
    let lifetime_requests = rate * longest_ns as f64 / 1e9 * LIFETIME_SHARE;
    let halvings = (lifetime_requests / f64::from(entries)).log2().round();
    if halvings.is_nan() { 0 } else { halvings.clamp(0.0, f64::from(super::entry::NOTE_MAX)) as u8 }
}

/// The average lifetime as a share of the longest round trip of interest.
pub(super) const LIFETIME_SHARE: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(entries: u32, probability: f64, insertions: u32, expected: f64, digits: f64) {
        let weight = fridge_weight(entries, probability, insertions);
        assert!((weight / expected - 1.0).abs() < digits, "{weight} for {expected}");
    }

    #[test]
    fn weights_grow_with_what_was_survived() {
        check(1024, 1.0 / 16.0, 0, 16.0, 1e-12);
        check(1024, 1.0 / 16.0, 1, 16.01564, 1e-6);
        check(1024, 1.0 / 16.0, 100, 17.642181, 1e-7);
        check(1024, 1.0 / 16.0, 1000, 42.505283, 1e-7);
        check(1024, 1.0 / 16.0, 5000, 2117.067, 1e-6);
        check(2, 1.0, 10, 1024.0, 1e-12);
        check(2, 1.0, u32::MAX, WEIGHT_MAX, 1e-12);
    }

    #[test]
    fn several_fridges_with_one_are_one() {
        let one = Compartment { entries: 1024, probability: 1.0 };
        for requests in [0, 1, 500, 5000] {
            let expected = fridge_weight(1024, 1.0, requests);
            assert!((fridges_weight(&[one], requests) / expected - 1.0).abs() < 1e-12);
        }
        let rare = Compartment { entries: 1024, probability: 0.002 };
        let often = Compartment { entries: 1024, probability: 0.0625 };
        assert!((fridges_weight(&[often, rare], 0) - 1.0 / 0.0645).abs() < 1e-9);
        assert!(fridges_weight(&[often, rare], 100_000) < fridges_weight(&[often], 100_000));
    }

    #[test]
    fn the_lifetime_is_between_a_quarter_and_all_of_the_longest() {
        for rate in [1e3, 3e4, 1e6, 2.9e6] {
            let halvings = halvings_for(1024, rate, 100_000_000);
            let lifetime = 1024.0 * 2_f64.powi(i32::from(halvings));
            let longest = rate * 0.1;
            assert!(lifetime <= longest || halvings == 0, "{rate}");
            assert!(lifetime >= 0.25 * longest, "{rate}");
        }
        assert_eq!(halvings_for(1024, 0.0, 1), 0);
        assert_eq!(halvings_for(2, f64::INFINITY, u64::MAX), 31);
    }
}
