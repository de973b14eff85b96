//! How round trips are grouped.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use twixt_model::{ClassId, FlowKey, Scope};

use crate::codec::{DecodeError, Reader, Writer};
use crate::question::By;

/// How round trips are split up. The flow that asked decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Grouping {
    /// All together.
    #[default]
    All,
    /// By directed flow.
    Flow,
    /// By pair of prefixes.
    Prefix {
        /// Bits of an IPv4 address that count.
        v4: u8,
        /// Bits of an IPv6 address that count.
        v6: u8,
    },
    /// By the lower of the two ports: that of the service, as a rule.
    Port,
    /// By class of traffic.
    Class,
}

/// Bits of an IPv6 prefix when only those of IPv4 are given: what a site usually gets.
const DEFAULT_V6_BITS: u8 = 48;

impl Grouping {
    /// The group of a round trip; `None` if they are not grouped. A class is named by its number.
    pub(super) fn scope(self, key: &FlowKey, class: ClassId) -> Option<Scope> {
        match self {
            Self::All => None,
            Self::Flow => Some(Scope::Flow(*key)),
            Self::Prefix { v4, v6 } => Some(By::Prefix { v4, v6 }.scope_of(key)),
            Self::Port => Some(By::Port.scope_of(key)),
            Self::Class => Some(Scope::Class(class.0.to_string())),
        }
    }

    pub(super) fn encode(self, out: &mut Writer) {
        let (code, v4, v6) = match self {
            Self::All => (0, 0, 0),
            Self::Flow => (1, 0, 0),
            Self::Prefix { v4, v6 } => (2, v4, v6),
            Self::Port => (3, 0, 0),
            Self::Class => (4, 0, 0),
        };
        out.raw(&[code, v4, v6]);
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match *input.raw("grouping", 3)? {
            [0, ..] => Ok(Self::All),
            [1, ..] => Ok(Self::Flow),
            [2, v4 @ 0..=32, v6 @ 0..=128] => Ok(Self::Prefix { v4, v6 }),
            [3, ..] => Ok(Self::Port),
            [4, ..] => Ok(Self::Class),
            _ => Err(DecodeError::invalid("grouping", "is unknown")),
        }
    }
}

impl FromStr for Grouping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => return Ok(Self::All),
            "flow" => return Ok(Self::Flow),
            "host" => return Ok(Self::Prefix { v4: 32, v6: 128 }),
            "port" => return Ok(Self::Port),
            "class" => return Ok(Self::Class),
            _ => {}
        }
        let wrong = || {
            "use all, flow, host, port, class, or prefix/24 (prefix/24,48 for IPv6 too)".to_owned()
        };
        let bits = |text: &str, most: u8| text.parse().ok().filter(|&bits| bits <= most);
        let lengths = text.strip_prefix("prefix/").ok_or_else(wrong)?;
        let prefix = match lengths.split_once(',') {
            Some((v4, v6)) => bits(v4, 32).zip(bits(v6, 128)),
            None => bits(lengths, 32).map(|v4| (v4, DEFAULT_V6_BITS)),
        };
        prefix.map(|(v4, v6)| Self::Prefix { v4, v6 }).ok_or_else(wrong)
    }
}

impl TryFrom<String> for Grouping {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Grouping {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => formatter.write_str("all"),
            Self::Flow => formatter.write_str("flow"),
            Self::Prefix { v4, v6 } => write!(formatter, "prefix/{v4},{v6}"),
            Self::Port => formatter.write_str("port"),
            Self::Class => formatter.write_str("class"),
        }
    }
}

impl From<Grouping> for String {
    fn from(grouping: Grouping) -> Self {
        grouping.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let grouping: Grouping = text.parse().unwrap();
        let key = "tcp 10.1.2.3:40312 > 10.0.1.9:443".parse().unwrap();
        let scope = grouping.scope(&key, ClassId(2));
        assert_eq!(scope.map_or_else(String::new, |scope| scope.to_string()), expected);
        assert_eq!(grouping.to_string().parse(), Ok(grouping));
        let mut out = Writer::new();
        grouping.encode(&mut out);
        assert_eq!(Grouping::decode(&mut Reader::new(out.as_slice())), Ok(grouping));
    }

    #[test]
    fn a_round_trip_is_that_of_the_flow_that_asked() {
        check("all", "");
        check("flow", "tcp 10.1.2.3:40312 > 10.0.1.9:443");
        check("prefix/16", "10.1.0.0/16 > 10.0.0.0/16");
        check("prefix/8,32", "10.0.0.0/8 > 10.0.0.0/8");
        check("port", "tcp port 443");
        check("host", "10.1.2.3/32 > 10.0.1.9/32");
        check("class", "class 2");
        for text in ["", "prefix", "prefix/33", "prefix/8,129", "hosts"] {
            assert!(text.parse::<Grouping>().is_err(), "{text}");
        }
    }
}
