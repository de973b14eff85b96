//! Hashes that stand for packets and flows, and what makes two points' hashes comparable.

use std::fmt;
use std::str::FromStr;

/// Keyed hash of the fields of a packet that no router changes. Not unique: identical packets
/// have identical digests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketDigest(pub u64);

/// Keyed hash of a directed [`FlowKey`](crate::FlowKey).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowHash(pub u64);

impl PacketDigest {
    /// Bits for one purpose, independent of those for any other `salt`.
    #[must_use]
    #[inline]
    pub const fn derive(self, salt: u64) -> u64 {
        mix(self.0 ^ salt)
    }
}

impl FlowHash {
    /// Bits for one purpose, independent of those for any other `salt`.
    #[must_use]
    #[inline]
    pub const fn derive(self, salt: u64) -> u64 {
        mix(self.0 ^ salt)
    }
}

/// The finaliser of MurmurHash3: a bijection of 64 bits in which every input bit reaches every
/// output bit. One hash per packet is computed over bytes; all others are derived with this.
#[must_use]
#[inline]
pub const fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

/// Which fields of a packet its digest covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DigestProfile {
    /// Addresses, ports, lengths, identification, transport header and first payload bytes.
    #[default]
    Default,
    /// As default without addresses and ports, for paths that translate them.
    Nat,
    /// As default without TCP options and payload, for captures that were cut to headers.
    Headers,
}

/// The hash function of a digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DigestHash {
    /// XXH3, 64 bits, seeded: fast; the seed is no secret against an adversary.
    #[default]
    Xxh3,
    /// SipHash-1-3 with a 128-bit key: for traffic whose senders may choose collisions.
    Sip13,
}

/// Which leading bits of addresses distinguish groups of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupPrefixes {
    /// Bits of an IPv4 address, at most 32.
    pub v4: u8,
    /// Bits of an IPv6 address, at most 128.
    pub v6: u8,
}

impl Default for GroupPrefixes {
    fn default() -> Self {
        Self { v4: 24, v6: 48 }
    }
}

/// All that must be equal at two points for their digests to be comparable.
/// The key itself never travels; its id does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DigestIdentity {
    /// Which fields are covered.
    pub profile: DigestProfile,
    /// Which hash function.
    pub hash: DigestHash,
    /// How many bytes of payload are covered.
    pub payload_bytes: u8,
    /// Names the key without giving it away.
    pub key_id: u32,
    /// By which prefixes flows are grouped.
    pub groups: GroupPrefixes,
}

macro_rules! named {
    ($type:ident { $($variant:ident = $name:literal / $code:literal),+ $(,)? }) => {
        impl $type {
            /// Every variant.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in commands, configuration and output.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The number in encoded form. Never reused.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self { $(Self::$variant => $code),+ }
            }

            /// The variant with this number.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.name())
            }
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($name => Ok(Self::$variant),)+
                    _ => Err(format!("unknown name {text:?}; known are: {}", [$($name),+].join(", "))),
                }
            }
        }
    };
}
pub(crate) use named;

named!(DigestProfile { Default = "default" / 0, Nat = "nat" / 1, Headers = "headers" / 2 });
named!(DigestHash { Xxh3 = "xxh3" / 0, Sip13 = "siphash" / 1 });

impl fmt::Display for DigestIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { profile, hash, payload_bytes, key_id, groups } = self;
        write!(
            formatter,
            "{profile} profile, {hash}, {payload_bytes} payload bytes, key id {key_id:08x}"
        )?;
        // Nearly always the default, which is not worth showing.
        match *groups == GroupPrefixes::default() {
            true => Ok(()),
            false => write!(formatter, ", groups by prefix/{},{}", groups.v4, groups.v6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_bits_differ_by_salt() {
        let digest = PacketDigest(42);
        assert_ne!(digest.derive(1), digest.derive(2));
    }

    #[test]
    fn names_and_codes_read_back() {
        for &profile in DigestProfile::ALL {
            assert_eq!(profile.name().parse(), Ok(profile));
            assert_eq!(DigestProfile::from_code(profile.code()), Some(profile));
        }
        assert_eq!(DigestProfile::from_code(99), None);
        assert!("nonsense".parse::<DigestHash>().is_err());
    }
}
