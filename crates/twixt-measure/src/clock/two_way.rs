//! How far clocks are apart, where packets went both ways.

use twixt_model::Delay;

/// How far the downstream clock is ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// Best guess: right if the fastest packets of both directions took equally long.
    pub offset: Delay,
    /// How far the guess can be off, however unequal the two directions are.
    pub error_bound: Delay,
}

/// The offset, from differences (downstream time less upstream time) of packets both ways. No
/// packet arrives before it left, so the offset is no larger than the difference of any packet
/// that went downstream, and no smaller than that of any that went upstream. (NTP takes the middle
/// alike: RFC 5905, section 8.)
#[must_use]
pub fn two_way(downstream: Delay, upstream: Delay) -> ClockOffset {
    let (high, low) = (i128::from(downstream.as_nanos()), i128::from(upstream.as_nanos()));
    let half = (high - low) / 2;
    ClockOffset {
        offset: Delay::from_nanos((low + half) as i64),
        error_bound: Delay::from_nanos(half.unsigned_abs() as i64),
    }
}

impl ClockOffset {
    /// Less sure by this much.
    #[must_use]
    pub fn widened(self, doubt: Delay) -> Self {
        Self { error_bound: self.error_bound + doubt, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(times_ms: [i64; 4], offset_us: i64, bound_us: i64) {
        let [sent, received, returned, back] =
            times_ms.map(|time| Delay::from_nanos(time * 1_000_000));
        let found = two_way(received - sent, returned - back);
        assert_eq!(found.offset.as_nanos(), offset_us * 1000);
        assert_eq!(found.error_bound.as_nanos(), bound_us * 1000);
    }

    #[test]
    fn the_offset_is_the_middle_and_half_of_the_way_its_bound() {
        check([10_000, 10_130, 10_131, 10_010], 125_500, 4_500);
        check([0, 4, 4, 8], 0, 4_000);
        check([0, -6, -5, 3], -7_000, 1_000);
    }

    #[test]
    fn clocks_at_both_ends_of_time_do_not_overflow() {
        let found = two_way(Delay::from_nanos(i64::MAX), Delay::from_nanos(i64::MIN));
        assert_eq!(found.error_bound.as_nanos(), i64::MAX);
    }
}
