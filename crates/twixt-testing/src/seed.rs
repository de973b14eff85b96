//! Random numbers of tests: the same in every run, unless a run explores.

use proptest::test_runner::{Config, RngSeed};

/// The seed of an exploring run, which `cargo xtask test --explore` draws and prints.
const EXPLORE: &str = "TWIXT_SEED";
/// As proptest itself reads it.
const PROPTEST: &str = "PROPTEST_RNG_SEED";

/// The seed of a randomised test: `fixed`, or another if the run explores. It is printed, so that
/// the output of a failed test names it.
#[must_use]
pub fn seed(fixed: u64) -> u64 {
    let seed = from_environment(EXPLORE).map_or(fixed, |drawn| mix(fixed ^ mix(drawn)));
    println!("seed {seed:#x}");
    seed
}

/// How often a property is tried, with the seed of the run.
#[must_use]
pub fn cases(count: u32) -> Config {
    Config {
        cases: count,
        // A failure is repeated by its seed; a file of failures would differ between machines.
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(from_environment(PROPTEST).unwrap_or(1)),
        ..Config::default()
    }
}

fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

/// The finaliser of splitmix64, a bijection: seeds that differ stay different.
const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
