//! Nested shares of all packets.

/// How thin a sample is: level n keeps the packets whose rank is among the lowest `2^(-n/8)` of
/// all ranks. What a level keeps, every lower level keeps too, so that two points that chose
/// different levels have the packets of the higher one in common.
///
/// Eight levels make a factor of two: a sample that must not grow beyond its budget then uses at
/// least nine tenths of it, where whole powers of two would waste up to half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleLevel(u16); // at most MAX

/// Levels in a factor of two.
const STEPS: u16 = 8;
/// 2^64 · 2^(-n/8), less one part for the whole.
const LIMITS: [u64; STEPS as usize] = [
    u64::MAX,
    0xeac0_c6e7_dd24_392e,
    0xd744_fcca_d69d_6af4,
    0xc567_2a11_5506_dadd,
    0xb504_f333_f9de_6484,
    0xa5fe_d6a9_b151_38ea,
    0x9837_f051_8db8_a96f,
    0x8b95_c1e3_ea8b_d6e6,
];

impl SampleLevel {
    /// Keeps every packet.
    pub const ALL: Self = Self(0);
    /// The thinnest.
    pub const MAX: Self = Self(64 * STEPS - 1);

    /// The level with this number; `None` if there is none.
    #[must_use]
    pub const fn from_number(number: u16) -> Option<Self> {
        if number <= Self::MAX.0 { Some(Self(number)) } else { None }
    }

    /// The highest level that keeps packets of this rank.
    #[must_use]
    pub const fn of_rank(rank: u64) -> Self {
        let doublings = rank.leading_zeros();
        if doublings >= u64::BITS {
            return Self::MAX;
        }
        // Even the last level of these doublings may keep it; their first does.
        let mut level = Self(doublings as u16 * STEPS + STEPS - 1);
        while !level.keeps(rank) {
            level.0 -= 1;
        }
        level
    }

    /// Its number: 0 for all packets.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The next thinner one.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        Self::from_number(self.0 + 1)
    }

    /// Whether packets of this rank are kept.
    #[must_use]
    #[inline]
    pub const fn keeps(self, rank: u64) -> bool {
        rank <= self.limit()
    }

    /// The share of all packets that is kept.
    #[must_use]
    pub fn share(self) -> f64 {
        1.0 / self.weight()
    }

    /// How many packets each that is kept stands for.
    #[must_use]
    pub fn weight(self) -> f64 {
        2_f64.powf(f64::from(self.0) / f64::from(STEPS))
    }

    const fn limit(self) -> u64 {
        LIMITS[(self.0 % STEPS) as usize] >> (self.0 / STEPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_the_shares_they_claim() {
        for number in 0..=SampleLevel::MAX.number() {
            let level = SampleLevel::from_number(number).unwrap();
            let share = level.limit() as f64 / 2_f64.powi(64);
            // Ranks are whole numbers, so the thinnest levels are coarse.
            let coarse = 1.0 / level.limit() as f64;
            assert!((share / level.share() - 1.0).abs() <= 1e-12 + coarse, "{number}");
        }
        assert_eq!(SampleLevel::from_number(512), None);
        assert_eq!(SampleLevel::MAX.next(), None);
    }

    #[test]
    fn levels_are_nested_and_a_rank_knows_its_highest() {
        for rank in [0, 1, 2, 77, 1 << 40, u64::MAX / 3, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
            let highest = SampleLevel::of_rank(rank);
            for number in 0..=SampleLevel::MAX.number() {
                let level = SampleLevel::from_number(number).unwrap();
                assert_eq!(level.keeps(rank), level <= highest, "{rank} at {number}");
            }
        }
    }
}
