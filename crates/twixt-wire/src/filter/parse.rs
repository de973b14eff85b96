//! Filters from text.

use std::net::IpAddr;
use std::str::FromStr;

use twixt_model::Prefix;

use super::{AddressSide, Condition, Expression, Filter, Network, names};

/// Length of a filter's text at most.
pub const FILTER_BYTES_MAX: usize = 8192;

/// Levels of parentheses, `not`, and alternation of `and` with `or` at most.
pub const FILTER_DEPTH_MAX: usize = 32;

/// Bytes of an unexpected word that an error repeats.
const FOUND_BYTES_MAX: usize = 40;

/// Why a text is not a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// Something else should stand there. Correct the filter at that place.
    #[error("at character {position}: expected {expected}, found {found}")]
    Expected {
        /// Where, counted from 1.
        position: usize,
        /// What would be right.
        expected: &'static str,
        /// What is there, in quotes, or "the end".
        found: String,
    },
    /// The text is longer than any filter needs. Use prefixes in place of many hosts.
    #[error("{found} bytes long, at most {FILTER_BYTES_MAX} are supported")]
    TooLong {
        /// How long it is.
        found: usize,
    },
    /// It is nested too deeply. Remove needless parentheses, or split it into classes.
    #[error("nested more than {FILTER_DEPTH_MAX} levels deep")]
    TooDeep,
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        if text.len() > FILTER_BYTES_MAX {
            return Err(FilterError::TooLong { found: text.len() });
        }
        let mut parser = Parser { text, at: 0, depth: 0, last: None };
        let expression = parser.expression()?;
        if !parser.word().is_empty() {
            return Err(parser.expected("and, or, or the end"));
        }
        // Chains of alternating operators nest without parentheses.
        if expression.depth() > FILTER_DEPTH_MAX {
            return Err(FilterError::TooDeep);
        }
        Ok(Self { expression })
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// The keywords that a value alone stands for.
    last: Option<Keywords>,
}

/// What stood before a value.
#[derive(Clone, Copy)]
struct Keywords {
    /// `tcp` in `tcp port 80`.
    first: Option<Condition>,
    side: AddressSide,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `host` or `net`, as the value says.
    Address,
    Host,
    Net,
    Port,
    PortRange,
    Protocol,
    Dscp,
}

impl<'a> Parser<'a> {
    /// Terms with `and` and `or` between them, from left to right.
    fn expression(&mut self) -> Result<Expression, FilterError> {
        let mut left = self.term()?;
        loop {
            left = match self.word() {
                "and" | "&&" => {
                    self.advance();
                    all(left, self.term()?)
                }
                "or" | "||" => {
                    self.advance();
                    any(left, self.term()?)
                }
                _ => return Ok(left),
            };
        }
    }

    fn term(&mut self) -> Result<Expression, FilterError> {
        match self.word() {
            "not" | "!" => self.nested(|parser| Ok(Expression::Not(Box::new(parser.term()?)))),
            "outer" => self.nested(|parser| Ok(Expression::Outer(Box::new(parser.term()?)))),
            "(" => self.nested(|parser| {
                let inner = parser.expression()?;
                parser.require(")", "and, or, or a closing parenthesis")?;
                Ok(inner)
            }),
            _ => self.condition(),
        }
    }

