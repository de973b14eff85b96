//! Which kinds of round trip are measured.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use twixt_model::RoundTripKind;

/// A set of kinds; by default all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KindSet(u16); // never 0, bits of RoundTripKind::ALL only

const ALL: u16 = (1 << RoundTripKind::ALL.len()) - 1;

impl KindSet {
    /// These kinds; `None` if there are none.
    #[must_use]
    pub fn of(kinds: &[RoundTripKind]) -> Option<Self> {
        Self::from_bits(kinds.iter().fold(0, |bits, &kind| bits | 1 << kind as u16))
    }

    /// Whether a kind is in it.
    #[must_use]
    #[inline]
    pub const fn has(self, kind: RoundTripKind) -> bool {
        self.0 & (1 << kind as u16) != 0
    }

    /// How many kinds there were in a version of encoded synopses: the first has no legs of
    /// handshakes, the second no responses of servers.
    pub(super) const fn count_in(version: u8) -> usize {
        match version {
            0 | 1 => 9,
            2 => 11,
            _ => RoundTripKind::ALL.len(),
        }
    }

    /// Of settings encoded in that version: all of that time are all of today.
    pub(super) fn from_bits_of(bits: u16, version: u8) -> Option<Self> {
        let all_then = (1 << Self::count_in(version)) - 1;
        match bits == all_then {
            true => Some(Self::default()),
            false => Self::from_bits(bits).filter(|_| bits & !all_then == 0),
        }
    }

    pub(super) const fn bits(self) -> u16 {
        self.0
    }

    pub(super) fn from_bits(bits: u16) -> Option<Self> {
        (bits != 0 && bits & !ALL == 0).then_some(Self(bits))
    }
}

impl Default for KindSet {
    fn default() -> Self {
        Self(ALL)
    }
}

impl FromStr for KindSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kinds: Result<Vec<RoundTripKind>, String> =
            text.split(',').map(|name| name.trim().parse()).collect();
        Self::of(&kinds?).ok_or_else(|| "name at least one kind".to_owned())
    }
}

impl TryFrom<String> for KindSet {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for KindSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = RoundTripKind::ALL.into_iter().filter(|&kind| self.has(kind));
        formatter.write_str(&kinds.map(RoundTripKind::name).collect::<Vec<_>>().join(","))
    }
}

impl From<KindSet> for String {
    fn from(kinds: KindSet) -> Self {
        kinds.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_names_reads_back() {
        let kinds: KindSet = "dns, tcp-handshake".parse().unwrap();
        assert_eq!(kinds.to_string(), "tcp-handshake,dns");
        assert!(kinds.has(RoundTripKind::Dns) && !kinds.has(RoundTripKind::Ntp));
        assert!("dns,tls".parse::<KindSet>().unwrap_err().contains("tls"));
        assert_eq!(KindSet::of(&RoundTripKind::ALL), Some(KindSet::default()));
        assert_eq!((KindSet::from_bits(0), KindSet::from_bits(1 << 12)), (None, None));
        assert_eq!(KindSet::from_bits_of(0x1ff, 1), Some(KindSet::default()));
        assert_eq!(KindSet::from_bits_of(0x7ff, 2), Some(KindSet::default()));
        assert_eq!(KindSet::from_bits_of(1, 1), KindSet::of(&[RoundTripKind::TcpHandshake]));
        assert_eq!(KindSet::from_bits_of(1 << 9, 1), None);
    }
}
