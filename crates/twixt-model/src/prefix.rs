//! Address prefixes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address and how many of its leading bits count; the other bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    address: IpAddr,
    length: u8, // in [0, 32] for IPv4, [0, 128] for IPv6
}

impl Prefix {
    /// The prefix of `length` bits that `address` lies in. Lengths beyond the address are cut to it.
    #[must_use]
    pub fn of(address: IpAddr, length: u8) -> Self {
        let length = length.min(bits(address));
        let address = match address {
            IpAddr::V4(v4) => IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask32(length))),
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask128(length))),
        };
        Self { address, length }
    }

    /// Whether `address` lies in the prefix.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && Self::of(address, self.length) == *self
    }

    /// The first address of the prefix.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits count.
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }
}

const fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn mask32(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

fn mask128(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.length)
    }
}

/// Why a text is no prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsePrefixError(String);

impl fmt::Display for ParsePrefixError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:?} is not a prefix such as 10.0.0.0/8, 2001:db8::/32 or an address",
            self.0
        )
    }
}

impl std::error::Error for ParsePrefixError {}

impl FromStr for Prefix {
    type Err = ParsePrefixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParsePrefixError(text.to_owned());
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length.parse::<u8>().map_err(|_| error())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| error())?;
        let length = length.unwrap_or(bits(address));
        if length > bits(address) {
            return Err(error());
        }
        Ok(Self::of(address, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(prefix: &str, address: &str, inside: bool) {
        let prefix: Prefix = prefix.parse().unwrap();
        assert_eq!(prefix.contains(address.parse().unwrap()), inside);
    }

    #[test]
    fn addresses_lie_in_their_prefixes_only() {
        check("10.0.0.0/8", "10.1.2.3", true);
        check("10.0.0.0/8", "11.1.2.3", false);
        check("0.0.0.0/0", "255.1.2.3", true);
        check("10.0.0.1", "10.0.0.1", true);
        check("10.0.0.1", "10.0.0.2", false);
        check("2001:db8::/32", "2001:db8:1::1", true);
        check("::/0", "10.0.0.1", false);
        check("::/0", "ff02::1", true);
    }

    #[test]
    fn host_bits_are_cleared_and_nonsense_is_refused() {
        assert_eq!("10.1.2.3/24".parse::<Prefix>().unwrap().to_string(), "10.1.2.0/24");
        for text in ["10.0.0.0/33", "10.0.0/8", "::/129", "", "x/8"] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }
}
