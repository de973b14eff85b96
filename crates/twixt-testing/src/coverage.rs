//! Whether confidence intervals hold as often as they promise.

use statrs::distribution::{Binomial, DiscreteCDF};

/// How often an assertion may fail although its intervals keep their promise. A run of everything
/// has fewer than a hundred such assertions: of a hundred runs that explore, one fails by chance.
/// Runs with fixed seeds repeat themselves.
pub const FALSE_ALARM: f64 = 1e-4;

/// Fails if fewer of `all` independent intervals hold than `nominal` (such as 0.95) allows by
/// chance: if so few, or fewer, have a probability below [`FALSE_ALARM`] (exact binomial test, one
/// tail). That more hold than promised is not a fault here: it costs width, which others test.
///
/// # Panics
///
/// If too few hold, or if there are so few intervals that the test could not fail.
#[track_caller]
pub fn check_coverage(what: &str, held: u64, all: u64, nominal: f64) {
    let least = least_plausible(all, nominal);
    println!("{what}: {held} of {all} intervals of {nominal} hold; at least {least} must");
    assert!(least > 0, "{what}: {all} intervals are too few to test {nominal}");
    assert!(
        held >= least,
        "{what}: {held} of {all} intervals hold, fewer than the {least} that {nominal} allows"
    );
}

/// The smallest count whose lower tail is not below [`FALSE_ALARM`].
fn least_plausible(all: u64, nominal: f64) -> u64 {
    let held = Binomial::new(nominal, all).expect("a share is between 0 and 1");
    (0..=all).find(|&count| held.cdf(count) >= FALSE_ALARM).expect("all of them are always enough")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of binomial probabilities in rational numbers.
    #[test]
    fn bounds_are_quantiles_of_the_binomial_distribution() {
        for (all, nominal, least) in
            [(6, 0.95, 3), (20, 0.95, 14), (100, 0.95, 85), (1000, 0.95, 923), (200, 0.9, 163)]
        {
            assert_eq!(least_plausible(all, nominal), least, "{all} {nominal}");
        }
    }

    #[test]
    fn what_holds_passes() {
        check_coverage("as promised", 95, 100, 0.95);
        check_coverage("more than promised", 100, 100, 0.95);
    }

    #[test]
    #[should_panic(expected = "70 of 100 intervals hold")]
    fn what_does_not_hold_fails() {
        check_coverage("too narrow", 70, 100, 0.95);
    }

    #[test]
    #[should_panic(expected = "too few to test")]
    fn a_test_that_cannot_fail_is_refused() {
        check_coverage("three", 0, 3, 0.95);
    }
}
