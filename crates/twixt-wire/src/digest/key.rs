//! The key of the hashes: shared by the points of a segment, never shown, never sent.

use std::fmt;

use siphasher::sip::SipHasher24;
use siphasher::sip128::{Hasher128, SipHasher24 as SipHasher24Wide};
use std::hash::Hasher;
use twixt_model::mix;

/// 128 bits that both points of a segment must share.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey([u8; 16]);

/// What [`HashKey::id`] hashes. Part of every recorded identity: never change it.
const ID_TEXT: &[u8] = b"twixt key id 1";
/// Under what [`HashKey::from_passphrase`] hashes. Never change it.
const PASSPHRASE_KEY: [u8; 16] = *b"twixt passphrase";

impl HashKey {
    /// A key from all its bits.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// A key from a number, which becomes the seed of XXH3 as it is. Who may guess the number
    /// may guess the key.
    #[must_use]
    pub const fn from_seed(seed: u64) -> Self {
        let wide = seed as u128 | (mix(!seed) as u128) << 64;
        Self(wide.to_le_bytes())
    }

    /// A key from words; spaces around them do not count. A short passphrase can be found by
    /// trying: use a long one where senders are hostile.
    #[must_use]
    pub fn from_passphrase(text: &str) -> Self {
        let mut hasher = SipHasher24Wide::new_with_key(&PASSPHRASE_KEY);
        hasher.write(text.trim().as_bytes());
        Self(hasher.finish128().as_bytes())
    }

    /// Names the key without giving it away, to tell whether two points use the same. One pair
    /// of keys in 2^32 shares an id.
    #[must_use]
    pub fn id(&self) -> u32 {
        SipHasher24::new_with_key(&self.0).hash(ID_TEXT) as u32
    }

    /// The seed of XXH3: the first 8 bytes, little-endian.
    #[inline]
    pub(super) const fn seed(&self) -> u64 {
        u128::from_le_bytes(self.0) as u64
    }

    /// The key of SipHash for one kind of record.
    #[inline]
    pub(super) const fn for_domain(&self, domain: u64) -> [u8; 16] {
        (u128::from_le_bytes(self.0) ^ domain as u128).to_le_bytes()
    }
}

/// Shows the id only.
impl fmt::Debug for HashKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HashKey(id {:08x})", self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_so_do_their_ids() {
        let keys = [
            HashKey::from_seed(0),
            HashKey::from_seed(1),
            HashKey::from_passphrase("correct horse"),
            HashKey::from_passphrase("correct horsf"),
            HashKey::from_bytes([7; 16]),
        ];
        for (index, key) in keys.iter().enumerate() {
            for other in &keys[..index] {
                assert_ne!(key, other);
                assert_ne!(key.id(), other.id());
            }
        }
        assert_eq!(
            HashKey::from_passphrase(" correct horse\n"),
            HashKey::from_passphrase("correct horse")
        );
    }

    #[test]
    fn a_seed_is_the_seed_of_xxh3() {
        assert_eq!(HashKey::from_seed(0x0102_0304).seed(), 0x0102_0304);
    }

    /// Values computed with another implementation of SipHash.
    #[test]
    fn ids_and_passphrases_never_change() {
        assert_eq!(HashKey::from_seed(1).id(), 0x1afa_ac86);
        assert_eq!(HashKey::from_passphrase("twixt").id(), 0x1ca3_2708);
    }

    #[test]
    fn debug_does_not_show_the_key() {
        let key = HashKey::from_bytes([0xab; 16]);
        let shown = format!("{key:?}");
        assert_eq!(shown, format!("HashKey(id {:08x})", key.id()));
        assert!(!shown.contains("ab, ") && !shown.contains("171"));
    }
}