    fn nested(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<Expression, FilterError>,
    ) -> Result<Expression, FilterError> {
        if self.depth == FILTER_DEPTH_MAX {
            return Err(FilterError::TooDeep);
        }
        self.advance();
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn condition(&mut self) -> Result<Expression, FilterError> {
        if let Some(alone) = self.standing_alone()? {
            return Ok(Expression::Is(alone));
        }
        let first = self.protocol_or_version();
        let side = self.side();
        let kind = self.kind();
        let keywords = match (first, side, kind) {
            (Some(first), None, None) => return Ok(Expression::Is(first)),
            (None, None, None) => self.implied()?,
            _ => Keywords {
                first,
                side: side.unwrap_or(AddressSide::Either),
                kind: kind.unwrap_or(Kind::Address),
            },
        };
        let value = Expression::Is(self.value(keywords)?);
        self.last = Some(keywords);
        Ok(match keywords.first {
            Some(first) => all(Expression::Is(first), value),
            None => value,
        })
    }

    /// Conditions that nothing precedes.
    fn standing_alone(&mut self) -> Result<Option<Condition>, FilterError> {
        let word = self.word();
        if !matches!(word, "vlan" | "mpls" | "less" | "greater") {
            return Ok(None);
        }
        self.advance();
        Ok(Some(match word {
            "vlan" => match self.number(4095) {
                Some(number) => Condition::Vlan(Some(number as u16)),
                None if self.word().starts_with(|first: char| first.is_ascii_digit()) => {
                    return Err(self.expected("a VLAN number from 0 to 4095"));
                }
                None => Condition::Vlan(None),
            },
            "mpls" => Condition::Mpls,
            _ => {
                let bytes = self.number(u32::MAX).ok_or_else(|| self.expected("a length"))?;
                match word {
                    "less" => Condition::LengthAtMost(bytes),
                    _ => Condition::LengthAtLeast(bytes),
                }
            }
        }))
    }

    fn protocol_or_version(&mut self) -> Option<Condition> {
        let condition = match self.word() {
            "ip" => Condition::Version(4),
            "ip6" => Condition::Version(6),
            name => Condition::Protocol(names::protocol(name)?),
        };
        self.advance();
        Some(condition)
    }

    /// `src`, `dst`, `src or dst`, `src and dst`.
    fn side(&mut self) -> Option<AddressSide> {
        let side = match self.word() {
            "src" => AddressSide::Source,
            "dst" => AddressSide::Destination,
            _ => return None,
        };
        self.advance();
        let rest = self.at;
        let joined = match self.word() {
            "or" | "||" => AddressSide::Either,
            "and" | "&&" => AddressSide::Both,
            _ => return Some(side),
        };
        self.advance();
        if side == AddressSide::Source && self.word() == "dst" {
            self.advance();
            return Some(joined);
        }
        self.at = rest;
        Some(side)
    }

    fn kind(&mut self) -> Option<Kind> {
        let kind = match self.word() {
            "host" => Kind::Host,
            "net" => Kind::Net,
            "port" => Kind::Port,
            "portrange" => Kind::PortRange,
            "proto" => Kind::Protocol,
            "dscp" => Kind::Dscp,
            _ => return None,
        };
        self.advance();
        Some(kind)
    }

    /// The keywords that are repeated by leaving them out.
    fn implied(&self) -> Result<Keywords, FilterError> {
        let word = self.word();
        if matches!(word, "" | ")" | "and" | "&&" | "or" | "||") {
            return Err(self.expected("a condition such as host, net, port or tcp"));
        }
        let address = Keywords { first: None, side: AddressSide::Either, kind: Kind::Address };
        match self.last {
            Some(last) if matches!(last.kind, Kind::Host | Kind::Net) => {
                let kind = if word.contains('/') { Kind::Net } else { last.kind };
                Ok(Keywords { kind, ..last })
            }
            Some(last) => Ok(last),
            None if word.parse::<Prefix>().is_ok() => Ok(address),
            None => Err(self.expected("a condition such as host, net, port or tcp")),
        }
    }

    fn value(&mut self, Keywords { side, kind, .. }: Keywords) -> Result<Condition, FilterError> {
        let word = self.word();
        let (condition, expected) = match kind {
            Kind::Address => (prefix(word, side), "an address, a prefix, host, net or port"),
            Kind::Host => (host(word, side), "an IP address"),
            Kind::Net => (prefix(word, side), "a prefix such as 10.0.0.0/8"),
            Kind::Port => (port(word, side), "a port from 0 to 65535"),
            Kind::PortRange => (port_range(word, side), "two ports such as 8000-8080"),
            Kind::Protocol => (protocol(word), "a protocol name or number"),
            Kind::Dscp => (dscp(word), "a code point from 0 to 63, or a name such as ef or af11"),
        };
        let condition = condition.ok_or_else(|| self.expected(expected))?;
        self.advance();
        Ok(condition)
    }

    fn number(&mut self, most: u32) -> Option<u32> {
        let number = decimal(self.word()).filter(|&number| number <= most)?;
        self.advance();
        Some(number)
    }

    fn require(&mut self, word: &str, expected: &'static str) -> Result<(), FilterError> {
        if self.word() != word {
            return Err(self.expected(expected));
        }
        self.advance();
        Ok(())
    }

    /// The next word; empty at the end.
    fn word(&self) -> &'a str {
        let rest = &self.text[self.word_at()..];
        if let Some(sign) = ["&&", "||", "(", ")", "!"].iter().find(|sign| rest.starts_with(**sign))
        {
            return &rest[..sign.len()];
        }
        let ends = |letter: char| letter.is_whitespace() || "()!&|".contains(letter);
        let length = rest.find(ends).unwrap_or(rest.len());
        // A lone sign such as & is a word of its own, and an unexpected one.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        &rest[..length.max(first)]
    }

