//! Where random numbers come from.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::process::Command;

/// The seeds of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seeds {
    /// The same in every run.
    Fixed,
    /// Others, all derived from one number.
    Drawn(u64),
}

impl Seeds {
    /// By what `--explore` says: nothing, nothing more, or which seed.
    pub(crate) fn of(explore: Option<Option<u64>>) -> Self {
        // The standard library draws the keys of each hasher at random.
        let draw = || RandomState::new().hash_one(0) >> 32;
        explore.map_or(Self::Fixed, |seed| Self::Drawn(seed.unwrap_or_else(draw)))
    }

    /// Whether tests that take minutes run too.
    pub(crate) const fn explores(self) -> bool {
        matches!(self, Self::Drawn(_))
    }

    /// That of libFuzzer, which takes 32 bits and draws its own for 0.
    pub(crate) const fn of_fuzzer(self) -> u64 {
        match self {
            Self::Fixed => 1,
            Self::Drawn(seed) => seed % u32::MAX as u64 + 1,
        }
    }

    /// Passed to tests. Without these variables they take the seeds that are written in them.
    pub(crate) fn pass_to(self, command: &mut Command) {
        if let Self::Drawn(seed) = self {
            let seed = seed.to_string();
            command.env("TWIXT_SEED", &seed).env("PROPTEST_RNG_SEED", seed);
        }
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed => write!(formatter, "fixed seeds"),
            Self::Drawn(seed) => write!(formatter, "seed {seed}, repeat with --explore={seed}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_drawn_or_given() {
        assert_eq!(Seeds::of(None), Seeds::Fixed);
        assert_eq!(Seeds::of(Some(Some(7))), Seeds::Drawn(7));
        assert_ne!(Seeds::of(Some(None)), Seeds::of(Some(None)));
    }

    #[test]
    fn the_fuzzer_never_draws_its_own() {
        assert_eq!(Seeds::Drawn(0).of_fuzzer(), 1);
        assert_eq!(Seeds::Drawn(u64::from(u32::MAX)).of_fuzzer(), 1);
    }
}
