//! How long to wait before trying again.

use std::time::Duration;

use twixt_model::mix;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(60);
/// A collector that wants to be left alone for longer is asked earlier.
const ASKED_MAX: Duration = Duration::from_secs(600);

/// Doubles from try to try, with jitter, so that many agents do not come back at once.
#[derive(Clone, Debug)]
pub(super) struct BackOff {
    seed: u64,
    draws: u64,
    failures: u32,
}

impl BackOff {
    pub(super) const fn new(seed: u64) -> Self {
        Self { seed, draws: 0, failures: 0 }
    }

    /// It worked: the next wait is short again.
    pub(super) const fn reset(&mut self) {
        self.failures = 0;
    }

    /// How long to wait, at least as long as the collector asked for.
    pub(super) fn next(&mut self, asked: Option<Duration>) -> Duration {
        let doubled = FIRST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        // Who says when to come back is there, and need not be searched for.
        self.failures = if asked.is_some() { 0 } else { self.failures.saturating_add(1) };
        self.draws += 1;
        let jitter = (mix(self.seed.wrapping_add(self.draws)) >> 11) as f64 / (1_u64 << 53) as f64;
        match asked {
            // After, not before; and not all at once.
            Some(asked) => asked.min(ASKED_MAX) + FIRST.mul_f64(jitter),
            None => doubled.mul_f64(0.5 + jitter / 2.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute_and_jitter() {
        let mut back_off = BackOff::new(1);
        let waits: Vec<f64> = (0..12).map(|_| back_off.next(None).as_secs_f64()).collect();
        for (failures, wait) in waits.iter().enumerate() {
            let longest = (0.5 * f64::from(1 << failures)).min(60.0);
            assert!((longest / 2.0..=longest).contains(wait), "{failures}: {wait}");
        }
        back_off.reset();
        assert!(back_off.next(None) <= FIRST);
        let other: Vec<f64> = (0..12).map(|_| BackOff::new(2).next(None).as_secs_f64()).collect();
        assert_ne!(waits[0], other[0], "agents differ");
    }

    #[test]
    fn the_collector_is_obeyed_within_reason() {
        let mut back_off = BackOff::new(1);
        let asked = Duration::from_secs(7);
        let wait = back_off.next(Some(asked));
        assert!((asked..asked + FIRST).contains(&wait), "{wait:?}");
        let wait = back_off.next(Some(Duration::from_secs(u64::MAX)));
        assert!(wait < ASKED_MAX + FIRST, "{wait:?}");
    }
}