    fn word_at(&self) -> usize {
        self.text.len() - self.text[self.at..].trim_start().len()
    }

    fn advance(&mut self) {
        self.at = self.word_at() + self.word().len();
    }

    fn expected(&self, expected: &'static str) -> FilterError {
        let word = self.word();
        let shown = &word[..word.floor_char_boundary(FOUND_BYTES_MAX)];
        let found = if word.is_empty() { "the end".to_owned() } else { format!("{shown:?}") };
        let position = self.text[..self.word_at()].chars().count() + 1;
        FilterError::Expected { position, expected, found }
    }
}

fn all(left: Expression, right: Expression) -> Expression {
    let mut parts = Vec::new();
    for side in [left, right] {
        match side {
            Expression::All(inner) => parts.extend(inner),
            other => parts.push(other),
        }
    }
    Expression::All(parts)
}

fn any(left: Expression, right: Expression) -> Expression {
    let mut parts = Vec::new();
    for side in [left, right] {
        match side {
            Expression::Any(inner) => parts.extend(inner),
            other => parts.push(other),
        }
    }
    Expression::Any(parts)
}

fn host(word: &str, side: AddressSide) -> Option<Condition> {
    let address: IpAddr = word.parse().ok()?;
    Some(Condition::Net(side, Network::new(Prefix::of(address, 128))))
}

fn prefix(word: &str, side: AddressSide) -> Option<Condition> {
    Some(Condition::Net(side, Network::new(word.parse().ok()?)))
}

fn port(word: &str, side: AddressSide) -> Option<Condition> {
    let port = u16::try_from(decimal(word)?).ok()?;
    Some(Condition::Ports(side, port, port))
}

fn port_range(word: &str, side: AddressSide) -> Option<Condition> {
    let (low, high) = word.split_once('-')?;
    let (low, high) = (u16::try_from(decimal(low)?).ok()?, u16::try_from(decimal(high)?).ok()?);
    (low <= high).then_some(Condition::Ports(side, low, high))
}

fn protocol(word: &str) -> Option<Condition> {
    let number = decimal(word).and_then(|number| u8::try_from(number).ok());
    number.or_else(|| names::protocol(word)).map(Condition::Protocol)
}

fn dscp(word: &str) -> Option<Condition> {
    let number = decimal(word).filter(|&number| number < 64).map(|number| number as u8);
    number.or_else(|| names::dscp(word)).map(Condition::Dscp)
}

/// Digits only: no sign.
fn decimal(word: &str) -> Option<u32> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok())?
}
