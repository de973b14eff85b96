//! Times as NTP writes them: 32 bits of seconds since 1900, 32 bits of a second (RFC 7011, 6.1.9).

use twixt_model::Timestamp;

/// Seconds from 1900 to 1970.
const SECONDS_TO_1970: i64 = 2_208_988_800;
const SECOND_NS: i64 = 1_000_000_000;
/// The seconds restart in 2036. Those without the top bit are of the second era (RFC 4330,
/// section 3), so that times from 1968 to 2104 can be represented.
const ERA_SECONDS: i64 = 1 << 32;
const FIRST_ERA_FROM: i64 = 1 << 31;

/// The 64 bits of a time; `None` if it lies outside 1968 to 2104.
pub(crate) fn to_bits(time: Timestamp) -> Option<u64> {
    let seconds = time.as_nanos().div_euclid(SECOND_NS) + SECONDS_TO_1970;
    if !(FIRST_ERA_FROM..FIRST_ERA_FROM + ERA_SECONDS).contains(&seconds) {
        return None;
    }
    let nanos = time.as_nanos().rem_euclid(SECOND_NS) as u64;
    // Rounded up: a unit is a quarter of a nanosecond, so that readers who cut the rest off and
    // those who round get the same nanosecond back.
    let fraction = ((nanos << 32).div_ceil(SECOND_NS as u64)) & 0xffff_ffff;
    Some(((seconds % ERA_SECONDS) as u64) << 32 | fraction)
}

/// The time of 64 bits.
pub(crate) fn from_bits(bits: u64) -> Timestamp {
    let seconds = (bits >> 32) as i64;
    let era = if seconds < FIRST_ERA_FROM { ERA_SECONDS } else { 0 };
    // Rounded, for writers who cut off what they could not say.
    let nanos = ((bits & 0xffff_ffff) * SECOND_NS as u64 + (1 << 31)) >> 32;
    Timestamp::from_nanos((seconds + era - SECONDS_TO_1970) * SECOND_NS + nanos as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(nanos: i64) {
        let time = Timestamp::from_nanos(nanos);
        assert_eq!(from_bits(to_bits(time).unwrap()), time);
    }

    #[test]
    fn every_nanosecond_reads_back() {
        for nanos in [0, 1, 2, 3, 499_999_999, 500_000_000, 999_999_998, 999_999_999] {
            check(nanos);
            check(1_700_000_000 * SECOND_NS + nanos);
        }
        for step in 0..100_000 {
            check(1_763_000_000 * SECOND_NS + step * 9_999);
        }
        // Around the end of the first era, 2036-02-07 06:28:16.
        check(2_085_978_495 * SECOND_NS + 999_999_999);
        check(2_085_978_496 * SECOND_NS);
        check(4_000_000_000 * SECOND_NS);
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        assert_eq!(to_bits(Timestamp::MIN), None);
        assert_eq!(to_bits(Timestamp::MAX), None);
    }

    #[test]
    fn no_bits_are_too_much() {
        for bits in [0, u64::MAX, 1 << 63, (1 << 63) - 1] {
            let _ = from_bits(bits);
        }
    }
}
