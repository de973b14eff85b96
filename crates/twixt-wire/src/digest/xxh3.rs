//! XXH3 of records of 96 and of 40 bytes, from words that are still in registers.
//!
//! The same hash as that of the bytes with a seed. Lengths are known when compiling, the seed is
//! added to the secret once rather than for every packet, and nothing is written to memory only
//! to be read back.

/// The secret of XXH3 as one seed changes it.
#[derive(Clone, Debug)]
pub(super) struct Secret([u64; 12]);

/// The first 96 bytes of the default secret, little-endian (XXH3 specification, section 1.3).
const DEFAULT_SECRET: [u64; 12] = [
    0xbe4b_a423_396c_feb8,
    0x1cad_21f7_2c81_017c,
    0xdb97_9083_e96d_d4de,
    0x1f67_b3b7_a4a4_4072,
    0x78e5_c0cc_4ee6_79cb,
    0x2172_ffcc_7dd0_5a82,
    0x8e24_43f7_7446_08b8,
    0x4c26_3a81_e690_35e0,
    0xcb00_c391_bb52_283c,
    0xa32e_531b_8b65_d088,
    0x4ef9_0da2_9748_6471,
    0xd8ac_dea9_46ef_1938,
];
const PRIME_1: u64 = 0x9e37_79b1_85eb_ca87;
const AVALANCHE_PRIME: u64 = 0x1656_6791_9e37_79f9;

impl Secret {
    pub(super) fn new(seed: u64) -> Self {
        let keyed = |index: usize, word: u64| match index % 2 {
            0 => word.wrapping_add(seed),
            _ => word.wrapping_sub(seed),
        };
        Self(std::array::from_fn(|index| keyed(index, DEFAULT_SECRET[index])))
    }

    /// Of 12 little-endian words. The order in which XXH3 takes parts of the secret is that of
    /// its loop from both ends of the input towards the middle.
    #[inline(always)]
    pub(super) fn hash_96(&self, words: &[u64; 12]) -> u64 {
        let sum = (96_u64.wrapping_mul(PRIME_1))
            .wrapping_add(self.mixed(words[0], words[1], 0))
            .wrapping_add(self.mixed(words[10], words[11], 1))
            .wrapping_add(self.mixed(words[2], words[3], 2))
            .wrapping_add(self.mixed(words[8], words[9], 3))
            .wrapping_add(self.mixed(words[4], words[5], 4))
            .wrapping_add(self.mixed(words[6], words[7], 5));
        avalanche(sum)
    }

    /// Of 5 little-endian words, of which XXH3 reads those in the middle twice.
    #[inline(always)]
    pub(super) fn hash_40(&self, words: &[u64; 5]) -> u64 {
        let sum = (40_u64.wrapping_mul(PRIME_1))
            .wrapping_add(self.mixed(words[0], words[1], 0))
            .wrapping_add(self.mixed(words[3], words[4], 1))
            .wrapping_add(self.mixed(words[2], words[3], 2))
            .wrapping_add(self.mixed(words[1], words[2], 3));
        avalanche(sum)
    }

    #[inline(always)]
    fn mixed(&self, low: u64, high: u64, pair: usize) -> u64 {
        let (low, high) = (low ^ self.0[2 * pair], high ^ self.0[2 * pair + 1]);
        let product = u128::from(low) * u128::from(high);
        product as u64 ^ (product >> 64) as u64
    }
}

#[inline(always)]
const fn avalanche(sum: u64) -> u64 {
    let folded = (sum ^ sum >> 37).wrapping_mul(AVALANCHE_PRIME);
    folded ^ folded >> 32
}

#[cfg(test)]
mod tests {
    use twixt_model::mix;
    use xxhash_rust::xxh3::xxh3_64_with_seed;

    use super::super::record::bytes;
    use super::*;

    /// Against another implementation, over many seeds and contents.
    #[test]
    fn equal_to_the_hash_of_the_bytes() {
        for round in 0..2_000 {
            let draw = |index: usize| mix(round << 8 | index as u64);
            let (long, short): ([u64; 12], [u64; 5]) =
                (std::array::from_fn(draw), std::array::from_fn(draw));
            let seed = if round == 0 { 0 } else { mix(!round) };
            let secret = Secret::new(seed);
            let long_bytes: [u8; 96] = bytes(long);
            let short_bytes: [u8; 40] = bytes(short);
            assert_eq!(secret.hash_96(&long), xxh3_64_with_seed(&long_bytes, seed));
            assert_eq!(secret.hash_40(&short), xxh3_64_with_seed(&short_bytes, seed));
        }
    }
}
